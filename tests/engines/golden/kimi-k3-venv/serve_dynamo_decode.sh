#!/bin/sh
# serve_dynamo_decode.sh: decode worker of kimi-k3-ultrafast on b300-07
#
# Made by bringup 0.1.0, configuration sha256:76b313d2c7e15765e44bd3489db7ea25126694dc6ae4644f74cedb24506080b6
# from deployment kimi-k3-venv, role decode.
# Edit the inventory, not this file: the next run of bringup writes it anew.
set -eu

NAME=kimi-k3-venv-decode
CONFIG=sha256:76b313d2c7e15765e44bd3489db7ea25126694dc6ae4644f74cedb24506080b6
MODEL=/raid/models/Kimi-K3
SERVED_NAME=kimi-k3-ultrafast
SECRETS_FILE=''
READY_TIMEOUT_S=3600
LOG=/var/log/bringup/kimi-k3-venv-decode.log
STATE=/opt/bringup/serve/kimi-k3-venv/kimi-k3-venv-decode.pid
VENV=''

# Chosen because:
#   --disaggregation-transfer-backend
#       transfer_backend = nixl, said rule nixl-transfer
#       because role decode is one side of a pair; engine dynamo.sglang
#   --tp-size
#       tensor_parallel = 8, said facts
#       because b300-07 has 8 GPUs
#   --host
#       listen_address = 0.0.0.0, said rule bootstrap-listens
#       because role decode
#   --speculative-draft-model-path
#       speculative_draft_path = /raid/models/Kimi-K3-DSpark, said rule dspark-draft
#       because model.draft_path = /raid/models/Kimi-K3-DSpark
#   --trust-remote-code
#       trust_remote_code = true, said rule kimi-k3-remote-code
#       because architecture kimi_k3
#   UCX_NET_DEVICES
#       ucx_net_devices = mlx5_9:1,mlx5_8:1,mlx5_11:1,mlx5_10:1,mlx5_13:1,mlx5_12:1,mlx5_15:1,mlx5_14:1, said rule rdma-device-list
#       because active compute devices by GPU: mlx5_9 mlx5_8 mlx5_11 mlx5_10 mlx5_13 mlx5_12 mlx5_15 mlx5_14; switch bridges left out: mlx5_0 mlx5_1 mlx5_2 mlx5_3
#   NCCL_IB_HCA
#       nccl_ib_hca = =mlx5_9,mlx5_8,mlx5_11,mlx5_10,mlx5_13,mlx5_12,mlx5_15,mlx5_14, said rule rdma-device-list
#       because active compute devices by GPU: mlx5_9 mlx5_8 mlx5_11 mlx5_10 mlx5_13 mlx5_12 mlx5_15 mlx5_14; switch bridges left out: mlx5_0 mlx5_1 mlx5_2 mlx5_3

# worker RUNNER: hand the whole command to RUNNER (show, or what runs it)
worker() {
  PATH=${VENV:+$VENV/bin:}$PATH
  "$1" env \
    SGLANG_HOST_IP=10.0.0.7 \
    DYN_TCP_RPC_HOST=10.0.0.7 \
    DYN_SYSTEM_PORT=8081 \
    'DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS=["generate"]' \
    UCX_NET_DEVICES=mlx5_9:1,mlx5_8:1,mlx5_11:1,mlx5_10:1,mlx5_13:1,mlx5_12:1,mlx5_15:1,mlx5_14:1 \
    NCCL_IB_HCA==mlx5_9,mlx5_8,mlx5_11,mlx5_10,mlx5_13,mlx5_12,mlx5_15,mlx5_14 \
    ETCD_ENDPOINTS=http://10.0.0.11:2379,http://10.0.0.12:2379,http://10.0.0.13:2379 \
    NATS_SERVER=nats://10.0.0.11:4222 \
    DYN_NAMESPACE=dynamo \
    python3 \
    -m dynamo.sglang \
    --model-path "$MODEL" \
    --served-model-name "$SERVED_NAME" \
    --disaggregation-mode decode \
    --disaggregation-transfer-backend nixl \
    --disaggregation-bootstrap-port 8998 \
    --tp-size 8 \
    --host 0.0.0.0 \
    --port 30000 \
    --speculative-algorithm DSPARK \
    --speculative-draft-model-path /raid/models/Kimi-K3-DSpark \
    --speculative-dspark-block-size 7 \
    --disaggregation-decode-extra-slots 16 \
    --trust-remote-code
}

say() { printf '%s: %s\n' "$NAME" "$1"; }

problems=0
# refuse WHY WHAT-TO-DO: note one reason not to start; `checked` stops after all were looked at.
refuse() {
  problems=$((problems + 1))
  printf '%s: cannot start: %s\n%s: do: %s\n' "$NAME" "$1" "$NAME" "$2" >&2
}
checked() {
  [ "$problems" -eq 0 ] || { say "nothing was started" >&2; exit 4; }
}

# show WORD...: print a command that can be pasted, an option or a variable a line
show() {
  option=
  for word; do
    case $word in
    -[!0-9]*) printf '\\\n  ' && option=1 ;;
    [A-Z]*=*) [ -n "$option" ] || printf '\\\n  '; option= ;;
    *) option= ;;
    esac
    case $word in
    *[!A-Za-z0-9_@%+=:,./-]* | '') printf "'%s' " "$(printf '%s' "$word" | sed "s/'/'\\\\''/g")" ;;
    *) printf '%s ' "$word" ;;
    esac
  done
  printf '\n'
}

# listening PORT: true when something on this host accepts connections there
listening() {
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    grep -Eqi "^ *[0-9]+: [0-9a-f]+:$(printf '%04X' "$1") [0-9a-f]+:0000 0A "
}

check_model() {
  case $MODEL in
  /*) [ -f "$MODEL/config.json" ] ||
    refuse "no $MODEL/config.json" "bring the model back, or set model.path in the inventory" ;;
  esac
}

check_ports() {
  ! listening 30000 ||
    refuse 'port 30000 (port) is taken' 'stop what listens there, or set port in the inventory'
  ! listening 8081 ||
    refuse 'port 8081 (system_port) is taken' 'stop what listens there, or set system_port in the inventory'
}

check_rdma() {
  down=
  for device in mlx5_9 mlx5_8 mlx5_11 mlx5_10 mlx5_13 mlx5_12 mlx5_15 mlx5_14; do
    grep -q ACTIVE "/sys/class/infiniband/$device/ports/1/state" 2>/dev/null || down="$down $device"
  done
  [ -z "$down" ] || refuse "RDMA devices not active:$down" "check cables and subnet manager, or run bringup again"
}

check_secrets() {
  [ -z "$SECRETS_FILE" ] || {
    [ -r "$SECRETS_FILE" ] || refuse "cannot read $SECRETS_FILE" "run bringup again: it writes it"
    case $(stat -c %a "$SECRETS_FILE" 2>/dev/null) in
    600 | 400 | '') ;;
    *) refuse "others can read $SECRETS_FILE" "chmod 600 $SECRETS_FILE" ;;
    esac
  }
}

# started_at PID: the kernel's start time of a process that lives, so that neither a reused number
# nor a dead child that nobody collected is mistaken for the worker
started_at() { sed -n 's/.*) [^Z] //p' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f19; }

# state: "PID CONFIG" of the running worker, or nothing
state() {
  [ -r "$STATE" ] || return 0
  read -r pid since config <"$STATE" || return 0
  [ "$(started_at "$pid")" != "$since" ] || printf '%s %s\n' "$pid" "$config"
}

check_engine() {
  [ -z "$VENV" ] || [ -x "$VENV/bin/python" ] ||
    refuse "no $VENV/bin/python" "install the engine there, or set venv in the inventory"
  PATH=${VENV:+$VENV/bin:}$PATH command -v python3 >/dev/null ||
    refuse 'no command python3' "install the engine, or set venv in the inventory"
}

secrets() {
  [ -z "$SECRETS_FILE" ] || while IFS= read -r line; do export "${line?}"; done <"$SECRETS_FILE"
}

prepare() {
  now=$(state)
  case $now in
  '') ;;
  *" $CONFIG") say "already runs, as written here"; exit 0 ;;
  *) refuse "process ${now%% *} runs with other settings" "$0 --stop, then start again" ;;
  esac
  check_engine
  check_model
  [ -n "$now" ] || check_ports
  check_rdma
  check_secrets
  checked
  secrets
}

# A session of its own: the worker outlives this login, and --stop reaches all its processes.
detached() {
  nohup setsid "$@" >>"$LOG" 2>&1 </dev/null &
  printf '%s %s %s\n' "$!" "$(started_at "$!")" "$CONFIG" >"$STATE"
}

start() {
  prepare
  mkdir -p "${LOG%/*}" "${STATE%/*}"
  [ ! -f "$LOG" ] || mv -f "$LOG" "$LOG.last"
  worker detached
  say "started; it may take up to $READY_TIMEOUT_S s to serve"
  say "log: $LOG; state: $0 --status"
}

foreground() {
  prepare
  export BRINGUP_CONFIG="$CONFIG"
  worker exec
}

print() { worker show; }

status() {
  now=$(state)
  case $now in
  '') say "not running; its log is $LOG"; exit 3 ;;
  *" $CONFIG") say "runs as written here, process ${now%% *}, configuration $CONFIG" ;;
  *) say "runs with other settings: ${now#* }, process ${now%% *}"; exit 4 ;;
  esac
}

logs() { exec tail -n 200 -F "$LOG"; }

stop() {
  now=$(state)
  [ -n "$now" ] || { say "not running"; exit 0; }
  pid=${now%% *}
  kill -TERM -- "-$pid" 2>/dev/null || kill -TERM "$pid"
  tries=300
  while [ -n "$(state)" ] && [ "$tries" -gt 0 ]; do
    tries=$((tries - 1))
    sleep 0.2
  done
  [ -z "$(state)" ] || kill -KILL -- "-$pid" 2>/dev/null || :
  rm -f "$STATE"
  say "stopped; its log is $LOG"
}

usage() {
  cat <<'END'
usage: serve_dynamo_decode.sh [COMMAND]
  --start       check what this script relies on, then start the worker (the default)
  --foreground  the same, and stay with it: for a service manager
  --print       show the final command; start nothing
  --status      say whether it runs and as what (exit 0: as written here, 3: not, 4: otherwise)
  --logs        follow its log
  --stop        stop it
END
}

case ${1:---start} in
--start) start ;;
--foreground) foreground ;;
--print) print ;;
--status) status ;;
--logs) logs ;;
--stop) stop ;;
--help | -h) usage ;;
*)
  usage >&2
  exit 2
  ;;
esac
