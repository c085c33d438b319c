"""The proof that a tokenizer loads, as a command for the very image that will serve."""

from __future__ import annotations

from ..core.words import Word

_SCRIPT = """
import sys
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("/model", trust_remote_code=sys.argv[1] == "yes")
sample = "Bring up the host, then ask: 3 x 7 = 21?"
ids = tokenizer.encode(sample, add_special_tokens=False)
assert tokenizer.decode(ids) == sample, tokenizer.decode(ids)
messages = [{"role": "user", "content": "hello"}]
try:
    prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
except (ImportError, ValueError) as error:  # a model may make its text without a template
    prompt = f"not rendered: {error}"
print("loads", type(tokenizer).__name__, len(ids), "tokens; prompt", repr(prompt[:200]))
"""


def load_command(
    image: str,
    folder: str,
    *,
    trust_remote_code: bool = False,
    engine: tuple[str, ...] = ("docker",),
) -> tuple[Word, ...]:
    """Return the command that loads a folder's tokenizer inside an image, without any network.

    It ends with 0 and a line "loads …", or with the traceback of what does not load. A model's own
    Python files run only where `trust_remote_code` says so.
    """
    mount = f"{folder}:/model:ro"
    return (
        *engine, "run", "--rm", "--network", "none", "--env", "HF_HUB_OFFLINE=1",
        "--volume", mount, "--entrypoint", "python3", image,
        "-c", _SCRIPT, "yes" if trust_remote_code else "no",
    )  # fmt: skip
