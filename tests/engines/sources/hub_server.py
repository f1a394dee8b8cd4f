"""A small model hub: the parts of the real one's interface that fetching a model uses."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
GATED = "lab/gated"


class Hub(ThreadingHTTPServer):
    """Serves folders under `root` as repositories; remembers which files were asked for."""

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = root
        self.fetched: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        if path.startswith("api/models/"):
            self.answer_about(path.removeprefix("api/models/"))
        else:
            repository, _, rest = path.partition("/resolve/")
            self.send_file(repository, rest.partition("/")[2])

    def answer_about(self, path: str) -> None:
        for marker in ("/tree/", "/revision/"):
            repository, found, revision = path.partition(marker)
            if found:
                break
        folder = self.server.root / repository
        if repository == GATED:
            self.refuse(403, "GatedRepo")
        elif not folder.is_dir():
            self.refuse(404, "RepoNotFound")
        elif revision not in ("", "main", COMMIT):
            self.refuse(404, "RevisionNotFound")
        elif marker == "/tree/" and found:
            self.send_json([entry(folder, file) for file in sorted(folder.rglob("*")) if file.is_file()])
        else:
            names = [file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()]
            self.send_json(
                {"id": repository, "sha": COMMIT, "siblings": [{"rfilename": name} for name in names]}
            )

    def send_file(self, repository: str, name: str) -> None:
        file = self.server.root / repository / name
        if not file.is_file():
            self.refuse(404, "EntryNotFound")
            return
        content = file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command == "GET":
            self.server.fetched.append(name)
            self.wfile.write(content)

    def send_json(self, value: object) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def entry(folder: Path, file: Path) -> dict[str, object]:
    """A file as the hub's listing tells it."""
    digest = hashlib.sha1(file.read_bytes()).hexdigest()
    return {
        "type": "file",
        "path": file.relative_to(folder).as_posix(),
        "size": file.stat().st_size,
        "oid": digest,
    }


@contextmanager
def serve_hub(root: Path) -> Iterator[Hub]:
    """A hub over `root` while the block runs."""
    hub = Hub(root)
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()
