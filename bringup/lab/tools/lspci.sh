#!/bin/sh
# lspci of a practice host: its GPUs, cards and bridges; -D keeps the domain, -d VENDOR: filters.
data=${0%/*}/../lib/lab/lspci
vendor='' domain=''
while [ $# -gt 0 ]; do
  case $1 in
  -d) shift; vendor=${1%%:*} ;;
  -D*) domain=yes ;;
  esac
  shift
done
awk -F '\t' -v vendor="$vendor" -v domain="$domain" '
  vendor == "" || vendor == $1 { if (!domain) sub(/^0000:/, "", $2); print $2 " " $3 }' "$data/devices"
