#!/bin/sh
# nvidia-ctk of a practice host: answers from the files that its description made.
data=${0%/*}/../lib/lab/nvidia-ctk
case $1 in
--version | -v) cat "$data/version" ;;
cdi) sed -n "s/^  - name: \"\(.*\)\"/nvidia.com\/gpu=\1/p" "${0%/*}/../../var/run/cdi/nvidia.yaml" 2>/dev/null ;;
*) echo "nvidia-ctk of a practice host: only --version and cdi list" >&2; exit 1 ;;
esac
