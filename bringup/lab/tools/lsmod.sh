#!/bin/sh
# lsmod of a practice host: the described modules.
echo 'Module                  Size  Used by'
awk '{ printf "%-19s %8d  %d\n", $1, $2, $3 }' "${0%/*}/../../proc/modules"
