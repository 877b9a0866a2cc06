"""A small server that misbehaves on purpose, for downloads."""

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

from heads.base.fetch import fetch

BODY = bytes(range(256)) * 3000


class Site:
    """What the server does with each request ("whole", "cut" or a status), and the ranges that were requested."""

    def __init__(self, turns: list[str], *, ranges: bool = True, body: bytes = BODY) -> None:
        self.turns, self.ranges, self.body, self.asked = turns, ranges, body, list[str | None]()
        self.url, self.etag, self.waits = "", '"one"', list[float]()

    def fetch(self, path: Path, sha256: str | None = None, attempts: int = 4) -> str:
        return fetch(self.url, path, sha256=sha256, attempts=attempts, timeout_seconds=5, sleep=self.waits.append)


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            site.asked.append(asked)
            turn = site.turns.pop(0) if site.turns else "whole"
            if turn.isdigit():
                self.send_error(int(turn))
                return
            fresh = self.headers.get("If-Range", site.etag) == site.etag
            first = int(asked.removeprefix("bytes=").rstrip("-")) if asked and site.ranges and fresh else 0
            self.send_response(206 if first else 200)
            self.send_header("ETag", site.etag)
            self.send_header("Content-Length", str(len(site.body) - first))
            if first:
                self.send_header("Content-Range", f"bytes {first}-{len(site.body) - 1}/{len(site.body)}")
            self.end_headers()
            self.wfile.write(site.body[first : len(site.body) // 2 if turn == "cut" else None])

        def log_message(self, format: str, *args: object) -> None:
            pass

    with running(Handler) as address:
        site.url = f"{address}/data/corpus.tgz"
        yield site


@contextmanager
def running(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server that answers with this handler."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(20)
        server.server_close()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


COMMIT = "0123456789abcdef" * 2 + "01234567"


class Hub(SimpleHTTPRequestHandler):
    """A hub of the models in its folder, whose files are in NAME/resolve/main."""

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.replace(f"/resolve/{COMMIT}/", "/resolve/main/"))

    def end_headers(self) -> None:
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", hashlib.sha256(self.path.encode()).hexdigest())
        super().end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        model = Path(self.directory, *self.path.split("/")[1:3])
        self.refuse(code, "EntryNotFound" if model.is_dir() else "RepoNotFound")

    def refuse(self, code: int, why: str) -> None:
        self.send_response(code)
        self.send_header("X-Error-Code", why)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving_hub(folder: Path, hub: type[Hub] = Hub) -> Iterator[str]:
    """The address of a hub with a folder's models; what is fetched from it is cached in the folder of our own cache."""
    cache = mock.patch("huggingface_hub.constants.HF_HUB_CACHE", str(Path(os.environ["XDG_CACHE_HOME"], "theirs")))
    with cache, running(partial(hub, directory=str(folder))) as address:
        yield address


@contextmanager
def serving_folder(folder: Path) -> Iterator[str]:
    """The address at which a folder's files are served."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with running(partial(Quiet, directory=str(folder))) as address:
        yield address
