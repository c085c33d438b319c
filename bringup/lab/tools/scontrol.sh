#!/bin/sh
# scontrol of a practice host: answers from the files that its description made.
data=${0%/*}/../lib/lab/scontrol
case $* in
"show node"*) cat "$data/node" ;;
"show config"*) sed "s/=/ = /" "${0%/*}/../../etc/slurm/slurm.conf" ;;
*) echo "scontrol: error: practice nodes only know show node and show config" >&2; exit 1 ;;
esac
