#!/bin/sh
# journalctl of a practice host: what the described services logged.
data=${0%/*}/../lib/lab/systemctl
unit='' kernel='' lines=1000
while [ $# -gt 0 ]; do
  case $1 in
  -u | --unit) shift; unit=$1 ;;
  -u*) unit=${1#-u} ;;
  --unit=*) unit=${1#*=} ;;
  -k | --dmesg) kernel=yes ;;
  -n | --lines) shift; lines=$1 ;;
  -n*) lines=${1#-n} ;;
  -o | --output | --since | --until | -p | --grep | -g) shift ;;
  esac
  shift
done
case $unit in *.* | '') ;; *) unit=$unit.service ;; esac
if [ -n "$kernel" ]; then cat "${0%/*}/../../var/log/dmesg"
elif [ -f "$data/$unit/log" ]; then cat "$data/$unit/log"
else echo '-- No entries --'; fi | tail -n "$lines"
