"""The explorer in a real browser: its numbers are the run's, its addresses work, its texts are only shown."""

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import polars as pl
import pytest
from fastapi import FastAPI
from starlette.responses import HTMLResponse

import felicity as fe
from felicity.api.ratings import start_study
from felicity.data import read_dataset
from felicity.explore import open_collections, parse_selection, read_page
from felicity.run import evaluate, open_model, read_run, report_run
from felicity.studies import read_study
from felicity.web import create_explore_site, running, write_offline_page
from tests.explore.runs import CLOSING, SCRIPT
from tests.web.sites import EXPLORE_KEY as KEY

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
pytestmark = pytest.mark.slow
WAIT_MS = 30_000
STATES = (
    "#/items",
    "#/items?phenomenon=odd&sort=margin&desc=1&unit=bits",
    "#/item?key=order%2F1",
    "#/item?key=writing%2F1&level=word&unit=bits",
    "#/compare?pick=disagree",
    "#/suites?by=tiny&turned=1",
    "#/item?key=agree_sleeps%2F1&e0=The+cat+waits+here.",
    "#/live?text=The+cats+annoy+Tim.%0AThe+cats+annoys+Tim.",
    "#/items?a=nobody",
)


@pytest.fixture
def url(explorer: str) -> str:
    return f"{explorer}/?key={KEY}"


@pytest.fixture(scope="module")
def offline(runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    page = tmp_path_factory.mktemp("offline") / "explore.html"
    with open_collections(runs) as collections:
        write_offline_page(collections, page)
    return page.as_uri()


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page whose every error is a failure."""
    context = chromium.new_context(viewport={"width": 1200, "height": 800}, accept_downloads=True)
    context.set_default_timeout(WAIT_MS)
    made = context.new_page()
    problems: list[str] = []
    made.on("pageerror", lambda error: problems.append(str(error)))
    made.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    yield made
    context.close()
    # That a question was refused is told on the page; the browser tells it in its console as well.
    assert [text for text in problems if "400 (Bad Request)" not in text] == []


def show(page: Any, url: str, state: str) -> None:
    """Open a state of the page and wait until it is shown."""
    page.goto(url + state)
    wait(page, state)


def wait(page: Any, state: str) -> None:
    page.wait_for_selector(f"main[data-shown={json.dumps(state)}][aria-busy=false]")


def change(page: Any, act: Any) -> None:
    """Do something that changes the state, and wait until the new state is shown."""
    before = page.get_attribute("main", "data-shown")
    act()
    page.wait_for_function(
        "before => { const main = document.querySelector('main'); return main.dataset.shown !== before"
        " && main.dataset.shown === location.hash && main.getAttribute('aria-busy') === 'false'; }",
        arg=before,
    )


@pytest.mark.parametrize("where", ["url", "offline"])
def test_sums_on_the_page_equal_the_scores_of_random_items(
    page: Any, request: pytest.FixtureRequest, runs: tuple[Path, Path], where: str
) -> None:
    address = request.getfixturevalue(where)
    items = read_run(runs[0])["items"]["item"].unique().sort().to_list()
    for item in random.Random(18).sample(items, 8):
        show(page, address, f"#/item?key={quote(item, safe='')}")
        for place, (model, run) in enumerate(zip(("tiny", "words"), runs, strict=True)):
            scores = read_run(run)["scores"].filter(pl.col("measure") == "lp")
            values = dict(scores.select("request", "value").iter_rows())
            sums = page.evaluate(SUMS, [place])
            shown = page.evaluate(SHOWN, model)
            assert [request for request, _ in shown] == [f"{item}/good", f"{item}/bad"]
            for total, (request, text) in zip(sums, shown, strict=True):
                assert total == pytest.approx(-values[request], rel=1e-5, abs=1e-5)
                assert float(text.replace("−", "-")) == pytest.approx(values[request], abs=6e-4)


# The scores of one model in the table, with the requests they belong to.
SHOWN = """model => [...document.querySelectorAll(`[data-measure=lp][data-model=${model}]`)]
  .map((cell) => [cell.dataset.request, cell.textContent])"""
# The surprisals in the rows of one model, summed row by row.
SUMS = """([place]) => {
  const lines = [];
  for (const cell of document.querySelectorAll(`.overlay .cell[data-model="${place}"]`)) {
    const number = Number(cell.dataset.sentence);
    lines[number] = (lines[number] || 0) + Number(cell.dataset.nats);
  }
  return lines;
}"""


@pytest.mark.parametrize("where", ["url", "offline"])
@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_accessible_and_fits(
    chromium: Any, request: pytest.FixtureRequest, where: str, width: int, scheme: str
) -> None:
    address = request.getfixturevalue(where)
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    for state in STATES:
        show(page, address, state)
        found = axe.Axe().run(page)
        assert found.violations_count == 0, f"{state}: {found.generate_report()}"
        assert (
            page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        )
    context.close()


@pytest.mark.parametrize("where", ["url", "offline"])
def test_a_script_in_a_sentence_is_shown_and_not_run(
    page: Any, request: pytest.FixtureRequest, where: str
) -> None:
    address = request.getfixturevalue(where)
    show(page, address, "#/items?suite=scripts")
    texts = page.locator(".sentences").all_inner_texts()
    assert any(SCRIPT in text for text in texts)
    assert any(CLOSING in text for text in texts)
    for number in (1, 2):
        show(page, address, f"#/item?key=scripts%2F{number}")
        assert "script" in page.inner_text(".overlay")
    if where == "url":
        show(page, address, f"#/live?text={quote(CLOSING)}")
        assert "onerror" in "".join(page.locator(".overlay .piece").all_inner_texts())
    show(page, address, f"#/items?q={quote('<img src=x onerror=window.ran=1>')}")
    assert page.evaluate("window.ran") is None
    assert page.locator("main script, main img").count() == 0


def test_another_origin_gets_nothing(chromium: Any, url: str) -> None:
    """A page of another port asks, also with the key, in the ways that a page has."""
    elsewhere = FastAPI()
    elsewhere.get("/", response_class=HTMLResponse)(lambda: "<!doctype html><title>Elsewhere</title>")
    address = url.split("?")[0]
    with running(elsewhere) as other:
        context = chromium.new_context()
        page = context.new_page()
        page.goto(other)
        for headers in ({}, {"x-felicity-key": KEY}):
            for mode in ("cors", "no-cors"):
                asked = [f"{address}api/items", {"headers": headers, "mode": mode, "credentials": "include"}]
                assert page.evaluate(FETCH, asked) in ("", "TypeError: Failed to fetch")
        page.evaluate(FRAME, url)
        # What the browser shows in the place of a page that may not be framed.
        assert page.frames[1].url == "chrome-error://chromewebdata/"
        # The same way of framing shows a page that may be.
        page.evaluate(FRAME, other)
        assert page.frames[2].title() == "Elsewhere"
        context.close()


# Frames an address, and waits until the frame has something to show.
FRAME = """url => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.onload = () => done(null);
  frame.src = url;
  document.body.append(frame);
})"""
FETCH = "([url, how]) => fetch(url, how).then((answer) => answer.text(), (error) => String(error))"


def test_facets_search_pages_and_the_back_button_follow_the_address(
    page: Any, url: str, runs: tuple[Path, Path]
) -> None:
    show(page, url, "#/items")
    assert page.inner_text("#total") == "38 judgements"
    change(page, lambda: page.check("details[data-facet=phenomenon] input[value=agreement]"))
    assert page.inner_text("#total") == "24 of 38 judgements"
    assert "phenomenon=agreement" in page.url
    change(page, lambda: page.fill("#search", "baker"))
    assert page.inner_text("#total") == "3 of 38 judgements"
    assert page.evaluate("document.activeElement.id") == "search"
    change(page, page.locator("a.open").first.click)
    assert page.inner_text("h1").startswith("agree_")
    assert "1 of 3" in page.inner_text("nav.pager")
    change(page, lambda: page.click("#after"))
    assert "2 of 3" in page.inner_text("nav.pager")
    change(page, page.go_back)
    change(page, page.go_back)
    assert page.inner_text("#total") == "3 of 38 judgements"
    assert page.input_value("#search") == "baker"
    page.reload()
    wait(page, page.evaluate("location.hash"))
    assert page.inner_text("#total") == "3 of 38 judgements"


def test_the_keyboard_is_enough(page: Any, url: str) -> None:
    show(page, url, "#/items")
    press = page.keyboard.press
    press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("farmer")
    # On a slow machine a part of the word may be searched for first.
    wait(page, "#/items?q=farmer")
    press("Escape")
    press("j")
    press("j")
    press("k")
    change(page, lambda: press("Enter"))
    first = page.inner_text("h1")
    change(page, lambda: press("n"))
    assert page.inner_text("h1") != first
    change(page, lambda: press("p"))
    assert page.inner_text("h1") == first
    change(page, lambda: press("u"))
    assert "unit=bits" in page.url
    change(page, lambda: press("t"))
    assert "level=word" in page.url
    for key, view in (("c", "compare"), ("s", "suites"), ("l", "live"), ("i", "items")):
        change(page, lambda key=key: press(key))
        assert f"#/{view}" in page.url
    press("?")
    assert page.is_visible("#help")
    press("Escape")
    assert not page.is_visible("#help")


UNCORRECTED = "Word boundaries are not corrected for trailing white space"
OF_REGIONS = "The surprisal of a region is the one that the run was judged by"


def test_regions_are_said_to_be_those_that_the_run_was_judged_by(
    page: Any, tiny_model: Path, tmp_path: Path
) -> None:
    items = "".join(
        f'[[items]]\na = ["The {noun}", "sleep."]\nb = ["The {noun}", "sleeps."]\n'
        for noun in ("cats", "dogs")
    )
    (tmp_path / "s.toml").write_text(f'name = "s"\npredictions = ["(2;%a%) < (2;%b%)"]\n{items}')
    run = tmp_path / "run"
    evaluate(str(tmp_path / "s.toml"), open_model(str(tiny_model), cache=False), out=run)
    with open_collections([run]) as collections:
        write_offline_page(collections, tmp_path / "explore.html")
        with running(create_explore_site(collections, {}, key=KEY)) as address:
            for state in ("#/regions", "#/item?key=s%2F1"):
                show(page, f"{address}/?key={KEY}", state)
                assert OF_REGIONS in page.inner_text("main")
    show(page, (tmp_path / "explore.html").as_uri(), "#/regions")
    assert OF_REGIONS in page.inner_text("main")


def test_bits_and_words_are_the_same_sums(page: Any, url: str) -> None:
    show(page, url, "#/item?key=order%2F3")
    tokens = page.evaluate(SUMS, [0])
    assert page.locator(".overlay .cell .value").first.inner_text()
    change(page, lambda: page.click("#level-word"))
    assert page.evaluate(SUMS, [0]) == pytest.approx(tokens)
    assert UNCORRECTED in page.inner_text("main")
    nats = float(page.locator(".overlay .cell .value").first.inner_text())
    change(page, lambda: page.click("#unit-bits"))
    assert float(page.locator(".overlay .cell .value").first.inner_text()) == pytest.approx(
        nats / 0.6931, abs=0.15
    )


def test_the_sentences_of_one_model_are_adjacent_and_their_difference_is_marked(page: Any, url: str) -> None:
    show(page, url, "#/item?key=agree_sleeps%2F1")
    labels = page.locator(".overlay .label-cell").all_inner_texts()
    assert [label.split(" · ")[0] for label in labels] == ["good", "bad", "margin so far"] * 2
    assert [label.split(" · ")[1] for label in labels] == ["tiny"] * 3 + ["words"] * 3
    for level in ("token", "word"):
        show(page, url, f"#/item?key=agree_sleeps%2F1&level={level}")
        marked = page.locator(".overlay .critical").evaluate_all(
            "columns => columns.map((column) => [...column.querySelectorAll('[data-model=\"0\"] .piece')]"
            ".map((piece) => piece.textContent).join(' '))"
        )
        assert [text.replace(" ", "").replace("␣", "") for text in marked] == ["sleepssleep"], level


def test_scripts_without_spaces_and_from_right_to_left_are_shown_as_they_are_written(
    page: Any, url: str
) -> None:
    show(page, url, "#/items?suite=writing")
    marked = page.locator(".sentences b").all_inner_texts()
    assert marked[:2] == ["が", "を"]  # the particle alone, although the sentence has no space
    assert marked[-2:] == ["ישן", "ישנים"]
    show(page, url, "#/item?key=writing%2F4")
    first, second = (page.locator(f".overlay .piece >> nth={place}").bounding_box()["x"] for place in (0, 1))
    assert page.get_attribute(".overlay", "dir") == "rtl"
    assert first >= second
    show(page, url, "#/item?key=writing%2F2")
    assert page.get_attribute(".overlay", "dir") == "ltr"


def test_on_a_phone_an_item_begins_at_the_words_that_differ(chromium: Any, offline: str) -> None:
    context = chromium.new_context(viewport={"width": 360, "height": 700})
    page = context.new_page()
    show(page, offline, "#/item?key=scripts%2F1")
    box, room = page.locator(".overlay .critical").bounding_box(), page.locator(".overlay").bounding_box()
    labels = page.locator(".overlay .labels").bounding_box()
    assert labels["x"] + labels["width"] <= box["x"] + 1 < room["x"] + room["width"]
    context.close()


def test_a_changed_word_moves_the_margin_by_what_the_model_says(
    page: Any, url: str, runs: tuple[Path, Path]
) -> None:
    lm = open_model(str(runs[0].parent / "tiny"), cache=False)
    good, bad = "The cat sleeps here.", "The cat sleep here."

    def moved(first: str) -> float:
        old, second, new = lm.score([good, bad, first])["lp"].to_list()
        assert float(page.locator(".after").inner_text().replace("−", "-")) == pytest.approx(
            new - second, abs=6e-3
        )
        return float(new - old)

    show(page, url, "#/item?key=agree_sleeps%2F1")
    assert page.locator(".moved").count() == 0
    change(page, lambda: page.fill("#what-0", "The cat waits here."))
    shown = float(page.get_attribute(".moved", "data-moved"))
    assert shown == pytest.approx(moved("The cat waits here."), abs=1e-4)
    change(page, lambda: page.click("#what-back"))
    page.locator('.overlay .critical [data-model="0"][data-sentence="0"]').first.click()
    page.wait_for_selector(".alternatives button")
    button = page.locator(".alternatives button").first
    sentence = button.get_attribute("title")
    change(page, button.click)
    assert page.input_value("#what-0") == sentence
    assert float(page.get_attribute(".moved", "data-moved")) == pytest.approx(moved(sentence), abs=1e-4)


@pytest.mark.parametrize("where", ["url", "offline"])
def test_suites_have_intervals_and_are_sorted_by_what_is_chosen(
    page: Any, request: pytest.FixtureRequest, runs: tuple[Path, Path], where: str
) -> None:
    show(page, request.getfixturevalue(where), "#/suites")
    change(page, lambda: page.click("text=tiny >> nth=-1"))
    table = read_run(runs[0])["estimates"].filter(level="suite", measure="lp")
    rows = page.locator("tr[data-suite]")
    shown = [rows.nth(place).get_attribute("data-suite") for place in range(rows.count())]
    accuracy = dict(table.select("name", "accuracy").iter_rows())
    assert [accuracy[name] for name in shown] == sorted(accuracy.values())
    row = table.row(0, named=True)
    cell = page.locator(f"tr[data-suite={row['name']}] td").nth(1).inner_text()
    assert cell == f"{100 * row['accuracy']:.1f} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"


def test_the_address_is_copied(page: Any, url: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    show(page, url, "#/items?suite=order&sort=margin")
    page.click("#copy-address")
    page.wait_for_selector("#copy-address:has-text('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == f"{url}#/items?suite=order&sort=margin"


def test_the_scatter_selects_by_button_by_rectangle_and_by_point(page: Any, url: str) -> None:
    show(page, url, "#/compare")
    assert page.locator(".point").count() == 38
    number = int(page.locator("[data-pick=disagree] .tally").inner_text())
    change(page, lambda: page.click("[data-pick=disagree]"))
    assert page.locator(".point").count() == number
    assert page.inner_text("#total").startswith(f"{number} of")
    change(page, lambda: page.click("[data-pick='']"))
    box = page.locator(".chart").bounding_box()

    def draw() -> None:
        page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 0.1 * box["height"])
        page.mouse.down()
        page.mouse.move(box["x"] + 0.55 * box["width"], box["y"] + 0.85 * box["height"], steps=4)
        page.mouse.up()

    change(page, draw)
    assert "low_b=" in page.url
    inside = int(page.locator("#total strong").inner_text())
    assert 0 < inside < 38
    change(page, lambda: page.locator(".point").first.dispatch_event("click"))
    assert "#/item?" in page.url


def test_what_is_typed_is_scored_kept_and_saved_for_a_run(
    page: Any, url: str, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    show(page, url, "#/live")
    texts = ["The cats annoy Tim.", "The cats annoys Tim."]
    change(page, lambda: page.fill("#sentences", "\n".join(texts)))
    page.wait_for_selector("#verdicts")
    lm = open_model(str(runs[0].parent / "tiny"), cache=False)
    lp = lm.score(texts)["lp"].to_list()
    margin = f"{abs(lp[0] - lp[1]):.2f}"
    assert margin in page.inner_text("#verdicts")
    sums = page.evaluate(SUMS, [0, 1])
    assert sums == pytest.approx([-value for value in lp], rel=1e-5)
    page.locator(".overlay button.cell").nth(1).click()
    page.wait_for_selector(".alternatives tbody tr >> nth=9")
    page.click("#keep")
    page.wait_for_selector("#save-pairs")
    with page.expect_download() as saving:
        page.click("#save-pairs")
    saving.value.save_as(tmp_path / "pairs.csv")
    data = read_dataset(str(tmp_path / "pairs.csv"))
    assert sorted(data.items["text"]) == sorted(texts)


@pytest.mark.parametrize("where", ["url", "offline"])
def test_a_selection_is_saved_and_becomes_a_rating_study(
    page: Any, request: pytest.FixtureRequest, tmp_path: Path, where: str
) -> None:
    show(page, request.getfixturevalue(where), "#/items?suite=order&sort=margin")
    page.click(".export summary")
    for name in ("selection", "stimuli"):
        with page.expect_download() as saving:
            page.click(f"#save-{name}")
        saving.value.save_as(tmp_path / f"{name}.csv")
    table = pl.read_csv(tmp_path / "selection.csv")
    assert len(table) == 8
    assert table["margin tiny"].is_sorted()
    study = start_study(tmp_path / "study", str(tmp_path / "stimuli.csv"), task="choice")
    assert len(study.stimuli) == 8


QUERIES = [
    {},
    {"phenomenon": ["agreement", "odd"], "sort": ["margin"]},
    {"verdict": ["wrong"], "q": ["the"], "sort": ["closeness"]},
    {"difference": ["0", "1"], "stability": ["stable"], "sort": ["difference"], "desc": ["1"]},
    {"pick": ["disagree"], "sort": ["apart"], "desc": ["1"]},
    {"pick": ["unequal"], "b": ["tiny"], "a": ["words"], "sort": ["margin_b"]},
    {"low": ["-1"], "high": ["2.5"], "low_b": ["-9"], "sort": ["suite"], "desc": ["1"]},
    {"measure": ["mean_lp"], "condition": ["bad"], "pick": ["both_wrong"], "sort": ["item"]},
]


def test_the_file_without_a_server_selects_and_counts_as_the_server_does(
    page: Any, offline: str, runs: tuple[Path, Path]
) -> None:
    """The same questions to the page's own functions and to the server's."""
    show(page, offline, "#/items")
    with open_collections(runs) as (collection,):
        for query in QUERIES:
            pairs = [(name, value) for name, values in query.items() for value in values]
            state = (
                "#/items"
                + ("?" if pairs else "")
                + "&".join(f"{name}={quote(value)}" for name, value in pairs)
            )
            show(page, offline, state)
            expected = read_page(collection, parse_selection(collection, query))
            assert int(page.locator("#total strong").inner_text()) == expected.total, query
            keys = page.evaluate(
                "[...document.querySelectorAll('tr[data-key]')].map((row) => row.dataset.key)"
            )
            assert keys == [row["key"] for row in expected.rows], query
            shown = page.evaluate(
                "[...document.querySelectorAll('details[data-facet]')].map((facet) => [facet.dataset.facet,"
                " [...facet.querySelectorAll('label')].map((label) => [label.querySelector('input').value,"
                " Number(label.querySelector('.tally').textContent)])])"
            )
            assert shown
            for facet, counts in shown:
                assert sorted(map(tuple, counts)) == sorted(expected.facets[facet]), (query, facet)


def test_the_file_without_a_server_says_what_it_cannot_do(page: Any, offline: str) -> None:
    show(page, offline, "#/suites")
    assert page.locator("#view-live").count() == 0
    assert page.locator("tr[data-suite]").count() == 6
    show(page, offline, "#/item?key=order%2F1")
    assert "--live" in page.inner_text("main")


def test_a_printed_page_leaves_out_what_only_a_screen_needs(page: Any, url: str) -> None:
    show(page, url, "#/items")
    page.emulate_media(media="print")
    assert not page.is_visible(".facets")
    assert not page.is_visible("header.top")
    assert page.is_visible("table.items")


def test_cells_and_bars_of_a_report_lead_to_their_items(
    page: Any, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(runs[0], folder)
    with open_collections([folder]) as collections:
        write_offline_page(collections, folder / "explore.html")
    report_run(read_run(folder), folder)
    estimates = read_run(folder)["estimates"].filter(measure="lp")
    sizes = {(row["level"], row["name"]): row["n"] for row in estimates.iter_rows(named=True)}
    page.goto((folder / "report.html").as_uri())
    links = page.locator("a[href*='explore.html#'], svg.wide a").evaluate_all(
        "links => links.map((a) => a.getAttribute('href') || a.getAttribute('xlink:href'))"
    )
    asked = [dict(parse_qsl(link.partition("?")[2])) for link in links]
    assert {"low", "high", "measure"} in [set(one) for one in asked]
    whole = [one for one in asked if set(one) in ({"suite", "measure"}, {"phenomenon", "measure"})]
    assert len({one["suite"] for one in whole if "suite" in one}) == 6
    for one in random.Random(26).sample([one for one in whole if one["measure"] == "lp"], 5):
        show(page, (folder / "explore.html").as_uri(), f"#/items?{urlencode(one)}")
        level = "suite" if "suite" in one else "phenomenon"
        shown = int(page.locator("#total strong").inner_text())
        assert shown == sizes[level, one[level]], one
    # The bars of the histogram hold every margin once.
    bars = {(one["low"], one["high"]) for one in asked if "low" in one}
    margins = read_run(folder)["judgements"].filter(measure="lp")["margin"]
    assert all(any(float(low) <= margin <= float(high) for low, high in bars) for margin in margins)
    item = next(link for link in links if "#/item?" in link)
    show(page, (folder / "explore.html").as_uri(), f"#{item.partition('#')[2]}")
    assert page.locator(".overlay .cell").count()


def test_cells_of_a_study_lead_to_their_items(page: Any, runs: tuple[Path, Path], tmp_path: Path) -> None:
    study = fe.bias(
        str(runs[0].parent / "pairs.csv"), models=[str(runs[0].parent / "tiny")], out=tmp_path / "s"
    )
    with open_collections([study.folder]) as collections:
        write_offline_page(collections, study.folder / "explore.html")
    read_study(study.folder).report()
    page.goto((study.folder / "report.html").as_uri())
    rows = page.locator("#suites tbody tr, #splits tbody tr").evaluate_all(
        "rows => rows.flatMap((row) => [...row.querySelectorAll('td a')]"
        ".map((a) => [a.getAttribute('href'), a.textContent]))"
    )
    counts = [(href, text) for href, text in rows if text.isdecimal() and "measure" in href]
    assert len(counts) == 3 * 7
    for href, text in random.Random(26).sample(counts, 6):
        page.goto((study.folder / "explore.html").as_uri() + f"#{href.partition('#')[2]}")
        wait_until_shown(page)
        assert page.locator("#total strong").inner_text() == text, href


# Shows the tables that stand folded under their figures.
UNFOLD = "document.querySelectorAll('details').forEach((part) => { part.open = true; })"


def wait_until_shown(page: Any) -> None:
    """Wait until what the address names is shown; a link of a report is written anew on the way."""
    page.wait_for_selector("main[aria-busy=false][data-shown]")
    assert page.get_attribute("main", "data-shown") == page.evaluate("location.hash")
    assert "run=" not in page.url


def test_a_report_from_the_disk_leads_to_its_own_model(
    page: Any, cli: Any, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    """What `felicity run` writes for two models, followed by clicks alone."""
    made = runs[0].parent
    answer = cli(
        "run", made / "pairs.csv", "-m", made / "tiny", "-m", made / "words.arpa", "-q", "-o", tmp_path / "b"
    )
    assert answer.code == 0, answer.err
    for name in ("tiny", "words"):
        page.goto((tmp_path / "b" / name / "report.html").as_uri())
        page.locator("a[href*='#/items?'][href*='suite=order']").first.click()
        wait_until_shown(page)
        assert page.locator("#total strong").inner_text() == "8"
        assert page.input_value("#a") == name
    page.goto((tmp_path / "b" / "report.html").as_uri())
    page.evaluate(UNFOLD)
    page.locator("a[href*='#/compare?'][href*='phenomenon=order']").first.click()
    wait_until_shown(page)
    assert page.locator(".point").count() == 8


def test_a_report_without_the_explorers_page_says_how_to_open_it(
    page: Any, cli: Any, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    made = runs[0].parent
    given = ("bias", made / "pairs.csv", "-m", made / "tiny", "-q", "--no-explorer", "-o", tmp_path / "s")
    assert cli(*given).code == 0
    page.goto((tmp_path / "s" / "report.html").as_uri())
    page.evaluate(UNFOLD)
    page.locator("#splits td a").first.click()
    assert "felicity explore . --static explore.html" in page.inner_text("main")
    assert axe.Axe().run(page).violations_count == 0
    page.click("text=Back to the report")
    assert "Token-length bias" in page.title()
