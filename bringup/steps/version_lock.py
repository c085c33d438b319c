"""Packages that dnf is to leave at their version: its versionlock, of dnf 4 and of dnf 5.

dnf 4 has it as a plug-in with a list of ``NAME-EPOCH:VERSION-RELEASE.*`` lines
(https://dnf-plugins-core.readthedocs.io/en/latest/versionlock.html); in dnf 5 it is built in, with
conditions in a TOML file (https://dnf5.readthedocs.io/en/latest/commands/versionlock.8.html).
A look reads these files: `dnf versionlock list` would load the metadata of repositories first.
"""

from __future__ import annotations

PLUGIN = "python3-dnf-plugin-versionlock"
"""What brings dnf 4 its versionlock."""

WHERE = (
    f"{PLUGIN} is in the base repository of RHEL, Rocky, AlmaLinux and Fedora; without it dnf 4"
    " cannot keep a package at its version"
)

CAN_LOCK = r"""
is_dnf5() { case $(readlink -f "$(command -v dnf)") in *dnf5*) ;; *) return 1 ;; esac; }
# can_lock: whether dnf heeds locks at all
can_lock() {
  ! is_dnf5 || return 0
  grep -Eqi '^ *enabled *= *(0|false|no|off) *$' /etc/dnf/plugins/versionlock.conf 2>/dev/null &&
    return 1
  for one in /usr/lib/python3*/*-packages/dnf-plugins/versionlock.py; do
    [ ! -e "$one" ] || return 0
  done
  return 1
}
"""

# A raw name without a version locks nothing; "!" begins a version that is never taken.
LOOK = rf"""
{CAN_LOCK}
# locks: what is locked, a line each, as patterns of NAME-[EPOCH:]VERSION-RELEASE.ARCH
locks() {{
  can_lock || return 0
  if is_dnf5; then
    awk -F "[\"']" '
      function tell() {{
        if (key == "evr" && sign == "=") print name "-" value ".*"
        key = sign = ""
      }}
      /^ *\[\[packages\]\]/ {{ tell(); name = "" }}
      /^ *\[\[packages.conditions\]\]/ {{ tell() }}
      /^ *name *=/ {{ name = $2 }} /^ *key *=/ {{ key = $2 }}
      /^ *comparator *=/ {{ sign = $2 }} /^ *value *=/ {{ value = $2 }}
      END {{ tell() }}' /etc/dnf/versionlock.toml 2>/dev/null
    return 0
  fi
  list=$(sed -n 's/^ *locklist *= *//p' /etc/dnf/plugins/versionlock.conf 2>/dev/null | tail -n 1)
  sed -n '/^ *[#!]/d; s/^ *\([^ ]*[0-9][^ ]*\) *$/\1/p' \
    "${{list:-/etc/dnf/plugins/versionlock.list}}" 2>/dev/null
}}
# held NAME: whether a package is locked at the version that is installed
held() {{
  form='%{{EPOCHNUM}}:%{{VERSION}}-%{{RELEASE}}.%{{ARCH}}\n'
  now=$(rpm -q --qf "$form" "$1" 2>/dev/null) || return 1
  now=$(printf '%s\n' "$now" | tail -n 1)
  found=$(locks | while read -r one; do
    case $1-$now in $one) echo yes ;; esac
    case $1-${{now#*:}} in $one) echo yes ;; esac
  done)
  [ -n "$found" ]
}}
"""
"""Defines `held NAME`; reads only."""

# Neither needs a repository, which may not answer; an older lock would stand in the way of a new.
ACT = r"""
dnf_lock() { dnf -q --disablerepo='*' versionlock "$@" || dnf -q versionlock "$@"; } </dev/null
unlock() { dnf_lock delete "$@" >/dev/null 2>&1; }
lock() { unlock "$@"; dnf_lock add "$@"; }
"""
"""Defines `lock NAME…` and `unlock NAME…`."""
