"""A stand-in for vLLM without a GPU: `vllm serve`, `vllm bench serve`, and `vllm-router`.

The server speaks what bringup asks of vLLM's; the measuring tool measures it for real and writes
the keys that vllm/benchmarks/serve.py of 0.24.0 writes. How it behaves stands in behave.json of
the model folder, by topology: {"tp": {"say": TEXT, "exit": 1}, "bench": {"exit": 3}, "gap_ms": …}.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any


def options(words: list[str]) -> dict[str, list[str]]:
    """Return flags with their values; what is no flag stands under ""."""
    found: dict[str, list[str]] = {"": []}
    name = ""
    for word in words:
        if word.startswith("--"):
            name = word
            found.setdefault(name, [])
        else:
            found[name].append(word)
            name = ""
    return found


def behaviour(model: str) -> dict[str, Any]:
    path = Path(model) / "behave.json"
    told: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return told


class Handler(BaseHTTPRequestHandler):
    """Answers as vLLM does, one made-up token a gap."""

    protocol_version = "HTTP/1.1"
    name = "toy"
    gap_s = 0.002
    silent = False
    counted = 0
    lock = threading.Lock()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing of single requests."""

    def do_GET(self) -> None:
        if self.path == "/metrics":
            body = f'vllm:request_success_total{{model="{self.name}"}} {type(self).counted}\n'
            self.answer(body.encode(), "text/plain")
            return
        listed = {"object": "list", "data": [{"id": self.name, "object": "model"}]}
        self.answer(json.dumps(listed if self.path == "/v1/models" else {}).encode())

    def answer(self, body: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        wish = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        chats = "chat" in self.path
        count = 0 if self.silent and not chats else int(wish.get("max_tokens") or 16)
        with self.lock:
            type(self).counted += 1
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for number in range(count):
            time.sleep(self.gap_s)
            last = number == count - 1
            self.chunk({"text": "a ", "delta": {"content": "a "} if chats else None,
                        "index": 0, "finish_reason": "length" if last else None})  # fmt: skip
        usage = {"prompt_tokens": 5, "completion_tokens": count, "total_tokens": 5 + count}
        self.event({"id": "cmpl-1", "model": self.name, "choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def chunk(self, choice: dict[str, Any]) -> None:
        self.event({"id": "cmpl-1", "model": self.name, "choices": [choice]})

    def event(self, data: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()


def serve(words: list[str]) -> None:
    given = options(words)
    model = given[""][0]
    told = behaviour(model)
    copies = int(given.get("--data-parallel-size", ["1"])[0])
    shape = "1p1d" if "--kv-transfer-config" in given else "dp" if copies > 1 else "tp"
    own = told.get(shape, {})
    print(f"INFO vLLM API server version 0.24.0, {shape}", flush=True)
    time.sleep(own.get("load_s", 0.2))
    if own.get("say"):
        print(own["say"], flush=True)
    if "exit" in own:
        sys.exit(own["exit"])
    Handler.name = given["--served-model-name"][0]
    Handler.gap_s = own.get("gap_ms", 2) / 1000
    Handler.silent = bool(told.get("bench", {}).get("silent"))
    port = int(given.get("--port", ["8000"])[0])
    server = ThreadingHTTPServer(("0.0.0.0", port), Handler)
    server.daemon_threads = True
    server.request_queue_size = 128
    print("INFO:     Application startup complete.", flush=True)
    server.serve_forever()


class Router(BaseHTTPRequestHandler):
    """Sends a prompt to the prefill worker first, then to decode's, whose answer it passes on."""

    prefill = ""
    decode = ""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing of single requests."""

    def do_GET(self) -> None:
        self.passed(urllib.request.Request(self.decode + self.path))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        head = {"Content-Type": "application/json"}
        first = json.dumps({**json.loads(body), "max_tokens": 1}).encode()
        with urllib.request.urlopen(
            urllib.request.Request(self.prefill + self.path, first, head)
        ) as answer:
            answer.read()
        self.passed(urllib.request.Request(self.decode + self.path, body, head))

    def passed(self, request: urllib.request.Request) -> None:
        with urllib.request.urlopen(request) as answer:
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.end_headers()
            while piece := answer.read1(65536):
                self.wfile.write(piece)
                self.wfile.flush()


def router(words: list[str]) -> None:
    given = options(words)
    Router.prefill, Router.decode = given["--prefill"][0], given["--decode"][0]
    server = ThreadingHTTPServer(("0.0.0.0", int(given["--port"][0])), Router)
    server.daemon_threads = True
    server.serve_forever()


def bench(words: list[str]) -> None:
    given = options(words)
    told = behaviour(given["--model"][0]).get("bench", {})
    if told.get("say"):
        print(told["say"], file=sys.stderr, flush=True)
    time.sleep(told.get("take_s", 0))
    if "exit" in told:
        sys.exit(told["exit"])
    count = int(given["--num-prompts"][0])
    url = given["--base-url"][0] + "/v1/completions"
    wish = {"model": given["--served-model-name"][0], "prompt": "a",
            "max_tokens": int(given["--random-output-len"][0]), "stream": True}  # fmt: skip
    began = time.monotonic()
    with ThreadPoolExecutor(count) as pool:
        asked = list(pool.map(lambda _: list(arrivals(url, wish)), range(count)))
    seconds = time.monotonic() - began
    folder = Path(given["--result-dir"][0])
    folder.mkdir(parents=True, exist_ok=True)
    result = summary(asked, seconds, int(given["--random-input-len"][0]))
    (folder / given["--result-filename"][0]).write_text(json.dumps(result))
    print("============ Serving Benchmark Result ============")


def arrivals(url: str, wish: dict[str, Any]) -> Iterator[float]:
    """Yield when the request was sent, then when each token came."""
    yield time.monotonic()
    body = json.dumps(wish).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        for line in answer:
            if b'"text"' in line:
                yield time.monotonic()


def summary(asked: list[list[float]], seconds: float, input_tokens: int) -> dict[str, Any]:
    tokens = sum(len(times) - 1 for times in asked)
    first = [(times[1] - times[0]) * 1000 for times in asked if len(times) > 1]
    means = [(t[-1] - t[1]) / (len(t) - 2) * 1000 for t in asked if len(t) > 2]
    gaps = [(b - a) * 1000 for t in asked for a, b in pairwise(t[1:])]
    return {
        "date": "20261129-191116", "backend": "openai", "num_prompts": len(asked),
        "request_rate": "inf", "duration": seconds, "completed": len(asked), "failed": 0,
        "total_input_tokens": input_tokens * len(asked), "total_output_tokens": tokens,
        "request_throughput": len(asked) / seconds, "output_throughput": tokens / seconds,
        **spread("ttft", first), **spread("tpot", means), **spread("itl", gaps),
    }  # fmt: skip


def spread(name: str, values: list[float]) -> dict[str, float]:
    if not values:
        return {f"{kind}_{name}_ms": float("nan") for kind in ("mean", "median", "p95", "p99")}
    ordered = sorted(values)
    marks = {f"p{p}": ordered[min(len(ordered) - 1, len(ordered) * p // 100)] for p in (50, 95, 99)}
    told = {"mean": statistics.fmean(values), "median": statistics.median(values), **marks}
    return {f"{kind}_{name}_ms": value for kind, value in told.items()}


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    name, words = Path(sys.argv[0]).name, sys.argv[1:]
    if name == "vllm-router":
        router(words)
    elif words[:2] == ["bench", "serve"]:
        bench(words[2:])
    else:
        serve(words[1:])


if __name__ == "__main__":
    main()
