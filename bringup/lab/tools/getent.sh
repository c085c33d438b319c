#!/bin/sh
# getent of a practice host: names of its own hosts file and of the practice network.
hosts=${0%/*}/../../etc/hosts
code=2
kind=$1
[ $# -eq 0 ] || shift
case $kind in hosts | ahosts | ahostsv4) ;; *) exit 1 ;; esac
for name; do
  case $name in
  *[!0-9.]*) found=$(awk -v name="$name" '{ for (i = 2; i <= NF; i++) if ($i == name) { print $1; exit } }' "$hosts") ;;
  *) found=$name ;;
  esac
  [ -n "$found" ] || continue
  code=0
  case $kind in
  hosts) printf '%-15s %s\n' "$found" "$name" ;;
  *) for type in STREAM DGRAM RAW; do printf '%-15s %-6s %s\n' "$found" "$type" "$name"; name=; done ;;
  esac
done
exit $code
