"""Writes inventory folders for tests."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

HOSTS = """\
groups:
  b300: {hosts: "b300-[04,07]", kind: b300}
hosts:
  b300-04: {address: 192.0.2.4}
  b300-07: {address: 192.0.2.7}
  b200-01: {address: 192.0.2.21, gpu_count: 2}
"""

KIND = "product_names: [NVIDIA B300 SXM6 AC]\n"

DEPLOYMENT = """\
engine: vllm
model: {served_name: qwen, path: /models/qwen}
image: {name: vllm, reference: "vllm:1"}
roles:
  serve: {mode: aggregated, hosts: b200-01}
"""


def write(
    tmp_path: Path, hosts: str = HOSTS, kind: str = KIND, deployment: str = DEPLOYMENT
) -> Path:
    """Write an inventory and return its folder; an empty text leaves its file out."""
    folder = tmp_path / "inventory"
    for name, text in (
        ("hosts.yml", hosts),
        ("kinds/b300.yml", kind),
        ("deployments/demo.yml", deployment),
    ):
        if text:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(dedent(text))
    return folder
