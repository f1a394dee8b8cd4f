"""The links of every study's report: each leads to items in the explorer, and to as many as it says."""

import html
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs

import polars as pl
import pytest

from felicity.explore import (
    Collection,
    TextCollection,
    open_collections,
    parse_selection,
    read_page,
    read_passage,
)
from tests.attack.shapes import build_folders
from tests.conftest import Answer
from tests.explore.runs import write_pairs, write_reading

pytestmark = pytest.mark.slow
ADDRESS = r'href="(explore\.html#[^"]*)"'
STUDIES = (
    "context",
    "acceptability",
    "cloze",
    "bias",
    "causality",
    "debias",
    "methods",
    "trajectory",
    "reading",
)


BUILT: list[Path] = []


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Answer]) -> Path:
    """A folder with a study of every kind that needs no published data, made once."""
    if BUILT:
        return BUILT[0]
    made = tmp_path_factory.mktemp("studies")
    model = build_folders(cli, made)
    given = ("-m", model, "-q")
    more = [
        ("trajectory", made / "pairs.csv", "-m", made / "training", "-q", "-o", made / "trajectory"),
        (
            "methods",
            made / "pairs.csv",
            "--method",
            "yes_no",
            "--method",
            "direct",
            *given,
            "-o",
            made / "methods",
        ),
        ("bias", made / "many.csv", "--debias", made / "fewer.csv", *given, "-o", made / "debias"),
    ]
    # In the second set the verdicts of one suite are the opposite ones.
    pairs = pl.read_csv(write_pairs(made / "many.csv"))
    turned = pl.when(pl.col("suite") == "order")
    pairs.head(32).with_columns(
        good=turned.then("bad").otherwise("good"), bad=turned.then("good").otherwise("bad")
    ).write_csv(made / "fewer.csv")
    for line in more:
        answer = cli(*line)
        assert answer.code == 0, (line, answer.err)
    write_reading(made)
    assert cli("report", made / "reading").code == 0
    BUILT.append(made)
    return made


def read_links(report: str) -> Iterator[tuple[dict[str, list[str]], str, str]]:
    """The parameters, the view and the text of every link of a report to the explorer."""
    for address, text in re.findall(rf"<a [^>]*{ADDRESS}[^>]*>(.*?)</a>", report, re.DOTALL):
        view, _, query = html.unescape(address).partition("#/")[2].partition("?")
        yield parse_qs(query), view, re.sub(r"<[^>]*>", "", text).strip()


@pytest.mark.parametrize("study", STUDIES)
def test_every_link_leads_to_something_and_counts_lead_to_as_many_items(folder: Path, study: str) -> None:
    place = folder / study
    links = list(read_links((place / "report.html").read_text(encoding="utf-8")))
    assert links
    counted = 0
    with open_collections([place]) as collections:
        judged = [one for one in collections if isinstance(one, Collection)]
        homes = {
            source.run.path.relative_to(place).as_posix(): (one, source.model)
            for one in judged
            for source in one.sources
        }
        for given, view, text in links:
            if view == "words":
                (texts,) = (one for one in collections if isinstance(one, TextCollection))
                assert read_passage(texts, given.get("text", [""])[0])["word"]
                assert set(given.get("model", [])) <= set(texts.models), given
                assert set(given.get("measure", [])) <= set(texts.measures), given
                continue
            collection, model = homes[given.pop("run")[0]]
            if "run_b" in given:
                given["b"] = [homes[given.pop("run_b")[0]][1]]
            selection = parse_selection(collection, given | {"a": [model]})
            # What the address asks for is what the explorer can select.
            known = {*selection.facets, *selection.ranges, "measure", "b", "q", "pick"}
            assert set(given) <= known, (given, known)
            found = read_page(collection, selection)
            if text.isdecimal() and study not in ("acceptability", "context"):
                assert found.total == int(text), (given, text)
                counted += 1
            elif not text.startswith(("N/A", "–")):
                assert found.total or "difference" in given, (given, text)
    assert counted or study in ("acceptability", "context", "trajectory", "reading")
