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
from felicity.core.wording import decimal, percent, percent_interval
from felicity.explore import open_collections
from felicity.papers.reproduce import check_paper, read_paper, write_check
from felicity.report import spaced
from felicity.run import read_run, report_run
from felicity.studies.bias.debias import EVERYTHING
from felicity.studies.bias.lengths import SPLITS
from felicity.studies.causality.preference_sections import name_bin
from felicity.web import write_offline_page
from tests.conftest import DATA, make_tiny_model
from tests.papers.reproduce.test_checking import claim, make_claims
from tests.studies.acceptability.test_study import write_table
from tests.studies.causality.test_causality_parts import write_design

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
pytestmark = pytest.mark.slow
# What tables call the settings of ratings.
HYPOTHESES = {"none": "H0", "real": "H+", "random": "H-"}
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
def studies(folder: Path, models: list[str]) -> dict[str, Any]:
    """A small study of every kind, by its name; that of benchmarks only where their data is."""
    pairs, one = str(folder / "pairs.csv"), models[:1]
    agreement = pl.read_csv(pairs).filter(pl.col("phenomenon") != "odd")
    rows = "".join(f"{n},a,The {word} saw the,dog\n" for n, word in enumerate(("cat", "dog", "child")))
    (folder / "blanks.csv").write_text(f"item,condition,context_text,text\n{rows}")
    for step in (1, 10, 100):
        make_tiny_model(folder / "training" / f"checkpoint-{step}", seed=step, window=256)
    words = [f"{n // 8 + 1},{n % 8 + 1},w{n},{300 + n * 37 % 97},{1 + n * n % 11}\n" for n in range(80)]
    (folder / "times.csv").write_text("sentence,position,word,self_paced,bits\n" + "".join(words))
    rated = write_table(folder / "rated.csv")
    found = {
        "bias": fe.bias(pairs, models=models, measures=["lp", "mean_lp"], out=folder / "bias"),
        "cloze": fe.cloze([str(folder / "blanks.csv")], models=one, out=folder / "cloze"),
        "acceptability": fe.acceptability(str(rated), models=models, measures=["lp"], out=folder / "accept"),
        "context": fe.context(
            agreement,
            models=one,
            kinds=["matched_acceptable", "matched_unacceptable"],
            lengths=[0, 30, 60],
            out=folder / "context",
        ),
        "causality": fe.causality(
            str(write_design(folder, norms='"norms.csv"')),
            models=one,
            continuations=False,
            out=folder / "causality",
        ),
        "trajectory": fe.trajectory(pairs, models=[str(folder / "training")], out=folder / "trajectory"),
        "methods": fe.methods(agreement, models=one, out=folder / "methods"),
        "reading": fe.reading(
            str(folder / "times.csv"), surprisal="bits", context="sentence", draws=100, out=folder / "reading"
        ),
    }
    if DATA is not None:
        found["benchmark"] = fe.benchmark(
            "babylm", tasks=["blimp_supplement"], sample=4, models=models, out=folder / "benchmark"
        )
    return found


@pytest.fixture(scope="module")
def pages(
    folder: Path, runs: tuple[Path, Path], models: list[str], studies: dict[str, Any]
) -> dict[str, Path]:
    """The page of every kind that needs no server, by its name."""
    with open_collections([runs[0]]) as collections:
        write_offline_page(collections, runs[0] / "explore.html")
    several = fe.run(str(folder / "pairs.csv"), models, out=folder / "several")
    claims = make_claims(folder, claim("n", "5", "count"))
    scores = "".join(f"{n},{side},{value}\n" for n in range(6) for side, value in (("good", -n), ("bad", -3)))
    (folder / "scores.csv").write_text(f"item,condition,value\n{scores}")
    replayed = [sys.executable, "-m", "felicity", "replay", folder / "scores.csv", "-o", folder / "replayed"]
    subprocess.run(list(map(str, replayed)), check=True, capture_output=True)
    return {
        "run": report_run(read_run(runs[0]), runs[0]),
        "explorer": runs[0] / "explore.html",
        "several": several.report(),
        "compare": fe.compare(*runs, by="phenomenon").report(folder / "compare.html"),
        "ratings": simulate_ratings(folder),
        "reproduce": write_check(check_paper(read_paper(str(claims))), folder / "reproduced")[-1],
        "replay": folder / "replayed" / "report.html",
        **{name: study.report() for name, study in studies.items()},
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
    """The page at every width, light, dark and printed, folded and open."""
    page.emulate_media(media="screen", color_scheme="light")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(address)
    check_access(page, f"{address}, folded")
    # Everything that is folded is part of the page.
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(OVERFLOW) <= 0, (address, width)
    for width, scheme in ((1440, "light"), (1440, "dark"), (360, "light"), (360, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        check_access(page, f"{address} at {width}, {scheme}")
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.evaluate(CUT) == [], address
    page.set_viewport_size({"width": PRINTED, "height": 900})
    page.emulate_media(media="print", color_scheme="light")
    assert page.evaluate(BEYOND, PRINTED) == [], address
    check_access(page, f"{address}, printed")


def check_access(page: Any, state: str) -> None:
    found = axe.Axe().run(page)
    assert found.violations_count == 0, f"{state}: {found.generate_report()}"


def test_every_page_is_accessible_and_whole_at_every_width_and_printed(
    page: Any, pages: dict[str, Path]
) -> None:
    for one in pages.values():
        check_page(page, one.as_uri())


def test_every_page_asks_answers_and_says_how_sure_in_this_order(page: Any, pages: dict[str, Path]) -> None:
    top = "one => one.getBoundingClientRect().top"
    for name, path in pages.items():
        if name == "explorer":
            continue
        page.goto(path.as_uri())
        parts = [".question", "#answer-title", "#answer h3:has-text('How sure is this?')", "nav", "#made"]
        tops = [page.locator(part).first.evaluate(top) for part in parts]
        assert tops == sorted(tops), name
        assert page.inner_text(".question").endswith("?"), name
        # Question and answer are on the first screen of a phone too.
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.locator("#answer-title").evaluate("one => one.getBoundingClientRect().bottom") < 740, name
        page.set_viewport_size({"width": 1440, "height": 900})


# The cells of a table: the texts of every row.
ROWS = (
    "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent.trim().replace(/\\s+/g, ' ')))"
)


def read_rows(page: Any, address: str, table: str) -> list[list[str]]:
    page.goto(address)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    rows: list[list[str]] = page.locator(f"{table} tbody tr").evaluate_all(ROWS)
    return rows


def show_share(row: dict[str, Any], name: str = "accuracy") -> str:
    return percent_interval(row[name], row["low"], row["high"])


# Of every study: a section, and for each row of a frame how its row in the table begins, and another cell.
Cells = list[tuple[tuple[str, ...], int, str]]


def list_cells(studies: dict[str, Any]) -> dict[str, tuple[str, Cells]]:
    bias = studies["bias"]["splits"].drop_nulls("accuracy").filter(pl.col("suite") != EVERYTHING)
    curves = studies["context"]["estimates"].filter(pl.col("length") == 60, level="overall")
    agreement = studies["causality"]["agreement"].filter(
        pl.col("bias_bin").is_not_null(), counting="without bias 0", subject_gender="m"
    )
    methods = studies["methods"]["accuracy"].filter(level="overall")
    fit = studies["reading"]["fit"].filter(pl.col("lead"), predictor="surprisal")
    kinds = {"matched_acceptable": "matched, acceptable", "matched_unacceptable": "matched, unacceptable"}
    found: dict[str, tuple[str, Cells]] = {
        "bias": (
            "suites",
            [
                (
                    (spaced(row["suite"]), row["model"], row["measure"]),
                    3 + 2 * SPLITS.index(row["split"]),
                    show_share(row),
                )
                for row in bias.to_dicts()
            ],
        ),
        "cloze": (
            "accuracy",
            [
                (("blanks", row["model"]), 3, show_share(row, "share"))
                for row in studies["cloze"]["accuracy"].filter(figure="top5").to_dicts()
            ],
        ),
        "acceptability": (
            "table",
            [
                ((HYPOTHESES[row["setting"]], row["model"], row["context"]), 3, decimal(row["r"], 3))
                for row in studies["acceptability"]["correlations"].to_dicts()
            ],
        ),
        "context": ("change", [((kinds[row["kind"]],), 3, show_share(row)) for row in curves.to_dicts()]),
        "causality": (
            "agreement",
            [
                ((row["lm"], name_bin(row["bias_bin"])), 3, percent(row["agreement"]))
                for row in agreement.to_dicts()
            ],
        ),
        "trajectory": (
            "acquisition",
            [
                ((row["training"], row["suite"]), 3, percent(row["last"]))
                for row in studies["trajectory"]["acquisition"].to_dicts()
            ],
        ),
        "methods": (
            "accuracy",
            [((row["model"], row["method"]), 3, show_share(row)) for row in methods.to_dicts()],
        ),
        "reading": (
            "fit",
            [
                ((row["model"], spaced(row["measure"])), 2, f"{decimal(1000 * row['delta_ll'])} [")
                for row in fit.to_dicts()
            ],
        ),
    }
    if "benchmark" in studies:
        scores = studies["benchmark"]["scores"].filter(version="corrected").to_dicts()
        cells = [
            ((row["title"],), 2 + 2 * place, f"{decimal(row['score'])} [") for place, row in enumerate(scores)
        ]
        found["benchmark"] = ("tasks", cells)
    return found


def test_random_cells_are_those_of_the_tables(
    page: Any, pages: dict[str, Path], studies: dict[str, Any]
) -> None:
    draw = random.Random(26)
    estimates = read_run(pages["run"].parent)["estimates"].filter(level="suite", measure="lp")
    shown = {row[0]: row for row in read_rows(page, pages["run"].as_uri(), "#suites")}
    for row in draw.sample(estimates.to_dicts(), 4):
        accuracy, low, high = (f"{100 * row[key]:.1f}" for key in ("accuracy", "low", "high"))
        cells = shown[row["name"].replace("_", " ")]
        assert (cells[2], cells[3], cells[4]) == (accuracy, f"[{low}, {high}]", str(row["n"]))
    for name, (section, cells) in list_cells(studies).items():
        rows = read_rows(page, pages[name].as_uri(), f"#{section}")
        assert cells, name
        for first, place, text in draw.sample(cells, min(4, len(cells))):
            (row,) = [one for one in rows if tuple(one[: len(first)]) == first]
            assert row[place].startswith(text), (name, row, text)


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
