#!/bin/sh
# uname of a practice host: the described system's name.
proc=${0%/*}/../../proc/sys/kernel
read -r host <"$proc/hostname"
read -r kernel <"$proc/osrelease"
[ $# -gt 0 ] || set -- -s
for option; do
  case $option in
  -a | --all) printf '%s ' "Linux $host $kernel #91-Ubuntu SMP x86_64 x86_64 x86_64 GNU/Linux" ;;
  -s) printf 'Linux ' ;;
  -n) printf '%s ' "$host" ;;
  -r) printf '%s ' "$kernel" ;;
  -v) printf '#91-Ubuntu SMP ' ;;
  -m | -p | -i) printf 'x86_64 ' ;;
  -o) printf 'GNU/Linux ' ;;
  esac
done | sed 's/ $//'
echo
