#!/bin/sh
# squeue of a practice host: answers from the files that its description made.
data=${0%/*}/../lib/lab/squeue
case " $* " in
*" -h "* | *" --noheader "*) sed 1d "$data/jobs" ;;
*) cat "$data/jobs" ;;
esac
