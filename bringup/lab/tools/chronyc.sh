#!/bin/sh
# chronyc of a practice host: answers from the files that its description made.
data=${0%/*}/../lib/lab/chronyc
case $* in
*tracking*) cat "$data/tracking" ;;
*) echo "506 Cannot talk to daemon"; exit 1 ;;
esac
