"""The folder of a model: are all weights there, and are its small files the same everywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.document import digest
from ..core.facts import Probe
from ..core.reading import Absent, Known, Reading, Unknown
from ..core.script import Section
from ..core.words import HostPath, quote
from .text import answered, decimal, first, natural, rows, told, whole

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".ckpt", ".h5", ".msgpack", ".onnx")
"""How names of weight files end."""

UNFINISHED = (".incomplete", ".part", ".partial", ".tmp", ".aria2", ".lock", ".crdownload")
"""How names of files end that a download has not finished."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What lies in a model folder, one level deep.

    `files`: name to bytes, links followed. `shards`: the weight files that the index names, ()
    without an index. `tensor_bytes`: what the index says that all tensors take. `sums`: SHA-256 of
    the small files by name. `real` is the path with all links followed.
    """

    path: str
    real: str = ""
    files: Mapping[str, int] = field(default_factory=dict)
    shards: tuple[str, ...] = ()
    tensor_bytes: int | None = None
    sums: Mapping[str, str] = field(default_factory=dict)
    is_sized: bool = True  # False: only names were listed, and the bytes in `files` mean nothing

    @property
    def weights(self) -> Mapping[str, int]:
        """Weight files with their bytes."""
        return {name: size for name, size in self.files.items() if name.endswith(WEIGHTS)}

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weight files that count: those of the index, or all without one."""
        wanted = self.shards or tuple(self.weights)
        return sum(self.files.get(name, 0) for name in wanted)

    @property
    def identity(self) -> str:
        """A digest that is equal on two hosts whose folders agree in names, sizes and sums.

        Weight files that the index does not name do not count: no engine reads them.
        """
        names = self.shards or tuple(self.weights)
        counted = {name: self.files[name] for name in names if name in self.files}
        return digest({"weights": counted, "sums": self.sums})


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What config.json says of itself. `text` is what an engine reads."""

    model_type: str
    architectures: tuple[str, ...] = ()
    sum: str = ""
    experts: int | None = None


@dataclass(frozen=True, slots=True)
class ReadSpeed:
    """How fast a shard is read past the page cache, in MB/s (opt-in)."""

    path: str
    mb_s: float


def model_probe(path: str) -> Probe[ModelFolder]:
    """Return the question for one model folder. It reads small files whole, weights not at all."""
    ends = " ".join(f"! -name '*{end}'" for end in (*WEIGHTS, ".index.json", *UNFINISHED))
    script = f"""
m={quote(HostPath(path))}; p={quote(path)}
limit=
command -v timeout >/dev/null && limit='timeout -k 1 5'
$limit ls -d "$m/" || exit
cd "$m" || exit
real=$(pwd -P); root=$(cd "$R/" && pwd -P); real=${{real#"${{root%/}}"}}
printf 'path\\t%s\\t%s\\n' "$p" "$real"
stat -L -c 'file	%s	%n' -- * 2>/dev/null
i=model.safetensors.index.json
[ -f "$i" ] || for i in *.safetensors.index.json; do break; done
if [ -f "$i" ]; then
  printf 'index\\t%s\\n' "$i"
  tr ',{{}}' '\\n\\n\\n' <"$i" | sed -n \\
    -e 's/^.*: *"\\([^"]*\\.safetensors\\)".*$/shard	\\1/p' \\
    -e 's/^.*"total_size" *: *\\([0-9][0-9]*\\).*$/total	\\1/p' | sort -u
fi
find -L . -maxdepth 1 -type f -size -65536k {ends} -exec sha256sum {{}} + 2>/dev/null |
  sed 's/^/sum	/'
echo 'end	of model'
"""
    return Probe("model", ModelFolder, script, parse_model, seconds=15)


def parse_model(section: Section) -> Reading[ModelFolder]:
    """Return what lies in the folder; absent only where its path does not exist."""
    if not section.trouble and section.exit not in (0, None):
        if "No such file or directory" in section.first:
            return Absent(section.first)
        if "Not a directory" in section.first:
            return Absent(section.first)
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = told(answer.value)
    path, _, real = first(found, "path").partition("\t")
    if first(found, "end") != "of model" or not path.startswith("/"):
        return Unknown("the list of the model's files was cut off", section.first)
    files = {r[2]: int(r[1]) for r in rows(answer.value) if _is_file(r)}
    shards = tuple(sorted(set(found.get("shard", ())), key=natural))
    if "index" in found and not shards:
        return Unknown(f"{first(found, 'index')} names no weight file", section.first)
    folder = ModelFolder(
        path, real, files, shards, whole(first(found, "total")), _sums(found.get("sum", ()))
    )
    gib = folder.weight_bytes / 1024**3
    return Known(folder, f"{path}: {len(folder.weights)} weight files, {gib:.1f} GiB")


def _is_file(row: tuple[str, ...]) -> bool:
    return row[0] == "file" and len(row) == 3 and whole(row[1]) is not None


def _sums(lines: tuple[str, ...]) -> dict[str, str]:
    pairs = (re.fullmatch(r"([0-9a-f]{64})[ *]+(?:\./)?(.+)", line) for line in lines)
    return {pair[2]: pair[1] for pair in pairs if pair}


def config_probe(path: str) -> Probe[ModelConfig]:
    """Return the question for a model's config.json."""
    script = f"""
f={quote(HostPath(path.rstrip("/") + "/config.json"))}
ls -d "$f" >/dev/null || exit
sha256sum <"$f"; cat "$f"
"""
    return Probe("model_config", ModelConfig, script, parse_config)


def parse_config(section: Section) -> Reading[ModelConfig]:
    """Read config.json; one that is no JSON object is unknown."""
    if not section.trouble and section.exit and "No such file or directory" in section.first:
        return Absent(section.first)
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    head, _, body = answer.value.partition("\n")
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return Unknown("config.json is no JSON", section.first)
    kind = document.get("model_type") if isinstance(document, dict) else None
    if not isinstance(kind, str) or not kind:
        return Unknown("config.json names no model_type", section.first)
    listed = document.get("architectures")
    names = tuple(str(name) for name in listed) if isinstance(listed, list) else ()
    config = ModelConfig(kind, names, head.split(" ")[0], _experts(document))
    return Known(config, f"model_type {kind}, {', '.join(names)}")


def _experts(document: Mapping[str, object]) -> int | None:
    """Return how many experts a mixture has; language models may nest their own settings."""
    inner = document.get("text_config")
    places = (document, inner) if isinstance(inner, Mapping) else (document,)
    for place in places:
        for key in ("num_experts", "n_routed_experts", "num_local_experts"):
            value = place.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
    return None


def speed_probe(path: str) -> Probe[ReadSpeed]:
    """Return the opt-in question how fast a shard is read: 1 GiB, past the page cache."""
    script = f"""
cd {quote(HostPath(path))} || exit
f=$(ls -S -- *.safetensors 2>/dev/null | head -n 1)
[ -n "$f" ] || {{ echo "no safetensors file"; exit 4; }}
printf 'file\\t%s\\n' "$f"
dd if="$f" of=/dev/null bs=16M count=64 iflag=direct
"""
    return Probe("read_speed", ReadSpeed, script, parse_speed, seconds=30, volatile=True)


def parse_speed(section: Section) -> Reading[ReadSpeed]:
    """Read what ``dd`` says of bytes and seconds."""
    answer = answered(section)
    if not isinstance(answer, Known):
        return answer
    found = re.search(r"([0-9]{1,15}) bytes .*copied, ([0-9.]+)(?:e[-+]?\d+)? s", answer.value)
    seconds = decimal(found[2]) if found else None
    if not found or not seconds:
        return Unknown("dd told no speed", section.first)
    speed = ReadSpeed(first(told(answer.value), "file"), int(found[1]) / seconds / 1e6)
    return Known(speed, found[0])
