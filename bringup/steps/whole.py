"""How a package manager runs: killed midway, it would leave packages half done."""

from __future__ import annotations

# What it says goes to a file: a pipe that nobody reads any more would kill it.
WHOLE = r"""
whole() {
  log=$(mktemp) || return
  exec 4>"$log" 5<"$log"
  rm -f "$log"
  own=setsid
  command -v setsid >/dev/null || own=
  ${own:+setsid -w} "$@" >&4 2>&1 </dev/null
  code=$?
  exec 4>&-
  said=$(cat <&5)
  exec 5<&-
  return "$code"
}
"""
"""Defines `whole WORD…`: run a command to its end, in a session of its own that outlives the line.

What it said is in $said then.
"""
