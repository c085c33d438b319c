#!/bin/sh
# nv-fabricmanager of a practice host: answers from the files that its description made.
data=${0%/*}/../lib/lab/nv-fabricmanager
case $* in
--version | -v) cat "$data/version" ;;
*) echo "fabric manager of a practice host: only --version" >&2; exit 1 ;;
esac
