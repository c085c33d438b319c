#!/bin/sh
# hostname of a practice host.
cat "${0%/*}/../../etc/hostname"
