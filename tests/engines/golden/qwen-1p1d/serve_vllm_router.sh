#!/bin/sh
# serve_vllm_router.sh: router of qwen3.6-27b on b200-01
#
# Made by bringup 0.1.0, configuration sha256:b01f807bdb1438407f16137c04714a11047a1ca020503414e3a216805426d71c
# from deployment qwen-1p1d, role router.
# Edit the inventory, not this file: the next run of bringup writes it anew.
set -eu

NAME=qwen-1p1d-router
CONFIG=sha256:b01f807bdb1438407f16137c04714a11047a1ca020503414e3a216805426d71c
SECRETS_FILE=''
READY_TIMEOUT_S=60
LOG=/var/log/bringup/qwen-1p1d-router.log
STATE=/opt/bringup/serve/qwen-1p1d/qwen-1p1d-router.pid
VENV=''

# worker RUNNER: hand the whole command to RUNNER (show, or what runs it)
worker() {
  PATH=${VENV:+$VENV/bin:}$PATH
  "$1" env \
    vllm-router \
    --vllm-pd-disaggregation \
    --prefill http://10.0.1.1:8100 \
    --decode http://10.0.1.1:8200 \
    --host 0.0.0.0 \
    --port 8000
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
  :
}

check_ports() {
  ! listening 8000 ||
    refuse 'port 8000 (http_port) is taken' 'stop what listens there, or set http_port in the inventory'
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
  PATH=${VENV:+$VENV/bin:}$PATH command -v vllm-router >/dev/null ||
    refuse 'no command vllm-router' "install the engine, or set venv in the inventory"
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
usage: serve_vllm_router.sh [COMMAND]
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
