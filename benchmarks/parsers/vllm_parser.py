"""Ask vLLM's own parser, on a machine without a GPU, whether it takes rendered words.

Not part of the tests: it needs some 2 GB. In a throw-away environment of the version in question:

    python3 -m venv /tmp/vllm && /tmp/vllm/bin/pip install torch transformers uvloop
    /tmp/vllm/bin/pip install --no-deps vllm==0.24.0     # then, one by one, what import asks for
    /tmp/vllm/bin/python benchmarks/parsers/vllm_parser.py WORDS.jsonl

WORDS.jsonl has a JSON list a line, the words after `vllm serve` with the model as `--model MODEL`.
Prints how many flags the parser knows, and for each line whether it was taken.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(files: list[str]) -> int:
    """Print the parser's word on every line; return how many it refused."""
    from vllm import platforms  # type: ignore[import-not-found]
    from vllm.platforms.cpu import CpuPlatform  # type: ignore[import-not-found]

    # The published wheel finds no device here and gives up before it parses anything.
    platforms._current_platform = platforms.current_platform = CpuPlatform()
    from vllm.entrypoints.openai.cli_args import (  # type: ignore[import-not-found]
        make_arg_parser,
    )
    from vllm.utils.argparse_utils import (  # type: ignore[import-not-found]
        FlexibleArgumentParser,
    )

    parser = make_arg_parser(FlexibleArgumentParser())
    known = {word for action in parser._actions for word in action.option_strings}
    print(f"{sum(word.startswith('--') for word in known)} flags")
    lines = [line for file in files for line in Path(file).read_text().splitlines() if line]
    refused = [line for line in lines if not _takes(parser, json.loads(line))]
    return len(refused)


def _takes(parser: object, words: list[str]) -> bool:
    try:
        parser.parse_args(words)  # type: ignore[attr-defined]
    except SystemExit:
        print(f"refused  {' '.join(words)}")
        return False
    print(f"taken    {' '.join(words)}")
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
