#!/bin/sh
# serve_vllm_decode.sh: decode worker of qwen3.6-27b on b200-01
#
# Made by bringup 0.1.0, configuration sha256:7441f618ac0010b4ca514152fa5adff3828e93b902ed1b53d13e954bd077a5b9
# from deployment qwen-1p1d, role decode.
# Edit the inventory, not this file: the next run of bringup writes it anew.
set -eu

NAME=qwen-1p1d-decode
CONFIG=sha256:7441f618ac0010b4ca514152fa5adff3828e93b902ed1b53d13e954bd077a5b9
MODEL=/models/Qwen3.6-27B-NVFP4
SERVED_NAME=qwen3.6-27b
SECRETS_FILE=''
READY_TIMEOUT_S=1800
LOG=/var/log/bringup/qwen-1p1d-decode.log
STATE=/opt/bringup/serve/qwen-1p1d/qwen-1p1d-decode.pid
VENV=''

# Chosen because:
#   --tensor-parallel-size
#       tensor_parallel = 1, said facts
#       because role decode takes GPUs 1
#   --attention-backend
#       attention_backend = triton, said rule vllm-without-nvcc
#       because sh: nvcc: not found
#   VLLM_USE_FLASHINFER_SAMPLER
#       flashinfer_sampler = false, said rule vllm-without-nvcc
#       because sh: nvcc: not found
#   --no-enable-flashinfer-autotune
#       flashinfer_autotune = false, said rule vllm-without-nvcc
#       because sh: nvcc: not found
#   VLLM_USE_DEEP_GEMM
#       deep_gemm = false, said rule vllm-without-nvcc
#       because sh: nvcc: not found
#   VLLM_MOE_USE_DEEP_GEMM
#       deep_gemm = false, said rule vllm-without-nvcc
#       because sh: nvcc: not found
#   VLLM_DEEP_GEMM_WARMUP
#       deep_gemm = false, said rule vllm-without-nvcc
#       because sh: nvcc: not found
#   --gdn-prefill-backend
#       gdn_prefill_backend = triton, said rule vllm-without-nvcc
#       because sh: nvcc: not found
#   VLLM_SSM_CONV_STATE_LAYOUT
#       conv_state_layout = DS, said rule hybrid-nixl-layout
#       because qwen3.6-27b has convolution state
#   VLLM_ENGINE_READY_TIMEOUT_S
#       ready_timeout_s = 1800, said rule blackwell-first-start
#       because Blackwell GPUs
#       overrules 915, said rule weights-take-time (15 GiB at 1 GiB/s, and 900 s to compile)
#   VLLM_NIXL_SIDE_CHANNEL_PORT
#       side_channel_port = 5608, said rule pair-on-one-host
#       because b200-01 holds prefill, decode and vllm-router

# worker RUNNER: hand the whole command to RUNNER (show, or what runs it)
worker() {
  PATH=${VENV:+$VENV/bin:}$PATH
  "$1" env \
    VLLM_USE_FLASHINFER_SAMPLER=0 \
    VLLM_USE_DEEP_GEMM=0 \
    VLLM_MOE_USE_DEEP_GEMM=0 \
    VLLM_DEEP_GEMM_WARMUP=skip \
    VLLM_SSM_CONV_STATE_LAYOUT=DS \
    VLLM_ENGINE_READY_TIMEOUT_S=1800 \
    VLLM_NIXL_SIDE_CHANNEL_PORT=5608 \
    CUDA_VISIBLE_DEVICES=1 \
    vllm \
    serve \
    /models/Qwen3.6-27B-NVFP4 \
    --served-model-name "$SERVED_NAME" \
    --port 8200 \
    --tensor-parallel-size 1 \
    --gpu-memory-utilization 0.9 \
    --max-model-len 32768 \
    --attention-backend TRITON_ATTN \
    --no-enable-flashinfer-autotune \
    --gdn-prefill-backend triton \
    --trust-remote-code \
    --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
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
  ! listening 8200 ||
    refuse 'port 8200 (port) is taken' 'stop what listens there, or set port in the inventory'
  ! listening 5608 ||
    refuse 'port 5608 (side_channel_port) is taken' 'stop what listens there, or set side_channel_port in the inventory'
}

check_rdma() {
  :
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
  PATH=${VENV:+$VENV/bin:}$PATH command -v vllm >/dev/null ||
    refuse 'no command vllm' "install the engine, or set venv in the inventory"
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
usage: serve_vllm_decode.sh [COMMAND]
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
