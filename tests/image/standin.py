"""A stand-in for the engine's base image: real SGLang source, real Python, no torch.

The base of K3 weighs tens of gigabytes and lies on a public registry. This one carries the source
of SGLang 0.5.18 from its wheel, laid out as in the real image: source below /sgl-workspace, found
through a path file, metadata beside the other packages.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

CACHE = Path(os.environ.get("BRINGUP_TEST_CACHE", "~/.cache/bringup-tests")).expanduser()
WHEELS = ("sglang==0.5.18", "ai-dynamo==1.3.0.post1", "ai-dynamo-runtime==1.3.0.post1")
PIP = "pip==25.0.1"
LEFT_OUT = re.compile(r"/(site-packages|tests?|idlelib|tkinter|turtledemo|config-[^/]*)(/|$)|pyc")
NOISE, ZEROS = 48_000_000, 290_000_000
SOURCE = "sgl-workspace/sglang/python"


def wheels() -> dict[str, Path]:
    """Return the real wheels by name."""
    return {pin.partition("==")[0]: wheel(pin) for pin in WHEELS}


def wheel(pin: str) -> Path:
    """Return a wheel, downloaded once and kept; one process downloads."""
    folder = CACHE / "wheels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = f"cannot keep wheels in {folder}: {error.strerror}; name another BRINGUP_TEST_CACHE"
        raise AssertionError(why) from None
    with (CACHE / "wheels.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _wheel(folder, pin)


def _wheel(folder: Path, pin: str) -> Path:
    name, version = pin.split("==")
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    if not list(folder.glob(pattern)):
        words = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), pin]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"cannot download {pin}:\n{done.stderr[-2000:]}"
    return next(folder.glob(pattern))


def base_tree() -> Path:
    """Return a tar of the stand-in's root, made once for this Python and this text."""
    key = hashlib.sha256(Path(__file__).read_bytes() + sys.version.encode()).hexdigest()[:12]
    path = CACHE / f"base-{key}.tar"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        staged = path.with_suffix(f".{os.getpid()}")
        with tarfile.open(staged, "w") as tar:
            _add_python(tar)
            _add_busybox(tar)
            _add_engine(tar)
            _add_ballast(tar)
        staged.rename(path)
    return path


def small_tree(folder: Path) -> Path:
    """Return a tar of a root with little in it."""
    path = folder / "small.tar"
    with tarfile.open(path, "w") as tar:
        _add_busybox(tar)
    return path


def _add_python(tar: tarfile.TarFile) -> None:
    prefix = Path(sys.base_prefix)
    version = f"python{sysconfig.get_python_version()}"
    library = prefix / "lib" / version
    for path in sorted(library.rglob("*")):
        name = str(path.relative_to(prefix))
        if not path.is_file() or LEFT_OUT.search(f"/{name}"):
            continue
        if path.name == "sysconfig.py":
            _add_text(tar, f"usr/local/{name}", _as_released(path))
        else:
            tar.add(path.resolve(), f"usr/local/{name}")
    program = Path(sys.executable).resolve()
    tar.add(program, "usr/local/bin/python3")
    modules = sorted((library / "lib-dynload").glob("*.so"))
    for needed in sorted(_libraries([program, *modules])):
        tar.add(needed.resolve(), str(needed).lstrip("/"))
        if "libpython" in needed.name:
            tar.add(needed.resolve(), f"usr/local/lib/{needed.name}")
    _add_wheel(tar, wheel(PIP), f"usr/local/lib/{version}/site-packages")
    if "posix_local" in sysconfig.get_scheme_names():  # Debian's frozen `site` looks there alone
        link = tarfile.TarInfo(f"usr/local/lib/{version}/dist-packages")
        link.type, link.linkname = tarfile.SYMTYPE, "site-packages"
        tar.addfile(link)


DEBIAN = {"prefix_scheme = 'posix_local'": "prefix_scheme = 'posix_prefix'"}
"""What Debian changed about where packages lie; images of engines have Python as it is released."""


def _as_released(path: Path) -> str:
    text = path.read_text()
    for debian, released in DEBIAN.items():
        text = text.replace(debian, released)
    return text


def _libraries(programs: list[Path]) -> set[Path]:
    said = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    names = re.findall(r"(?:=> )?(/\S+) \(0x", said)
    return {Path(name) for name in names}


def _add_busybox(tar: tarfile.TarFile) -> None:
    busybox = shutil.which("busybox") or "/bin/busybox"
    tar.add(busybox, "bin/busybox")
    for tool in ("sh", "env", "cat", "ls", "true", "false", "sleep", "test", "mkdir", "rm"):
        link = tarfile.TarInfo(f"bin/{tool}")
        link.type, link.linkname = tarfile.SYMTYPE, "busybox"
        tar.addfile(link)
    folder = tarfile.TarInfo("tmp")
    folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
    tar.addfile(folder)


def _add_engine(tar: tarfile.TarFile) -> None:
    site = f"usr/local/lib/python{sysconfig.get_python_version()}/site-packages"
    _add_wheel(tar, wheels()["sglang"], SOURCE, only=lambda name: name.startswith("sglang/"))
    _add_wheel(tar, wheels()["sglang"], site, only=lambda name: ".dist-info/" in name)
    _add_text(tar, f"{site}/__editable__.sglang.pth", f"/{SOURCE}\n")


def _add_ballast(tar: tarfile.TarFile) -> None:
    """Bring the base over 500 MB: some bytes that do not compress, many that do."""
    _add_bytes(tar, "opt/ballast/noise", random.Random(1).randbytes(NOISE))
    _add_bytes(tar, "opt/ballast/zeros", bytes(ZEROS))


def _add_wheel(tar: tarfile.TarFile, wheel: Path, onto: str, only: object = None) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith("/") or (callable(only) and not only(name)):
                continue
            _add_bytes(tar, f"{onto}/{name}", archive.read(name))


def _add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    _add_bytes(tar, name, text.encode())


def _add_bytes(tar: tarfile.TarFile, name: str, body: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(body), 0o644
    tar.addfile(info, io.BytesIO(body))


def source_sum(name: str) -> str:
    """Return the sha256 of a file of SGLang 0.5.18, such as ``sglang/srt/server_args.py``."""
    return hashlib.sha256(source(name)).hexdigest()


def source(name: str) -> bytes:
    with zipfile.ZipFile(wheels()["sglang"]) as archive:
        return archive.read(name)
