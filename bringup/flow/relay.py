"""Let one host hand the parts of an image on to others, over the network between them.

The controller's line carries a big image once; the hosts' own network, which is faster, the rest.
The host that has it serves its staged parts from a container of that very image, since it has a
Python; the others fetch them with curl or wget and check each sum. What that leaves out, the
controller sends.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterable, Iterator

from ..core.errors import CommandFailed, ToolError
from ..core.steps import Run
from ..core.words import HostPath
from ..edge.engine import Engine

START_S = 60.0

# Listings are refused: the folder's random name is what lets others in.
_SERVE = """
import functools, http.server, sys
class Parts(http.server.SimpleHTTPRequestHandler):
    def list_directory(self, path):
        self.send_error(404)
    def log_message(self, *words):
        pass
handler = functools.partial(Parts, directory="/srv")
server = http.server.ThreadingHTTPServer((sys.argv[1], 0), handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()
"""

# Fixed text: folder and address come as arguments, the names of the parts on standard input.
_FETCH = r"""
d=$1 url=$2
mkdir -p "$d" && cd "$d" || exit
get() {
  if command -v curl >/dev/null; then curl -fsS --retry 3 -C - -o "$2" "$1"
  else wget -q -c -O "$2" "$1"; fi </dev/null
}
while read -r name; do
  [ ! -f "$name" ] || continue
  get "$url/$name" "$name.new" || exit
  sum=$(sha256sum "$name.new")
  case $name in
  *-"$(printf '%.16s' "$sum")".part) mv "$name.new" "$name" ;;
  *) rm -f "$name.new"; echo "$name came with another sum" >&2; exit 92 ;;
  esac
done
"""


@contextlib.contextmanager
def serving(engine: Engine, image: str, folder: str, address: str) -> Iterator[str]:
    """Serve a folder of a host on one of its addresses, and give the URL of the parts.

    Raises CommandFailed when the container does not come up.
    """
    token = secrets.token_hex(16)
    name = f"bringup-relay-{token[:8]}"
    engine.do(
        "run", "--detach", "--rm", "--name", name, "--network", "host",
        "--volume", f"{folder}:/srv/{token}:ro", "--entrypoint", "python3",
        image, "-c", _SERVE, address,
        why=f"cannot serve parts on {engine.name}",
    )  # fmt: skip
    try:
        yield f"http://{address}:{_port(engine, name)}/{token}"
    finally:
        with contextlib.suppress(ToolError):  # a host that is gone by now serves nobody
            engine.run("rm", "--force", name)


def _port(engine: Engine, name: str) -> int:
    """Wait until the server says its port."""
    deadline = time.monotonic() + START_S
    said = ""
    while time.monotonic() < deadline:
        result = engine.run("logs", name)
        said = result.tail(3)
        words = result.stdout.split()
        if words[:1] == ["port"] and words[1].isdecimal():
            return int(words[1])
        if result.exit != 0:
            break
        time.sleep(0.2)
    raise CommandFailed(
        f"cannot serve parts on {engine.name}: the relay did not start",
        ran=f"{' '.join(engine.words)} logs {name}",
        exit_code=1,
        said=said,
        host=engine.name,
    )


def fetch_parts(
    engine: Engine, folder: HostPath, url: str, names: Iterable[str], *, seconds: int = 7200
) -> str:
    """Have a host fetch parts from another one; return "" or why it could not get them all."""
    listed = "".join(f"{name}\n" for name in names).encode()
    result = engine.remote.run(Run(("sh", "-c", _FETCH, "sh", folder, url), seconds, input=listed))
    return "" if result.exit == 0 else result.tail(1) or f"exit {result.exit}"
