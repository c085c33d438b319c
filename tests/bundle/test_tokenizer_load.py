"""A tokenizer that loads, and ones that do not; in this Python, and in the one that serves."""

from __future__ import annotations

import builtins
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bringup.bundle.load_command import load_command
from bringup.core.errors import UsageError
from bringup.edge.tokenizer_load import load_tokenizer
from tests.dynamo.model import toy_kimi, toy_model


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_json_tokenizer_round_trips_and_its_template_renders(tmp_path: Path) -> None:
    loaded = load_tokenizer(files_of(toy_model(tmp_path)))
    assert loaded.kind == "tokenizers"
    assert loaded.tokens > 10
    assert loaded.prompt.endswith("<|im_assistant|><|im_middle|>")


def test_tiktoken_vocabulary_round_trips(tmp_path: Path) -> None:
    loaded = load_tokenizer(files_of(toy_kimi(tmp_path)))
    assert (loaded.kind, loaded.prompt) == ("tiktoken", "")


def cut(name: str) -> Callable[[Mapping[str, bytes]], dict[str, bytes]]:
    return lambda files: {**files, name: files[name][: len(files[name]) // 2]}


def say(name: str, data: bytes) -> Callable[[Mapping[str, bytes]], dict[str, bytes]]:
    return lambda files: {**files, name: data}


BROKEN = {
    "half a tokenizer.json": (toy_model, cut("tokenizer.json"), r"cannot load tokenizer\.json"),
    "an empty object": (toy_model, say("tokenizer.json", b"{}"), r"cannot load tokenizer\.json"),
    "half a vocabulary": (toy_kimi, say("tiktoken.model", b"YQ== 0\n"), "single bytes lack"),
    "garbage for a vocabulary": (toy_kimi, say("tiktoken.model", b"\xff\n"), "line 1"),
    "a template with a fault": (
        toy_model,
        say("chat_template.jinja", b"{% for x in %}"),
        "cannot render",
    ),
    "a template that refuses": (
        toy_model,
        say("chat_template.jinja", b"{{ raise_exception('no') }}"),
        "cannot render",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_does_not_load_is_named(tmp_path: Path, case: str) -> None:
    write, spoil, words = BROKEN[case]
    with pytest.raises(UsageError, match=words):
        load_tokenizer(spoil(files_of(write(tmp_path))))


def test_missing_package_is_told_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, real = files_of(toy_model(tmp_path)), builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "tokenizers":
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError) as error:
        load_tokenizer(files)
    assert "bringup[tokenizer]" in error.value.remedy


@pytest.mark.slow
@pytest.mark.xdist_group("dynamo")
def test_command_for_the_image_loads_the_folder_in_a_python_with_transformers(
    tmp_path: Path, dynamo_env: Path
) -> None:
    """The words after the image's name, run by the Python that stands for the image's."""
    words = load_command("registry.example/dynamo:1.3.0.post1", str(toy_model(tmp_path)))
    script, trust = (str(word) for word in words[-2:])
    script = script.replace("/model", str(tmp_path))
    done = subprocess.run(
        [dynamo_env, "-c", script, trust], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("loads ")


def test_command_for_the_image_has_no_network_and_cannot_write() -> None:
    words = [str(word) for word in load_command("image", "/raid/K3")]
    assert words[words.index("--network") + 1] == "none"
    assert words[words.index("--volume") + 1].endswith(":ro")
