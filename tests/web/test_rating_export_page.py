"""The page of a rating export in a real browser: what its first screen says, axe, and its numbers."""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from felicity.api.ratings import analyse_timed, write_ratings_report
from felicity.core.wording import p_cell
from felicity.humans import Population, build_rating_tables, send_raters
from felicity.report import decimal
from tests.humans.studies import make_study, stimulus_rows
from tests.web.sites import open_site

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
ANSWERS = {"likert": "Ratings of b are", "maze": "In region", "reading": "In region"}


@pytest.fixture(scope="module", params=list(ANSWERS))
def export(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Any]:
    """A study that simulated raters have answered: task, page and tables."""
    folder = tmp_path_factory.mktemp("export")
    study = make_study(
        folder / "study",
        request.param,
        rows=stimulus_rows(request.param, items=8),
        more="[design]\nquota = 8\n",
        task_more='on_error = "repeat"\n' if request.param == "maze" else "",
    )
    with open_site(study) as site:
        # Far enough apart that a condition differs in times, too.
        population = Population(raters=16, effect=2.0 if request.param == "likert" else 12.0)
        # The browser of another test may have an event loop in this thread.
        with ThreadPoolExecutor(1) as beside:
            beside.submit(send_raters, site.url, study, population).result()
        tables = build_rating_tables(site.store)
    tables |= analyse_timed(tables)
    return request.param, write_ratings_report(study, tables, folder / "out"), tables


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (768, "dark"), (360, "light"), (360, "dark")])
def test_the_page_answers_first_and_is_accessible(
    chromium: Any, export: tuple[str, Path, Any], width: int, scheme: str
) -> None:
    task, path, _ = export
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.inner_text("#answer-title").startswith(ANSWERS[task])
    assert page.inner_text(".question").endswith("?")
    assert page.locator("#answer figure svg").count()
    assert page.inner_text("#answer h3") == "How sure is this?"
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    for media in ("screen", "print"):
        page.emulate_media(media=media)
        found = axe.Axe().run(page)
        assert found.violations_count == 0, f"{media}: {found.generate_report()}"
    context.close()


@pytest.mark.parametrize("export", ["maze"], indirect=True)
def test_numbers_of_the_page_are_those_of_the_tables(chromium: Any, export: tuple[str, Path, Any]) -> None:
    _, path, tables = export
    context = chromium.new_context()
    page = context.new_page()
    page.goto(path.as_uri())
    shown = {
        name: [
            [cell.strip() for cell in row]
            for row in page.evaluate(
                "id => [...document.querySelectorAll(`#${id} tbody tr`)].map((row) => "
                "[...row.cells].map((cell) => cell.textContent))",
                name,
            )
        ]
        for name in ("curves", "time_differences", "timing")
    }
    rng = random.Random(1)
    for place in rng.sample(range(tables["curves"].height), 5):
        row = tables["curves"].row(place, named=True)
        span = f"[{decimal(row['low'], 0)}, {decimal(row['high'], 0)}]"
        expected = [row["region"], row["condition"], decimal(row["mean"], 0), span]
        assert shown["curves"][place][:4] == expected
    for place in rng.sample(range(tables["differences"].height), 3):
        row = tables["differences"].row(place, named=True)
        assert shown["time_differences"][place][2] == decimal(row["difference"], 0)
        assert shown["time_differences"][place][4] == p_cell(row["p_holm"])
    certified = tables["timing"].filter(pl.col("certified")).height
    assert sum(row[1] == "yes" for row in shown["timing"]) == certified
    context.close()
