#!/bin/sh
# dmesg of a practice host: the described kernel log.
cat "${0%/*}/../../var/log/dmesg"
