"""Limits of every site: idle connections are closed, and changed logs are said on a page."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from felicity.stimuli.review import Log, Queue
from felicity.web import running, server, site
from felicity.web.review import create_review_site
from felicity.web.site import Guard, RateLimit, html, make_site

KEY = "the key"
BRIEF = 1


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A site that waits a second."""
    monkeypatch.setattr(server, "IDLE_SECONDS", BRIEF)
    monkeypatch.setattr(site, "BODY_SECONDS", BRIEF)
    made = make_site()

    @made.get("/")
    def page() -> str:
        return "here"

    @made.post("/")
    def post() -> str:
        return "taken"

    made.add_middleware(Guard, limit=RateLimit(0), secure=False, refuse=lambda status: html("", status))
    with running(made) as address:
        yield address


def connect(url: str) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
    made.settimeout(10 * BRIEF)
    return made


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"]
)
def test_a_connection_that_asks_nothing_more_is_closed(url: str, sent: bytes) -> None:
    with connect(url) as idle:
        idle.sendall(sent)
        began = time.monotonic()
        while idle.recv(4096):
            pass
        assert time.monotonic() - began < 6 * BRIEF


def test_a_request_that_trickles_in_is_closed(url: str) -> None:
    with connect(url) as slow:
        began = time.monotonic()
        with pytest.raises(OSError):  # noqa: PT011 - reset or broken pipe, as the system says it
            while time.monotonic() - began < 8 * BRIEF:
                slow.sendall(b"G" if time.monotonic() - began < 0.1 else b"E")
                time.sleep(0.2)
        assert time.monotonic() - began < 6 * BRIEF


def test_a_body_that_does_not_come_is_refused(url: str) -> None:
    with connect(url) as slow:
        slow.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
        assert b" 408 " in slow.recv(4096)


def test_a_connection_that_is_used_stays_open(url: str) -> None:
    with httpx.Client() as client:
        for _ in range(4):
            assert client.get(url).text == '"here"'
            time.sleep(BRIEF / 2)


class Extended:
    """What the site of a review asks of an extension."""

    class Task:
        dataset, form = "pairs.csv", "negation"

    def task(self) -> "Extended.Task":
        return self.Task()


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = Log(tmp_path / "log.jsonl")
    for number in range(3):
        texts = [f"A thing{number} is a tool", f"A thing{number} is not a bird"]
        log.append("propose", {"request": 1, "item": f"1.{number}", "texts": texts, "flags": []})
    return log


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("change", ["edited", "cut", "bytes", "fields"])
def test_a_changed_log_is_said_on_the_page_of_the_review(log: Log, change: str, when: str) -> None:
    def spoil() -> None:
        content = log.path.read_bytes()
        if change == "fields":
            # As whoever knows how hashes are made would write it.
            log.append("propose", {"item": 5})
        elif change == "bytes":
            log.path.write_bytes(content + b"\xff\xfe\n")
        else:
            cut = content.splitlines(keepends=True)[1:] if change == "cut" else []
            log.path.write_bytes(b"".join(cut) or content.replace(b"thing2", b"thing9") + content)

    queue = Queue(Log(log.path))
    cookies = {"felicity_review_key": KEY, "felicity_reviewer": "ada"}
    made = create_review_site(Extended(), queue, key=KEY)  # type: ignore[arg-type]
    with running(made) as address, httpx.Client(cookies=cookies, base_url=address) as client:
        if when == "after":
            assert client.get("/queue").status_code == 200
        spoil()
        for path in ("/queue", "/summary"):
            answer = client.get(path)
            assert answer.status_code == 409, answer.text
            assert "log" in answer.text
        form = {"token": KEY, "item": "1.0", "action": "accept", "round": "1"}
        assert client.post("/decide", data=form).status_code in (303, 409)
        assert json.loads(log.path.read_bytes().splitlines()[0])
