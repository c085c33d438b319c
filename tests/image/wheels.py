"""Small wheels made on the spot, so that pip's resolver has an index without a network."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    requires: Iterable[str] = (),
    files: Mapping[str, str] | None = None,
) -> Path:
    """Write a pure wheel with these requirements and files; return its path."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    extras = sorted(
        {line.split("extra ==")[1].strip(" '\"") for line in requires if "extra" in line}
    )
    metadata = "\n".join(
        [
            "Metadata-Version: 2.1",
            f"Name: {name}",
            f"Version: {version}",
            *(f"Provides-Extra: {extra}" for extra in extras),
            *(f"Requires-Dist: {line}" for line in requires),
        ]
    )
    content = {
        f"{name.replace('-', '_')}.py": "",
        **(files or {}),
        f"{info}/METADATA": metadata + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*content, f"{info}/RECORD"))
    path = folder / f"{stem}-py3-none-any.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as wheel:
        for name_, body in {**content, f"{info}/RECORD": record}.items():
            wheel.writestr(name_, body)
    return path


def make_dynamo(folder: Path) -> None:
    """Write wheels that mirror what the index has of ai-dynamo around 1.3.0, metadata alone."""
    needs = (
        "ai-dynamo-runtime==1.3.0.post1",
        "kubernetes<33.0.0,>=32.0.1",
        "sglang[diffusion]==0.5.14; extra == 'sglang'",
        "nixl[cu13]<1.1.0,>=1.0.0; extra == 'sglang'",
    )
    make_wheel(folder, "ai-dynamo", "1.2.1")
    make_wheel(folder, "ai-dynamo", "1.3.0.post1", needs)
    make_wheel(folder, "ai-dynamo", "1.3.1", needs)
    make_wheel(folder, "ai-dynamo", "1.4.0.dev20260813")
    make_wheel(folder, "ai-dynamo-runtime", "1.3.0.post1")
    make_wheel(folder, "kubernetes", "32.0.1", ("websocket-client>=0.32",))
    make_wheel(folder, "websocket-client", "1.9.2")
    make_wheel(folder, "sglang", "0.5.14")
    make_wheel(folder, "sglang", "0.5.18")
    make_wheel(folder, "needs-old-engine", "1.0", ("sglang<0.5.15",))
