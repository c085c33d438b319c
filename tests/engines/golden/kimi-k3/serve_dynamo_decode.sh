#!/bin/sh
# serve_dynamo_decode.sh: decode worker of kimi-k3-ultrafast on b300-07
#
# Made by bringup 0.1.0, configuration sha256:943a508334d246cd37f8647f3bbb36c85fb837925a9c6068eae03199cae3d428
# from deployment kimi-k3, role decode.
# Edit the inventory, not this file: the next run of bringup writes it anew.
set -eu

NAME=kimi-k3-decode
CONFIG=sha256:943a508334d246cd37f8647f3bbb36c85fb837925a9c6068eae03199cae3d428
MODEL=/raid/models/Kimi-K3
SERVED_NAME=kimi-k3-ultrafast
SECRETS_FILE=''
READY_TIMEOUT_S=3600
ENGINE=docker
IMAGE=dynamo-sglang-k3:1.3.0.post1
IMAGE_DIGEST=sha256:3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f
LAST_LOG=/var/log/bringup/kimi-k3-decode.last.log

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

# worker RUNNER MODE: hand the whole command to RUNNER (show, or command to run it);
# MODE is --detach or --sig-proxy=true
worker() {
  "$1" "$ENGINE" run "$2" \
    --name "$NAME" \
    --label bringup.config=sha256:943a508334d246cd37f8647f3bbb36c85fb837925a9c6068eae03199cae3d428 \
    --label bringup.deployment=kimi-k3 \
    --label bringup.role=decode \
    --network host \
    --ipc host \
    --ulimit memlock=-1 \
    --ulimit stack=67108864 \
    --cap-add IPC_LOCK \
    --device /dev/infiniband \
    --gpus all \
    --restart no \
    --log-driver json-file \
    --log-opt max-size=100m \
    --log-opt max-file=5 \
    --volume /raid/models/Kimi-K3:/raid/models/Kimi-K3:ro \
    --volume /raid/models/Kimi-K3-DSpark:/raid/models/Kimi-K3-DSpark:ro \
    --env SGLANG_HOST_IP=10.0.0.7 \
    --env DYN_TCP_RPC_HOST=10.0.0.7 \
    --env DYN_SYSTEM_PORT=8081 \
    --env 'DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS=["generate"]' \
    --env UCX_NET_DEVICES=mlx5_9:1,mlx5_8:1,mlx5_11:1,mlx5_10:1,mlx5_13:1,mlx5_12:1,mlx5_15:1,mlx5_14:1 \
    --env NCCL_IB_HCA==mlx5_9,mlx5_8,mlx5_11,mlx5_10,mlx5_13,mlx5_12,mlx5_15,mlx5_14 \
    --env ETCD_ENDPOINTS=http://10.0.0.11:2379,http://10.0.0.12:2379,http://10.0.0.13:2379 \
    --env NATS_SERVER=nats://10.0.0.11:4222 \
    --env DYN_NAMESPACE=dynamo \
    --entrypoint python3 \
    "$IMAGE" \
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


# inspected FORMAT: one property of the container; nothing when there is none, and no answer at
# all (an exit, by set -e) when the engine does not answer
inspected() {
  id=$("$ENGINE" ps --all --quiet --filter "name=^$NAME\$") || return
  [ -z "$id" ] || "$ENGINE" inspect --format "$1" "$NAME"
}
state() { inspected '{{.State.Status}}'; }
label() { inspected '{{index .Config.Labels "bringup.config"}}'; }

# differs: how the container is not as written here, in words; nothing when it is. One that was made
# from another image than IMAGE stands for by now differs; where the engine cannot tell, it does not.
differs() {
  [ "$(label)" = "$CONFIG" ] || { printf 'other settings: %s' "$(label)"; return; }
  [ -z "$IMAGE_DIGEST" ] || return 0
  made=$("$ENGINE" inspect --format '{{.Image}}' "$NAME" 2>/dev/null) || return 0
  both=$("$ENGINE" image inspect --format '{{.Id}}' "$made" "$IMAGE" 2>/dev/null | tr '\n' ' ')
  case $both in
  *' '*' ') ;;
  *) return 0 ;;
  esac
  by_now=${both#* }
  [ "${both%% *}" = "${by_now% }" ] ||
    printf 'image %s, and %s is %s by now' "${both%% *}" "$IMAGE" "${by_now% }"
}

check_image() {
  found=$("$ENGINE" image inspect --format '{{.Id}} {{range .RepoDigests}}{{.}} {{end}}' "$IMAGE" 2>/dev/null) ||
    found=
  case $found in
  '') refuse "image $IMAGE is not on this host" "run bringup again: it brings the image" ;;
  *"$IMAGE_DIGEST"*) ;;
  *) refuse "image $IMAGE is $found, not $IMAGE_DIGEST" "run bringup again with the image you mean" ;;
  esac
}

# Leave alone what runs as written here; never replace what runs as something else.
check_container() {
  now=$(state)
  case $now in
  '') ;;
  created | exited | dead)
    [ -n "$(label)" ] ||
      refuse "a container of this name is not ours: it has no bringup label" \
        "$ENGINE rm $NAME if it may go, or name another container_name in the inventory" ;;
  *) other=$(differs)
    [ -n "$other" ] || { say "already runs, as written here"; exit 0; }
    refuse "a container of this name is $now with $other" "$0 --stop, then start again" ;;
  esac
}

keep_log() {
  mkdir -p "${LAST_LOG%/*}"
  "$ENGINE" logs --tail 20000 "$NAME" >"$LAST_LOG" 2>&1 || :
}

prepare() {
  check_container
  check_image
  check_model
  check_ports
  check_rdma
  check_secrets
  checked
  [ -z "$now" ] || { keep_log; "$ENGINE" rm "$NAME" >/dev/null; }
}

start() {
  prepare
  worker command --detach >/dev/null
  say "started; it may take up to $READY_TIMEOUT_S s to serve"
  say "log: $0 --logs; state: $0 --status"
}

foreground() {
  prepare
  worker exec --sig-proxy=true
}

print() { worker show --detach; }

status() {
  now=$(state)
  case $now in
  running)
    other=$(differs)
    [ -z "$other" ] || { say "runs with $other"; exit 4; }
    say "runs as written here, configuration $CONFIG" ;;
  '') say "not there"; exit 3 ;;
  *) say "$now; last log: $0 --logs"; exit 3 ;;
  esac
}

logs() {
  now=$(state)
  [ -z "$now" ] || exec "$ENGINE" logs --follow --tail 200 "$NAME"
  say "no container; the log of the last one is $LAST_LOG"
}

stop() {
  now=$(state)
  [ -n "$now" ] || { say "not there"; exit 0; }
  [ -n "$(label)" ] || { say "not ours: it has no bringup label; left alone" >&2; exit 4; }
  "$ENGINE" stop --time 60 "$NAME" >/dev/null
  keep_log
  "$ENGINE" rm "$NAME" >/dev/null 2>&1 || :
  say "stopped; its log is kept in $LAST_LOG"
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
