"""The review queue in a real browser: keys, undo, two people at once, and no barriers."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from felicity.stimuli.extension import FORMS, Extension, ExtensionTask, Limits, ModelAnswer
from felicity.stimuli.review import Log, Queue, replay_log, verify_log

pytest.importorskip("felicity.web.site", reason="the frame of the sites is not here")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
KEY = "a-key-for-tests"
PAIRS = 24

pytestmark = pytest.mark.slow


@pytest.fixture
def extension(tmp_path: Path) -> Extension:
    """A folder in which some pairs wait."""
    made = Extension(tmp_path / "extended")
    form = FORMS["negation"]
    made.begin(
        ExtensionTask(
            dataset="neg_136_simp",
            form=form.name,
            instruction=form.instruction,
            k=1,
            seed=0,
            parameters={},
            model={"name": "a generator"},
            seeds=[["1", "A robin is a bird", "A robin is not a tree"]],
        )
    )
    text = "".join(f"A thing{n} is a tool,\nA thing{n} is not a bird,\n" for n in range(PAIRS))
    made.run(lambda *_: [ModelAnswer(text)], Limits(n=PAIRS))
    return made


@pytest.fixture
def address(extension: Extension) -> Iterator[str]:
    """The queue, served by a real server."""
    import uvicorn

    from felicity.web.review import create_review_site
    from felicity.web.server import find_port

    port = find_port()
    site = create_review_site(extension, Queue(extension.log), key=KEY)
    server = uvicorn.Server(uvicorn.Config(site, port=port, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        pass
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.fixture
def enter(chromium: Any, address: str) -> Callable[[str], Any]:
    """Open the queue as a reviewer, in a browser profile of their own."""

    def open_as(reviewer: str) -> Any:
        page = chromium.new_context().new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{address}/?key={KEY}")
        page.fill("#reviewer", reviewer)
        page.keyboard.press("Enter")
        page.wait_for_url("**/queue")
        return page

    return open_as


def press(page: Any, key: str) -> None:
    """Press a key that submits a form, and wait for the next page."""
    with page.expect_navigation():
        page.keyboard.press(key)


def test_twenty_pairs_are_reviewed_by_keyboard_with_undo(
    enter: Callable[[str], Any], extension: Extension
) -> None:
    page = enter("ada")
    for number in range(20):
        press(page, "1" if number % 4 == 3 else "a")
    press(page, "u")
    assert "Taken back" in page.inner_text(".note")
    page.keyboard.press("e")
    page.fill("#second", "A thing19 is not a fish")
    press(page, "Enter")
    state = replay_log(Log(extension.log.path).read())
    assert len(state.decisions) == 20
    assert len(state.accepted) == 16
    assert state.accepted[-1].second == "A thing19 is not a fish"
    assert sum(decision.reason == "semantic" for decision in state.decisions.values()) == 4
    assert verify_log(extension.log.path).whole
    assert "tool 16" in page.inner_text(".balance")


def test_two_reviewers_at_once_decide_every_pair_once(
    enter: Callable[[str], Any], extension: Extension
) -> None:
    pages = [enter("ada"), enter("bob")]
    for _ in range(PAIRS // 2):
        for page in pages:
            press(page, "a")
    assert all("Nothing is waiting" in page.inner_text("h1") for page in pages)
    decided = [event["item"] for event in extension.log.read() if event["event"] == "accept"]
    assert len(decided) == len(set(decided)) == PAIRS


def test_a_pair_that_was_decided_meanwhile_is_said_and_left_alone(
    enter: Callable[[str], Any], extension: Extension
) -> None:
    page = enter("ada")
    item = page.get_attribute("#accept input[name=item]", "value")
    Queue(Log(extension.log.path)).decide(item, "reject", reviewer="bob", reason="other")
    press(page, "a")
    assert "bob has decided this pair already" in page.inner_text(".note")
    assert replay_log(extension.log.read()).accepted == []


def test_without_the_key_nothing_is_shown_and_nothing_is_decided(address: str, extension: Extension) -> None:
    import httpx

    assert httpx.get(f"{address}/queue").status_code == 403
    form = {"token": KEY, "item": "1.1.1", "round": "1", "action": "accept"}
    assert httpx.post(f"{address}/decide", data=form).status_code == 403
    cookies = {"felicity_review_key": KEY, "felicity_reviewer": "eve"}
    assert httpx.post(f"{address}/decide", data=form | {"token": "x"}, cookies=cookies).status_code == 403
    assert replay_log(extension.log.read()).decisions == {}


def test_no_page_has_a_barrier_that_axe_knows_of(enter: Callable[[str], Any], address: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    page = enter("ada")
    found = {}
    for path in ("/queue", "/summary"):
        page.goto(address + path)
        found[path] = [one["id"] for one in axe.Axe().run(page).response["violations"]]
    page.context.clear_cookies(name="felicity_reviewer")
    page.goto(address + "/")
    found["/"] = [one["id"] for one in axe.Axe().run(page).response["violations"]]
    assert found == {"/queue": [], "/summary": [], "/": []}
