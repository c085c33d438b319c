"""What a driver-only host lacks, as stand-in packages, and how a host is brought to lack it."""

from __future__ import annotations

from pathlib import Path

TOOLS = Path(__file__).parent / "tools"
DRIVER = "580.126.09"

# The last field but one is the unit; see repository.py.
PACKAGES = f"""\
docker.io|28.0-1|engine-part||docker:run|usr/bin/docker
engine-part|1.0||||
nvidia-container-toolkit|1.17.4-1||||usr/bin/nvidia-ctk
nvidia-container-toolkit|1.18.0-1||||usr/bin/nvidia-ctk
nvidia-driver-580-open|{DRIVER}-1|libnvidia-compute-580||nvidia-persistenced|
libnvidia-compute-580|{DRIVER}-1||||
nvidia-fabricmanager|{DRIVER}-1|||nvidia-fabricmanager:run|usr/bin/nv-fabricmanager
nvidia-fabricmanager|580.105.08-1|||nvidia-fabricmanager:run|usr/bin/nv-fabricmanager
nvidia-fabricmanager|590.1-1|||nvidia-fabricmanager:run|usr/bin/nv-fabricmanager
nvlsm|2025.03-1||||usr/sbin/nvlsm
infiniband-diags|50.0||||usr/sbin/ibstat
rdma-core|50.0||||
ibverbs-providers|50.0||||
cuda-toolkit-12-8|12.8.1-1||||usr/local/cuda/bin/nvcc
cuda-toolkit-12-9|12.9.1-1||||usr/local/cuda/bin/nvcc
chrony|4.5-1|||chrony|usr/bin/chronyc
"""

# The client, and without words the daemon, which reads its configuration at its start and on HUP.
DOCKER = r"""#!/bin/sh
config=/run/docker.config
if [ $# = 0 ]; then
  read_config() { cp /etc/docker/daemon.json "$config" 2>/dev/null || echo '{}' >"$config"; }
  trap read_config HUP
  read_config
  echo $$ >/run/docker.pid
  while :; do sleep 100000 & wait $!; done
fi
nvidia=; json=
if grep -qs nvidia "$config"; then nvidia=nvidia json=',"nvidia":{"path":"x"}'; fi
systemctl -q is-active docker || { echo 'Cannot connect to the Docker daemon' >&2; exit 1; }
case "$*" in
info*"json ."*) read -r groups 2>/dev/null </run/docker.cgroups || groups=cgroupfs
  printf '{"ServerVersion":"28.0.0","Runtimes":{"runc":{"path":"runc"}%s},' "$json"
  echo '"DockerRootDir":"/var/lib","LoggingDriver":"json-file","CgroupDriver":"'"$groups"'"}' ;;
info*Runtimes*) echo "runc $nvidia" ;;
info*DockerRootDir*) echo /var/lib ;;
ps*) cat /run/docker.containers 2>/dev/null || : ;;
image*) echo 'Error: No such image' >&2; exit 1 ;;
esac
"""
NVIDIA_CTK = r"""#!/bin/sh
v='@VERSION@'
case "$*" in
*create-dev-char-symlinks*)
  for f in /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm; do
    [ -c "$f" ] || continue
    set -- $(stat -c '%t %T' "$f")
    mkdir -p /dev/char
    ln -sf "../${f##*/}" "/dev/char/$((0x$1)):$((0x$2))"
  done ;;
*"cdi generate"*)
  mkdir -p /etc/cdi
  printf 'cdiVersion: 0.6.0\nkind: nvidia.com/gpu\n# libcuda.so.%s\n' \
    "$(cat /sys/module/nvidia/version)" >/etc/cdi/nvidia.yaml ;;
*) echo "NVIDIA Container Toolkit CLI version ${v%-*}" ;;
esac
"""
NVCC = r"""#!/bin/sh
v='@VERSION@'
v=${v%-*}
echo "Cuda compilation tools, release ${v%.*}, V$v"
"""
CHRONYC = """#!/bin/sh
systemctl -q is-active chrony || { echo '506 Cannot talk to daemon' >&2; exit 1; }
printf 'System time     : 0.000001 seconds slow of NTP time\\nLeap status     : Normal\\n'
"""
PROGRAMS = {
    "chrony": CHRONYC,
    "docker.io": DOCKER,
    "nvidia-container-toolkit": NVIDIA_CTK,
    "nvidia-fabricmanager": (TOOLS / "nv-fabricmanager").read_text(),
    "cuda-toolkit-12-8": NVCC,
    "cuda-toolkit-12-9": NVCC,
}

FILES = {"chrony/usr/lib/systemd/ntp-units.d/50-chrony.list": "chrony.service\n"}

# What the machine has of these goes, by apt itself, so that no dependency is left broken.
STRIP = r"""
set -eu
export DEBIAN_FRONTEND=noninteractive
gone=
for p in docker.io docker-ce podman containerd runc rdma-core ibverbs-providers infiniband-diags \
  chrony docker-registry; do
  ! dpkg-query -W "$p" >/dev/null 2>&1 || gone="$gone $p"
done
[ -z "$gone" ] || apt-get -q -y purge $gone >/dev/null 2>&1
rm -rf /usr/bin/docker /usr/local/bin/docker /usr/sbin/dockerd /usr/bin/podman /etc/docker \
  /etc/systemd/system/docker* /lib/systemd/system/docker* /var/lib/docker \
  /usr/local/bin/nvcc /usr/bin/nvcc /usr/local/cuda*
"""
