"""Every kind of page in a real browser: accessible, whole at every width, and with the tables' numbers."""

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import felicity as fe
from felicity.core.wording import percent_interval
from felicity.explore import open_collections
from felicity.papers.reproduce import check_paper, read_paper, write_check
from felicity.run import read_run, report_run
from felicity.web import write_offline_page
from tests.papers.reproduce.test_checking import claim, make_claims

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
pytestmark = pytest.mark.slow
WIDTHS = (1440, 768, 360)
PRINTED = 680
# What is wider than the window; and tables that a wide window or a sheet of paper cuts off.
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
CUT = """() => [...document.querySelectorAll(".scroll")]
  .filter((box) => box.clientWidth && box.scrollWidth > box.clientWidth + 1).map((box) => box.ariaLabel)"""
BEYOND = """width => [...document.querySelectorAll("table, svg.figure, pre")]
  .filter((box) => box.getBoundingClientRect().right > width + 1).map((box) => box.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def folder(runs: tuple[Path, Path]) -> Path:
    """Where the pages of this module are written, beside the runs."""
    return runs[0].parent


@pytest.fixture(scope="module")
def models(folder: Path) -> list[str]:
    return [str(folder / "tiny"), str(folder / "words.arpa")]


@pytest.fixture(scope="module")
def bias(folder: Path, models: list[str]) -> Any:
    return fe.bias(str(folder / "pairs.csv"), models=models, measures=["lp", "mean_lp"], out=folder / "bias")


@pytest.fixture(scope="module")
def cloze(folder: Path, models: list[str]) -> Any:
    rows = "".join(f"{n},a,The {word} saw the,dog\n" for n, word in enumerate(("cat", "dog", "child")))
    (folder / "blanks.csv").write_text(f"item,condition,context_text,text\n{rows}")
    return fe.cloze([str(folder / "blanks.csv")], models=models[:1], out=folder / "cloze")


@pytest.fixture(scope="module")
def pages(folder: Path, runs: tuple[Path, Path], models: list[str], bias: Any, cloze: Any) -> dict[str, Path]:
    """The page of every kind that needs no server, by its name."""
    with open_collections([runs[0]]) as collections:
        write_offline_page(collections, runs[0] / "explore.html")
    several = fe.run(str(folder / "pairs.csv"), models, out=folder / "several")
    nouns = ("cat", "dog", "child", "teacher", "baker", "singer")
    rated = pl.DataFrame(
        [
            {
                "item": n,
                "text": f"The {noun} sleeps here.",
                "rating": 1 + (n + rater // 3) % 4,
                "rater": rater,
            }
            for n, noun in enumerate(nouns)
            for rater in range(4)
        ]
    )
    study = fe.acceptability(rated, models=models, measures=["lp"], scale=(1, 5), out=folder / "rated")
    claims = make_claims(folder, claim("n", "5", "count"))
    return {
        "run": report_run(read_run(runs[0]), runs[0]),
        "explorer": runs[0] / "explore.html",
        "several": several.report(),
        "compare": fe.compare(*runs, by="phenomenon").report(folder / "compare.html"),
        "bias": bias.report(),
        "cloze": cloze.report(),
        "acceptability": study.report(),
        "ratings": simulate_ratings(folder),
        "reproduce": write_check(check_paper(read_paper(str(claims))), folder / "reproduced")[-1],
    }


def simulate_ratings(folder: Path) -> Path:
    """The page of a rating study with simulated raters, who need an event loop of their own."""
    rows = [
        {"item": n, "condition": condition, "text": f"The {noun} {verb} here."}
        for n, noun in enumerate(("cat", "dog", "child", "baker"))
        for condition, verb in (("good", "sleeps"), ("bad", "sleep"))
    ]
    pl.DataFrame(rows).write_csv(folder / "stimuli.csv")
    study = folder / "rating"
    for asked in (("new", study, "--from", folder / "stimuli.csv"), ("simulate", study, "--raters", "4")):
        command = [sys.executable, "-m", "felicity", "rate", *map(str, asked)]
        subprocess.run(command, check=True, capture_output=True)
    return study / "simulation" / "report.html"


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()


def check_page(page: Any, address: str) -> None:
    """The page at every width, light, dark and printed."""
    page.goto(address)
    # Everything that is folded is part of the page.
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(OVERFLOW) <= 0, (address, width)
    for width, scheme in ((1440, "dark"), (360, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        found = axe.Axe().run(page)
        assert found.violations_count == 0, f"{address} at {width}, {scheme}: {found.generate_report()}"
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.evaluate(CUT) == [], address
    page.set_viewport_size({"width": PRINTED, "height": 900})
    page.emulate_media(media="print", color_scheme="light")
    assert page.evaluate(BEYOND, PRINTED) == [], address
    page.emulate_media(media="screen")


def test_every_page_is_accessible_and_whole_at_every_width_and_printed(
    page: Any, pages: dict[str, Path]
) -> None:
    for one in pages.values():
        check_page(page, one.as_uri())


# The cells of a table: the texts of every row.
ROWS = (
    "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent.trim().replace(/\\s+/g, ' ')))"
)


def read_rows(page: Any, address: str, table: str) -> list[list[str]]:
    page.goto(address)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    rows: list[list[str]] = page.locator(f"{table} tbody tr").evaluate_all(ROWS)
    return rows


def test_random_cells_are_those_of_the_tables(
    page: Any, pages: dict[str, Path], bias: Any, cloze: Any
) -> None:
    draw = random.Random(26)
    estimates = read_run(pages["run"].parent)["estimates"].filter(level="suite", measure="lp")
    shown = {row[0]: row for row in read_rows(page, pages["run"].as_uri(), "#suites")}
    for row in draw.sample(estimates.to_dicts(), 4):
        accuracy, low, high = (f"{100 * row[key]:.1f}" for key in ("accuracy", "low", "high"))
        cells = shown[row["name"].replace("_", " ")]
        assert (cells[2], cells[3], cells[4]) == (accuracy, f"[{low}, {high}]", str(row["n"]))
    splits = bias["splits"].drop_nulls("accuracy")
    tables = {
        (suite, model, measure): dict(zip(("A=U", "A>U", "A<U"), cells[::2], strict=True))
        for suite, model, measure, *cells in read_rows(page, pages["bias"].as_uri(), "#suites")
    }
    for row in draw.sample(splits.filter(pl.col("suite") != "all suites").to_dicts(), 6):
        if (row["suite"], row["model"], row["measure"]) in tables:
            cell = tables[row["suite"], row["model"], row["measure"]][row["split"]]
            assert cell == percent_interval(row["accuracy"], row["low"], row["high"])
    (cells,) = read_rows(page, pages["cloze"].as_uri(), "#accuracy")
    row = cloze["accuracy"].filter(figure="top5").row(0, named=True)
    assert cells[3] == percent_interval(row["share"], row["low"], row["high"])


def test_report_and_explorer_colour_surprisal_alike(page: Any, pages: dict[str, Path]) -> None:
    background = "cell => getComputedStyle(cell).backgroundColor"
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(pages["run"].as_uri())
        report = page.evaluate(
            "() => { const one = document.querySelector('.sentence .t'); one.style.setProperty('--c', '0.5');"
            " return getComputedStyle(one).backgroundColor; }"
        )
        page.goto(f"{pages['explorer'].as_uri()}#/item?key=order%2F1")
        page.wait_for_selector(".swatch.tint-4")
        assert page.locator(".swatch.tint-4").evaluate(background) == report, scheme
