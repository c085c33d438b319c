#!/bin/sh
# Make one practice host out of the machine it runs on, inside fresh namespaces, and become its
# PID 1. Its files are an overlay of /; what it writes stays in $DIR. Called by host.py.
#   DIR   folder of this host: up, work, root, etc (keys, users, sudoers), data
#   NAME  its name      INIT  sh or systemd      DOCKER  1: an engine of its own
set -eu
R=$DIR/root
hostname "$NAME"

mount -t overlay "$NAME" -o "lowerdir=/,upperdir=$DIR/up,workdir=$DIR/work" "$R"
mount -t proc proc "$R/proc"
mount -t sysfs sysfs "$R/sys"

# This host's own view of the control groups: one unified tree, or v1 beside a hybrid one.
if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
  mount -t cgroup2 cgroup2 "$R/sys/fs/cgroup"
else
  mount -t tmpfs -o mode=755 cgroup "$R/sys/fs/cgroup"
  while read -r _ place kind options _; do
    case $place in /sys/fs/cgroup/*) ;; *) continue ;; esac
    mkdir -p "$R$place"
    case $kind:$options in
    cgroup2:*) mount -t cgroup2 cgroup2 "$R$place" ;;
    cgroup:*name=*) mount -t cgroup -o "none,name=${options##*name=}" cgroup "$R$place" ;;
    cgroup:*) mount -t cgroup -o "${options##*relatime,}" cgroup "$R$place" ;;
    esac
  done </proc/mounts
fi

mount -t tmpfs -o mode=755 dev "$R/dev"
mkdir "$R/dev/pts" "$R/dev/shm" "$R/dev/net"
while read -r node major minor; do
  mknod -m 666 "$R/dev/$node" c "$major" "$minor"
done <<END
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
fuse 10 229
net/tun 10 200
END
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$R/dev/pts"
ln -s pts/ptmx "$R/dev/ptmx"
ln -s /proc/self/fd "$R/dev/fd"
for pair in 0:stdin 1:stdout 2:stderr; do
  ln -s "/proc/self/fd/${pair%:*}" "$R/dev/${pair#*:}"
done
mount -t tmpfs -o mode=1777 shm "$R/dev/shm"
mount -t tmpfs -o mode=755 run "$R/run"
mkdir -m 755 "$R/run/sshd"
mkdir -m 1777 "$R/run/lock"

# The kernel has one swap for all: a host that turns it off must not turn off the machine's.
printf 'Filename\tType\tSize\tUsed\tPriority\n' >"$R/run/swaps"
mount --bind "$R/run/swaps" "$R/proc/swaps"

# Hide what belongs to the machine itself.
for folder in root home srv; do
  mount -t tmpfs -o mode=755 "$folder" "$R/$folder"
done
for folder in tmp var/tmp; do
  mount -t tmpfs -o mode=1777 "$folder" "$R/$folder"
done
mkdir -p "$R/small"
mount -t tmpfs -o size=1m,mode=1777 small "$R/small"

echo "$NAME" >"$R/etc/hostname"
printf '127.0.0.1 localhost %s\n' "$NAME" >"$R/etc/hosts"
install -m 600 "$DIR/etc/host_key" "$R/etc/ssh/fleet_host_key"
install -m 644 "$DIR/etc/host_key.pub" "$R/etc/ssh/fleet_host_key.pub"
install -m 644 "$DIR/etc/sshd_config" "$R/etc/ssh/fleet_sshd_config"
install -d -m 700 "$R/root/.ssh"
install -m 600 "$DIR/etc/authorized_keys" "$R/root/.ssh/authorized_keys"
number=7000
for user in operator guest; do
  number=$((number + 1))
  if ! grep -q "^$user:" "$R/etc/passwd"; then
    echo "$user:x:$number:$number::/home/$user:/bin/sh" >>"$R/etc/passwd"
    echo "$user:x:$number:" >>"$R/etc/group"
    echo "$user:*:19000:0:99999:7:::" >>"$R/etc/shadow"
  fi
  install -d -m 700 -o "$number" -g "$number" "$R/home/$user" "$R/home/$user/.ssh"
  install -m 600 -o "$number" -g "$number" "$DIR/etc/authorized_keys" "$R/home/$user/.ssh"
done
mkdir -p "$R/etc/sudoers.d"
echo 'operator ALL=(ALL) NOPASSWD: ALL' >"$R/etc/sudoers.d/fleet"
echo 'guest ALL=(ALL) ALL' >>"$R/etc/sudoers.d/fleet"
chmod 440 "$R/etc/sudoers.d/fleet"

# Docker's data may not lie on an overlay.
if [ -n "$DOCKER" ]; then
  mkdir -p "$R/var/lib/containerd" "$R/var/lib/docker"
  mount -t tmpfs containerd "$R/var/lib/containerd"
  mount --bind "$DIR/data" "$R/var/lib/docker"
fi

if [ "$INIT" = systemd ]; then
  units=$R/etc/systemd/system
  : >"$R/etc/fstab"
  # What is enabled on this host comes back with it; of the machine's own nothing does.
  if [ ! -e "$units/fleet.target" ]; then
    rm -rf "$units"/*.wants
    : >"$R/etc/machine-id"
  fi
  wants='fleet-sshd.service dbus.service'
  [ -z "$DOCKER" ] || wants="$wants docker.service"
  for unit in "$units"/multi-user.target.wants/*; do
    [ ! -L "$unit" ] || wants="$wants ${unit##*/}"
  done
  printf '[Unit]\nRequires=sysinit.target\nWants=%s\n' "$wants" >"$units/fleet.target"
  printf '[Service]\nRuntimeDirectory=sshd\nExecStart=%s\nKillMode=process\n' "$SSHD" \
    >"$units/fleet-sshd.service"
  for unit in systemd-udevd systemd-udev-trigger systemd-sysctl systemd-modules-load \
    systemd-timesyncd systemd-resolved console-getty systemd-logind systemd-networkd \
    systemd-binfmt systemd-random-seed systemd-update-utmp kmod-static-nodes systemd-sysusers \
    systemd-tmpfiles-setup-dev systemd-firstboot systemd-hwdb-update; do
    ln -sf /dev/null "$units/$unit.service"
  done
  for unit in proc-sys-fs-binfmt_misc.automount sys-kernel-debug.mount sys-kernel-tracing.mount \
    sys-kernel-config.mount sys-fs-fuse-connections.mount dev-hugepages.mount dev-mqueue.mount; do
    ln -sf /dev/null "$units/$unit"
  done
fi

mkdir -p "$R/.old"
cd "$R"
pivot_root . .old
umount -l /.old
rmdir /.old

if [ "$INIT" = systemd ]; then
  exec env -i container=fleet PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system \
    --unit=fleet.target --log-target=journal --show-status=no
fi

# A unified tree gives its controllers on only from a group without processes.
if [ -n "$DOCKER" ] && [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mkdir -p /sys/fs/cgroup/init
  while read -r pid; do echo "$pid" >/sys/fs/cgroup/init/cgroup.procs || :; done \
    </sys/fs/cgroup/cgroup.procs
  sed 's/ / +/g; s/^/+/' /sys/fs/cgroup/cgroup.controllers >/sys/fs/cgroup/cgroup.subtree_control
fi
[ -z "$DOCKER" ] || /usr/sbin/dockerd >/var/log/dockerd.log 2>&1 &
$SSHD &
# PID 1 reaps what others leave behind.
while :; do
  sleep 86400 &
  wait $!
done
