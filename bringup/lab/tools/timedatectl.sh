#!/bin/sh
# timedatectl of a practice host: answers from the files that its description made.
data=${0%/*}/../lib/lab/timedatectl
case $* in
*NTPSynchronized*--value* | *--value*NTPSynchronized*) cat "$data/synchronized" ;;
show*) printf "NTPSynchronized=%s\n" "$(cat "$data/synchronized")" ;;
*) printf "System clock synchronized: %s\n" "$(cat "$data/synchronized")" ;;
esac
