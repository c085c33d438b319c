"""What nvcc, pip, python, env and shells told of compilers, packages and settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from ...core.reading import Known
from ..compilers import TOOLS, Compilers
from ..container import ContainerToolkit
from ..environment import PREFIXES, Environment, read_env
from ..fabric import FabricManager
from ..packages import PythonPackages, read_pip, read_torch
from ..proof import CudaProof, read_error
from ..serving import Serving
from ..toolkit import Nvcc, read_version
from .asked import Asked, Output
from .piece import Piece, Readers, absent, known, unknown


def read_nvcc(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `nvcc --version`, of the one in PATH or of one by its path."""
    if output.is_missing or (output.has_no_file and "/" in asked.called):
        yield absent(Nvcc, output.line)
    elif output.code == 0:
        path = asked.called if asked.called.startswith("/") else ""
        yield Piece(Nvcc, read_version(output.text, path))


def read_lookup(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `command -v X`, `which X`, `type X`, `whereis X`: is a program in PATH?"""
    if asked.program == "whereis":
        yield from _whereis(output)
        return
    names = [word for word in asked.operands if not word.startswith("-")]
    if output.is_late or output.is_refused or not names:
        return
    if asked.is_excused and not re.fullmatch(r"[\w\s./:'()+-]*", output.stdout):
        return  # neither a path nor what an ``|| echo`` says in words
    for name in names:
        found = re.search(rf"(?m)^(/\S*/{re.escape(name)})$", output.stdout)
        if asked.is_excused and asked.is_quiet:
            return
        by_name = len(names) > 1 or asked.is_excused
        is_there = bool(found) if by_name else output.code == 0
        yield from _program(name, found[1] if found else "", is_there=is_there)


def _whereis(output: Output) -> Iterator[Piece]:
    """Read ``nvcc: /usr/local/cuda/bin/nvcc``; a name alone means that there is none."""
    for name, places in re.findall(r"(?m)^([\w.+-]+):(.*)$", output.stdout):
        path = next((word for word in places.split() if word.endswith(f"/bin/{name}")), "")
        yield from _program(name, path, is_there=bool(path))


def _program(name: str, path: str, *, is_there: bool) -> Iterator[Piece]:
    line = path or f"{name} {'is' if is_there else 'is not'} in PATH"
    if name == "nvcc":
        yield known(Nvcc("", "", path), line) if is_there else absent(Nvcc, line)
    elif name in TOOLS:
        yield known(Compilers({name: is_there}), line)
    elif name == "nv-fabricmanager" and not is_there:
        yield absent(FabricManager, line)
    elif name == "nvidia-ctk" and not is_there:
        yield absent(ContainerToolkit, line)
    elif name == "ibstat":
        yield known(FabricManager(ibstat=is_there), line)


def read_compiler(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `gcc --version` and the like."""
    if asked.program in TOOLS and (output.is_missing or output.code == 0):
        yield known(Compilers({asked.program: not output.is_missing}), output.line)


def read_pip_command(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `pip list`, `pip freeze`, `pip show NAME`, `uv pip list`."""
    if output.is_missing or output.is_late:
        return
    if asked.has("show"):
        yield from _shown(asked, output)
    elif asked.has("list", "freeze"):
        yield Piece(PythonPackages, read_pip(output.stdout, asked.pattern))


def _shown(asked: Asked, output: Output) -> Iterator[Piece]:
    pairs = re.findall(r"(?m)^Name: (\S+)\nVersion: (\S+)", output.stdout)
    if pairs:
        versions = {name.lower().replace("_", "-"): version for name, version in pairs}
        yield known(PythonPackages(versions), ", ".join(map(" ".join, pairs)))
    gone = re.findall(r"Package\(s\) not found: (.+)", output.text)
    if gone:
        names = frozenset(name.strip() for name in gone[0].split(","))
        yield known(PythonPackages({}, names), output.line)
    del asked


def read_python(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `python3 -c '…'`: torch's versions, cuInit, a CUDA error, a missing module."""
    code = asked.after("-c")
    if output.is_missing:
        yield known(Compilers({"python3": False}), output.line)
        return
    if output.is_late and re.search(r"cuInit|torch\.cuda|cudaGetDevice", code):
        yield unknown(CudaProof, "timed out", f"{asked.program} hangs where it starts CUDA")
        return
    if "cuInit" in code and (found := re.search(r"(?m)^\(?(\d{1,4})\b", output.stdout.strip())):
        yield known(CudaProof(int(found[1]), None, asked.place, f"cuInit {found[1]}"),
                    f"cuInit {found[1]}")  # fmt: skip
    if "torch" in code:
        yield from _torch(asked, code, output)
    yield from _own_version(code, output)
    error = read_error(output.text, asked.place)
    if isinstance(error, Known):
        yield Piece(CudaProof, error)
    if lost := re.search(r"libcuda\.so\.1: cannot open shared object file.*", output.text):
        yield absent(CudaProof, lost[0])
    if module := re.search(r"No module named '([\w.]+)'", output.text):
        name = module[1].partition(".")[0].replace("_", "-")
        packaged = {"flashinfer": "flashinfer-python"}.get(name, name)
        yield known(PythonPackages({}, frozenset({packaged})), module[0])
    if asked.has("-m") and asked.has("pip"):
        yield from read_pip_command(asked, output)


def _own_version(code: str, output: Output) -> Iterator[Piece]:
    """Read `import NAME; print(NAME.__version__)`."""
    names = re.findall(r"\b(\w+)\.__version__", code)
    lines = output.stdout.split()
    if output.code == 0 and len(names) == 1 and "torch" not in names and lines:
        name = {"flashinfer": "flashinfer-python", "dynamo": "ai-dynamo"}.get(names[0], names[0])
        if re.match(r"\d+\.\d+", lines[-1]):
            yield known(PythonPackages({name: lines[-1]}), f"{name} {lines[-1]}")


def _torch(asked: Asked, code: str, output: Output) -> Iterator[Piece]:
    reading = read_torch(output.stdout)
    if isinstance(reading, Known):
        yield Piece(PythonPackages, reading)
    if "get_arch_list" in code:
        archs = tuple(dict.fromkeys(re.findall(r"\b((?:sm|compute)_\d+[af]?)\b", output.stdout)))
        if archs:
            yield known(PythonPackages({}, None, "", archs), " ".join(archs))
    if "is_available" in code and output.code == 0:
        yield from _available(asked, output)


def _available(asked: Asked, output: Output) -> Iterator[Piece]:
    """`torch.cuda.is_available()` says only yes or no; the error beside it says why."""
    word = re.search(r"\b(True|False)\b", output.stdout)
    if word is None:
        return
    count = re.search(r"\b(?:True|False)\s+(\d+)\b", output.stdout)
    code = 0 if word[1] == "True" else 100
    if code and isinstance(read_error(output.text), Known):
        return
    devices = int(count[1]) if count else None
    yield known(CudaProof(code, devices, asked.place, f"torch.cuda.is_available: {word[1]}"),
                f"torch.cuda.is_available: {word[1]}")  # fmt: skip


def read_libraries(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ldconfig -p | grep libcuda`: a cache without libcuda leaves CUDA nothing to load."""
    looked_for = asked.matches("libcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1")
    if looked_for and output.code in (0, 1) and "libcuda.so" not in output.text:
        yield absent(CudaProof, "ldconfig knows no libcuda.so.1")


def read_env_command(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `env`, `printenv [NAME]`."""
    names = asked.operands
    if asked.place == "frontend":
        yield from read_side(asked, output)
    elif names and asked.program == "printenv":
        is_unset = asked.is_excused and not output.stdout
        yield from _variables(names, replace(output, code=1) if is_unset else output)
    elif output.code in (0, 1):
        yield Piece(Environment, read_env(output.stdout, asked.pattern))


def read_side(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `frontend: printenv HF_HUB_OFFLINE`: may the frontend look a model up elsewhere?"""
    if "HF_HUB_OFFLINE" in asked.operands:
        value = output.stdout.strip()
        yield known(Serving(hub_offline=value not in ("", "0")), f"HF_HUB_OFFLINE={value}")


def _variables(names: tuple[str, ...], output: Output) -> Iterator[Piece]:
    values = output.stdout.rstrip("\n").split("\n") if output.code == 0 else []
    if output.code == 1 and not output.stdout.strip():
        yield known(Environment({}, frozenset(names)), f"{names[0]} is not set")
    elif len(values) == len(names):
        told = dict(zip(names, values, strict=True))
        yield known(Environment(told), ", ".join(f"{k}={v}" for k, v in told.items()))


def read_echo(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `echo $NAME`: an empty line says that it is not set."""
    names = [word.strip("${}") for word in asked.words if word.startswith("$")]
    if len(names) == 1 and names[0].startswith(PREFIXES):
        value = output.stdout.strip()
        environment = Environment({names[0]: value} if value else {}, frozenset())
        yield known(environment if value else Environment({}, frozenset(names)), output.line)


def read_toolkit_file(output: Output) -> Iterator[Piece]:
    """Read /usr/local/cuda/version.json."""
    try:
        told = json.loads(output.stdout)
        version = str(told["cuda_nvcc"]["version"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    if re.fullmatch(r"\d+\.\d+\.\d+", version):
        short = ".".join(version.split(".")[:2])
        path = "/usr/local/cuda/bin/nvcc"
        yield known(Nvcc(short, version, path), f"version.json: cuda_nvcc {version}")


def read_toolkit_folder(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read `ls -d /usr/local/cuda*`: no folder is no toolkit; a folder alone is no compiler."""
    if output.has_no_file and not output.stdout.strip():
        yield absent(Nvcc, output.line)
    elif compiler := re.search(r"(?m)^(\S*/bin/nvcc)$", output.stdout):
        version = re.search(r"cuda-(\d+\.\d+)", compiler[1])
        number = version[1] if version else ""
        yield known(Nvcc(number, number, compiler[1]), compiler[1])
    elif found := re.search(r"(\S*cuda-\d+\.\d+)", output.stdout):
        yield unknown(Nvcc, f"{found[1]} is there; whether nvcc is in it was not told", found[1])
    del asked


def read_cuda_programs(asked: Asked, output: Output) -> Iterator[Piece]:
    """Read what a CUDA program said, a sample or an engine: only errors that CUDA names."""
    error = read_error(output.text, asked.place)
    if isinstance(error, Known):
        yield Piece(CudaProof, error)


READERS: Readers = {
    "nvcc": read_nvcc,
    "command": read_lookup,
    "which": read_lookup,
    "type": read_lookup,
    "hash": read_lookup,
    "whereis": read_lookup,
    "ldconfig": read_libraries,
    **dict.fromkeys(("gcc", "g++", "cc", "clang", "ninja", "ptxas"), read_compiler),
    **dict.fromkeys(("pip", "pip3", "uv", "conda"), read_pip_command),
    **dict.fromkeys(("python", "python3", "python3.10", "python3.11", "python3.12"), read_python),
    "env": read_env_command,
    "printenv": read_env_command,
    "echo": read_echo,
    **dict.fromkeys(("deviceQuery", "vectorAdd"), read_cuda_programs),
}  # fmt: skip
