"""A worker without a GPU: registers with a real Dynamo as `dynamo.sglang` does, makes up tokens.

Runs under the Python that has ai-dynamo, as a program of its own. What it stands for is the
outside of a worker: component names, worker types, bootstrap endpoint, local paths in the card,
and the time that prefill and decode take. Prefill and decode of one worker share one device, so
a long prompt stalls running streams of an aggregated worker, as on a GPU.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvloop
from dynamo.common.utils.runtime import create_runtime
from dynamo.llm import ModelInput, ModelRuntimeConfig, ModelType, WorkerType, register_model
from dynamo.runtime.logging import configure_dynamo_logging

TOKENS = range(1000, 2000)
"""Ids to emit: each decodes to whole printable text in the toy tokenizer."""

log = logging.getLogger("worker")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model-path", required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--mode", choices=("agg", "prefill", "decode"), default="agg")
    parser.add_argument("--namespace", default="dynamo")
    parser.add_argument("--bootstrap-port", type=int, default=8998)
    parser.add_argument("--load-s", type=float, default=0.0, help="before it registers")
    parser.add_argument("--load-while", default="", help="a file: loads as long as it is there")
    parser.add_argument("--prefill-tokens-per-s", type=float, default=100_000.0)
    parser.add_argument("--chunk-tokens", type=int, default=32768, help="prefill at a stretch")
    parser.add_argument("--token-gap-ms", type=float, default=5.0)
    parser.add_argument("--stall-every", type=int, default=0, help="tokens between two stalls")
    parser.add_argument("--stall-ms", type=float, default=0.0)
    parser.add_argument("--page-size", type=int, default=64)
    return parser.parse_args()


class Engine:
    """One pretended GPU."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.chance = random.Random(7)
        self.device = asyncio.Lock()

    async def prefill(self, request: dict[str, Any], context: Any) -> AsyncIterator[dict[str, Any]]:
        """Tell where the KV cache can be fetched, then take the time that the prompt needs."""
        tokens = len(request.get("token_ids") or [])
        given = request.get("bootstrap_info") or {}
        handover = {
            "bootstrap_host": given.get("bootstrap_host", "127.0.0.1"),
            "bootstrap_port": given.get("bootstrap_port", self.options.bootstrap_port),
            "bootstrap_room": given.get("bootstrap_room") or self.chance.getrandbits(62),
        }
        log.info("prefill started request_id=%s tokens=%d", context.id(), tokens)
        yield {"token_ids": [], "finish_reason": None, "disaggregated_params": handover}
        await self._work_through(tokens)
        log.info("prefill done request_id=%s", context.id())

    async def decode(self, request: dict[str, Any], context: Any) -> AsyncIterator[dict[str, Any]]:
        """Emit made-up tokens, one a gap, until the request has enough or is cancelled."""
        await self._await_prompt(request)
        want = (request.get("stop_conditions") or {}).get("max_tokens") or 16
        log.info("decode started request_id=%s max_tokens=%d", context.id(), want)
        for number in range(1, want + 1):
            if context.is_stopped():
                log.info("decode cancelled request_id=%s tokens=%d", context.id(), number - 1)
                return
            await asyncio.sleep(self._gap_ms(number) / 1000)
            async with self.device:  # no decode step while a prefill chunk runs here
                pass
            finish = "length" if number == want else None
            yield {"token_ids": [self.chance.choice(TOKENS)], "finish_reason": finish}
        log.info("decode done request_id=%s tokens=%d", context.id(), want)

    async def _await_prompt(self, request: dict[str, Any]) -> None:
        """Own prefill when aggregated; else wait as long as the other worker takes for it."""
        tokens = len(request.get("token_ids") or [])
        if self.options.mode == "agg":
            await self._work_through(tokens)
        elif request.get("bootstrap_info"):  # the router sent both halves at once
            await asyncio.sleep(tokens / self.options.prefill_tokens_per_s)
        elif not (request.get("prefill_result") or {}).get("disaggregated_params"):
            raise RuntimeError("decode request without bootstrap information")

    async def _work_through(self, tokens: int) -> None:
        """Hold the device for a prompt, chunk by chunk."""
        while tokens > 0:
            chunk = min(tokens, self.options.chunk_tokens)
            async with self.device:
                await asyncio.sleep(chunk / self.options.prefill_tokens_per_s)
            tokens -= chunk
            await asyncio.sleep(0)

    def _gap_ms(self, number: int) -> float:
        every = self.options.stall_every
        stalls = every and number % every == 0
        return float(self.options.stall_ms if stalls else self.options.token_gap_ms)


def runtime_config(options: argparse.Namespace) -> Any:
    config = ModelRuntimeConfig()
    config.total_kv_blocks = 16384
    config.max_num_seqs = 256
    config.max_num_batched_tokens = options.chunk_tokens
    if options.mode == "prefill":
        config.set_disaggregated_endpoint("127.0.0.1", options.bootstrap_port)
    return config


async def register(options: argparse.Namespace, endpoint: Any) -> None:
    """Publish the model card, under the names and needs that `dynamo.sglang` gives."""
    kinds = {
        "agg": (WorkerType.Aggregated, []),
        "prefill": (WorkerType.Prefill, [[WorkerType.Decode]]),
        "decode": (WorkerType.Decode, [[WorkerType.Prefill]]),
    }
    worker_type, needs = kinds[options.mode]
    chat = ModelType.Chat | ModelType.Completions
    await register_model(
        ModelInput.Tokens,
        ModelType.Prefill if options.mode == "prefill" else chat,
        endpoint,
        options.model_path,
        options.served_model_name,
        kv_cache_block_size=options.page_size,
        runtime_config=runtime_config(options),
        worker_type=worker_type,
        needs=needs,
    )
    log.info("registered %s as %s", options.model_path, options.served_model_name)


async def main() -> None:
    options = arguments()
    runtime, loop = create_runtime(
        os.environ.get("DYN_DISCOVERY_BACKEND", "etcd"),
        os.environ.get("DYN_REQUEST_PLANE", "tcp"),
        os.environ.get("DYN_EVENT_PLANE"),
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, runtime.shutdown)
    component = "prefill" if options.mode == "prefill" else "backend"
    endpoint = runtime.endpoint(f"{options.namespace}.{component}.generate")
    log.info("loading for %g s", options.load_s)
    await asyncio.sleep(options.load_s)
    while options.load_while and Path(options.load_while).exists():
        await asyncio.sleep(0.2)
    engine = Engine(options)
    work = engine.prefill if options.mode == "prefill" else engine.decode
    await asyncio.gather(
        endpoint.serve_endpoint(work, graceful_shutdown=True), register(options, endpoint)
    )


if __name__ == "__main__":
    configure_dynamo_logging()
    uvloop.run(main())
