"""The explorer's site without a browser: who is answered, what is refused, what is answered."""

import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest

from felicity.explore import open_collections
from felicity.web import create_explore_site, running, write_offline_page
from felicity.web.explore.offline import MODULES, join_modules
from tests.web.sites import EXPLORE_KEY as KEY

ADDRESSES = (
    "about",
    "items",
    "item?key=order/1",
    "compare",
    "suites",
    "selection.csv",
    "stimuli.csv",
    "contexts",
)


@pytest.fixture
def url(explorer: str) -> str:
    return explorer


def ask(url: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
    told = {"x-felicity-key": KEY} | headers
    address = f"{url}/api/{path}"
    if body is None:
        return httpx.get(address, headers=told)
    # httpx itself would refuse half of a character.
    return httpx.post(address, content=json.dumps(body), headers=told | {"content-type": "application/json"})


@pytest.mark.parametrize("path", ADDRESSES)
def test_nothing_is_answered_without_the_key(url: str, path: str) -> None:
    assert ask(url, path).status_code == 200
    assert httpx.get(f"{url}/api/{path}").status_code == 403
    assert ask(url, path, **{"x-felicity-key": "another"}).status_code == 403


@pytest.mark.parametrize("path", ["live", "alternatives", "pairs.csv"])
def test_nothing_is_scored_or_written_without_the_key(url: str, path: str) -> None:
    assert httpx.post(f"{url}/api/{path}", json={"texts": ["A."]}).status_code == 403


@pytest.mark.parametrize(
    "headers", [{"origin": "http://127.0.0.1:9"}, {"origin": "null"}, {"sec-fetch-site": "same-site"}]
)
def test_another_origin_is_refused_even_with_the_key(url: str, headers: dict[str, str]) -> None:
    answer = ask(url, "items", **headers)
    assert answer.status_code == 403
    assert "order/1" not in answer.text
    assert "access-control-allow-origin" not in answer.headers


def test_a_question_of_another_origin_in_advance_is_not_granted(url: str) -> None:
    asked = {"origin": "http://evil.example", "access-control-request-headers": "x-felicity-key"}
    answer = httpx.options(f"{url}/api/items", headers=asked | {"access-control-request-method": "GET"})
    assert answer.status_code >= 400
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_page_needs_its_key_and_holds_no_script_of_its_own(url: str) -> None:
    assert httpx.get(url).status_code == 403
    answer = httpx.get(url, params={"key": KEY})
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "order/1" not in answer.text


def test_modules_are_never_kept_and_versioned_files_are(url: str) -> None:
    for name in MODULES:
        answer = httpx.get(f"{url}/static/explore/{name}.js")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-type"].startswith("text/javascript")
    assert "max-age" in httpx.get(f"{url}/static/explore.css?1").headers["cache-control"]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("items?a=nobody", "There is no model 'nobody'"),
        ("items?page=x", "whole number"),
        ("items?page=-1", "whole number"),
        ("items?low=much", "a margin is a number"),
        ("items?data=other", "There is no dataset 'other'"),
        ("item?key=no/1", "There is no item 'no/1'"),
        ("regions", "There is no suite"),
        ("ratings", "have no ratings"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(url: str, path: str, told: str) -> None:
    answer = ask(url, path)
    assert answer.status_code == 400
    assert told in answer.json()["error"]


def test_a_page_beyond_the_last_is_empty(url: str) -> None:
    assert ask(url, "items?page=9").json()["rows"] == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("live", {"texts": "A."}),
        ("live", {"texts": [1]}),
        ("live", {"texts": []}),
        ("live", {"texts": ["A."], "context": 3}),
        ("alternatives", {"text": "A.", "place": "0", "k": 3}),
        ("alternatives", {"text": "A.", "place": 0, "k": 3, "model": "nobody"}),
        ("pairs.csv", {"pairs": ["A."]}),
        ("pairs.csv", {"pairs": []}),
        ("alternatives", {"text": "A.", "place": True, "k": 3}),
        ("alternatives", {"text": "A.", "place": 0, "k": 3, "model": "\ud800"}),
        ("live", {"texts": ["A.", "\udfff"]}),
        ("pairs.csv", {"pairs": [{"good": "A \ud800 b.", "bad": "B."}]}),
    ],
)
def test_what_cannot_be_scored_is_refused_in_a_sentence(url: str, path: str, body: dict[str, Any]) -> None:
    answer = ask(url, path, body)
    assert answer.status_code == 400
    assert answer.json()["error"]


@pytest.mark.parametrize("body", ['["\\ud800"]', "[NaN]", "5", "[" * 20_000 + "]" * 20_000, "9" * 5000, "{"])
def test_what_is_no_question_is_refused_without_being_repeated(url: str, body: str) -> None:
    headers = {"x-felicity-key": KEY, "content-type": "application/json"}
    answer = httpx.post(f"{url}/api/pairs.csv", content=body, headers=headers)
    assert 400 <= answer.status_code < 500
    assert "d800" not in answer.text


@pytest.mark.parametrize("path", ["/api/items/", "/static", "//elsewhere.example"])
def test_a_claimed_host_never_reaches_a_redirect(url: str, path: str) -> None:
    answer = httpx.get(f"{url}{path}", headers={"host": "elsewhere.example", "x-felicity-key": KEY})
    assert "elsewhere" not in answer.headers.get("location", "")
    assert answer.status_code in (403, 404)


def test_typed_sentences_alternatives_and_kept_pairs_are_answered(url: str) -> None:
    texts = ["The cats annoy Tim.", "The cats annoys Tim."]
    answer = ask(url, "live", {"texts": texts, "context": "She saw herself."}).json()
    assert "error" not in answer, answer
    assert [sentence["text"] for sentence in answer["sentences"]] == texts
    found = ask(url, "alternatives", {"text": texts[0], "place": 1, "k": 5, "model": "tiny"}).json()
    assert len(found) == 5
    pairs = {"pairs": [{"good": texts[0], "bad": texts[1]}]}
    table = pl.read_csv(io.StringIO(ask(url, "pairs.csv", pairs).text))
    assert table["text"].to_list() == texts


def test_a_site_without_a_model_says_how_to_get_one(runs: tuple[Path, Path]) -> None:
    with open_collections(runs) as collections, running(create_explore_site(collections, {}, key=KEY)) as url:
        answer = ask(url, "live", {"texts": ["A."]})
        assert answer.status_code == 400
        assert "--live" in answer.json()["error"]


def test_the_file_without_a_server_is_the_same_every_time_and_asks_for_nothing(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    for name in ("one.html", "two.html"):
        with open_collections(runs) as collections:
            write_offline_page(collections, tmp_path / name)
    text = (tmp_path / "one.html").read_text(encoding="utf-8")
    assert text == (tmp_path / "two.html").read_text(encoding="utf-8")
    assert "window.ran" in text
    assert "<script>window.ran" not in text
    assert "connect-src" not in text
    assert "default-src &#39;none&#39;" in text
    assert "https://" not in text


def test_modules_share_no_name_when_they_are_joined() -> None:
    joined = join_modules()
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", joined, re.MULTILINE)
    assert len(names) == len(set(names))
    assert not re.search(r"^(import|export) ", joined, re.MULTILINE)


def test_no_two_modules_of_the_page_declare_the_same_name() -> None:
    """The file without a server has all modules in one script, where a name can be declared only once."""
    declared = re.findall(r"^(?:async )?(?:const|let|function|class) (\w+)", join_modules(), re.MULTILINE)
    assert len(declared) > 100
    assert [name for name, times in Counter(declared).items() if times > 1] == []
