#!/bin/sh
# ibstat of a practice host: all devices, or the named one; -l lists names.
data=${0%/*}/../lib/lab/ibstat
case $1 in
-l) sed -n "s/^CA '\(.*\)'/\1/p" "$data/devices" ;;
'') cat "$data/devices" ;;
*) awk -v name="'$1'" '/^CA / { on = $2 == name } on { print }' "$data/devices" ;;
esac
