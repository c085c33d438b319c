#!/bin/sh
# scontrol of a practice host: its own node, and slurm.conf.
data=${0%/*}/../lib/lab/scontrol
line=''
case $1 in -o | --oneliner) line=yes; shift ;; esac
case $* in
"show node" | "show node "*)
  if [ -n "$3" ] && ! grep -q "^NodeName=$3 " "$data/node"; then
    echo "Node $3 not found"
    exit 1
  fi
  if [ -n "$line" ]; then sed 's/^ *//; /^$/d' "$data/node" | tr '\n' ' ' && echo; else cat "$data/node"; fi
  ;;
"show config"*) sed 's/=/ = /' "${0%/*}/../../etc/slurm/slurm.conf" ;;
*)
  echo 'scontrol: error: a practice host knows show node and show config' >&2
  exit 1
  ;;
esac
