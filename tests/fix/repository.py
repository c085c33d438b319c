"""A repository of tiny stand-in packages, built on a host with dpkg-deb, read by its own apt."""

from __future__ import annotations

from collections.abc import Mapping

from ..fleet.yard import FleetHost

# NAME VERSION DEPENDS CONFLICTS UNIT PROGRAM; the unit NAME:run runs the program, others sleep.
BUILD = r"""
set -eu
repo=/var/lib/stand-in
mkdir -p "$repo"
while IFS='|' read -r name version depends conflicts unit program; do
  [ -n "$name" ] || continue
  d=$(mktemp -d)
  mkdir -p "$d/DEBIAN"
  {
    echo "Package: $name"; echo "Version: $version"; echo "Architecture: all"
    echo "Maintainer: tests <tests@example.org>"; echo "Description: stand-in"
    [ -z "$depends" ] || echo "Depends: $depends"
    [ -z "$conflicts" ] || echo "Conflicts: $conflicts"
  } >"$d/DEBIAN/control"
  mkdir -p "$d/usr/share/stand-in"; echo "$version" >"$d/usr/share/stand-in/$name"
  if [ -n "$unit" ]; then
    start='/bin/sh -c "trap : HUP; while :; do sleep 100000 & wait; done"'
    case $unit in *:run) start="/$program" unit=${unit%:run} ;; esac
    mkdir -p "$d/lib/systemd/system"
    printf '[Service]\nExecStart=%s\n[Install]\nWantedBy=multi-user.target\n' "$start" \
      >"$d/lib/systemd/system/$unit.service"
  fi
  if [ -n "$program" ]; then
    mkdir -p "$d/${program%/*}"; printf '#!/bin/sh\necho %s\n' "$version" >"$d/$program"
    [ ! -e "/run/programs/$name" ] ||
      sed "s/@VERSION@/$version/g" "/run/programs/$name" >"$d/$program"
    chmod 755 "$d/$program"
  fi
  [ ! -d "/run/files/$name" ] || cp -a "/run/files/$name/." "$d/"
  dpkg-deb -b "$d" "$repo/${name}_$version.deb" >/dev/null
  rm -r "$d"
done
cd "$repo"
for deb in *.deb; do
  dpkg-deb -f "$deb"
  echo "Filename: ./$deb"; echo "Size: $(stat -c %s "$deb")"
  echo "SHA256: $(sha256sum "$deb" | cut -d ' ' -f 1)"; echo
done >Packages
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /var/lib/apt/lists/*
echo "deb [trusted=yes] file:$repo ./" >/etc/apt/sources.list.d/stand-in.list
rm -f /etc/apt/apt.conf.d/*docker* /etc/dpkg/dpkg.cfg.d/*docker* /usr/sbin/policy-rc.d
apt-get -q update
"""

# Else the host reads what the machine's own package manager writes meanwhile, below its overlay.
OWN = """
set -eu
cp -a /var/lib/dpkg /var/lib/dpkg.own
rm -rf /var/lib/dpkg
mv /var/lib/dpkg.own /var/lib/dpkg
"""

PACKAGES = """\
plain-tool|1.0-1||||
plain-tool|1.1-1||||
with-part|2.0|its-part|||
its-part|2.0||||
wants-driver|1.0|nvidia-driver-999|||
nvidia-driver-999|999.1||||
rival|1.0||plain-base||
plain-base|1.0||||
napper|1.0|||napper|
late|1.0||||
late-two|1.0||||
"""


NONE: Mapping[str, str] = {}


def own_packages(host: FleetHost) -> None:
    """Give a host a record of packages of its own, as the machine's is now."""
    host.exec("sh", "-c", OWN)


def furnish(
    host: FleetHost,
    packages: str = PACKAGES,
    programs: Mapping[str, str] = NONE,
    files: Mapping[str, str] = NONE,
) -> None:
    """Build the packages on a host, and make their repository its only one.

    `programs` are scripts by package; others print their version. `files` are more files of
    packages, by ``PACKAGE/PATH``.
    """
    for path, text in files.items():
        host.exec("install", "-D", "/dev/stdin", f"/run/files/{path}", stdin=text.encode())
    host.exec("mkdir", "-p", "/run/programs")
    for name, text in programs.items():
        host.exec("tee", f"/run/programs/{name}", stdin=text.encode())
    host.exec("sh", "-c", BUILD, stdin=packages.encode())
