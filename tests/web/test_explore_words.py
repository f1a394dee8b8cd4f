"""Texts that people read in the explorer: curves over words, in a real browser, served and as a file."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars as pl
import pytest

from felicity.explore import open_collections
from felicity.studies import read_study
from felicity.web import create_explore_site, running, write_offline_page
from tests.explore.runs import write_reading
from tests.web.sites import EXPLORE_KEY as KEY
from tests.web.test_explore_browser import UNFOLD, WAIT_MS, axe, change, show

pytestmark = pytest.mark.slow
STATES = (
    "#/words",
    "#/words?text=b&from=201&to=320&model=one&model=two&measure=n400&word=230",
    "#/words?text=d&show=residual&unit=nats",
    "#/words?text=nowhere",
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reading(tmp_path_factory.mktemp("read"))


@pytest.fixture(scope="module")
def url(study: Path) -> Iterator[str]:
    with open_collections([study]) as collections:
        with running(create_explore_site(collections, {}, key=KEY)) as address:
            yield f"{address}/?key={KEY}"


@pytest.fixture(scope="module")
def offline(study: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    page = tmp_path_factory.mktemp("offline") / "explore.html"
    with open_collections([study]) as collections:
        write_offline_page(collections, page)
    return page.as_uri()


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    context = chromium.new_context(viewport={"width": 1200, "height": 800})
    context.set_default_timeout(WAIT_MS)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("where", ["url", "offline"])
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_every_state_is_accessible_and_fits(
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
        assert page.evaluate(OVERFLOW) <= 0, state
    context.close()


OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("where", ["url", "offline"])
def test_the_numbers_of_random_words_are_those_of_the_tables(
    page: Any, request: pytest.FixtureRequest, study: Path, where: str
) -> None:
    tables = read_study(study).tables
    words, rest = tables["words"], tables["residuals"]
    for number in random.Random(28).sample(range(450), 6):
        query = {"text": "b", "measure": "n400", "model": ["one", "two"], "word": number + 1}
        show(page, request.getfixturevalue(where), f"#/words?{urlencode(query, doseq=True)}")
        node = page.locator(f"#word-{number + 1}")
        said = node.get_attribute("aria-label")
        for model in ("one", "two"):
            row = words.filter(text="b", model=model).row(number, named=True)
            left = rest.filter(text="b", model=model, measure="n400").row(number, named=True)
            assert node.inner_text() == row["word"]
            assert f"{model} {row['surprisal']:.2f} bits" in said
            if left["left_out"]:
                assert f"left out {left['left_out']}" in said
            else:
                value = f"{left['residual']:+.3f}".replace("-", "−")
                assert f"residual ({model}) {value} µV" in said
        time = "no value" if row["n400"] is None else f"{row['n400']:.3f} µV".replace("-", "−")
        assert f"n400 {time}" in said
        assert page.inner_text("#word").startswith(row["word"])


def test_keys_hover_and_a_click_choose_a_word_and_the_address_keeps_it(page: Any, url: str) -> None:
    show(page, url, "#/words?text=b")
    page.focus("#word-1")
    page.keyboard.press("ArrowDown")
    line = page.locator(".passage-line").nth(1)
    assert line.locator(".word.now").count() == 1
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.id") == "word-2"
    assert "word 2, sentence b0, position 2" in page.inner_text("#word")
    page.locator("#word-7").hover()
    assert "word 7," in page.inner_text("#word")
    page.click("#word-9")
    assert page.url.endswith("#/words?text=b&word=9")
    page.reload()
    page.wait_for_selector("#word-9.now")
    show(page, url, "#/words?text=b&word=190")
    box = page.locator("#word-190.now").bounding_box()
    assert 0 < box["y"] < 800
    # Only one word at a time is reached by the tabulator key.
    assert page.locator(".word[tabindex='0']").count() == 1


def test_a_long_text_is_shown_in_parts_and_read_on_with_a_key(page: Any, url: str) -> None:
    show(page, url, "#/words?text=a")
    assert page.locator(".word").count() == 200
    change(page, lambda: page.keyboard.press("n"))
    assert page.locator(".word").first.get_attribute("id") == "word-201"
    change(page, lambda: page.keyboard.press("n"))
    assert "text=b" in page.url
    change(page, lambda: page.click("text=All words"))
    assert page.locator(".word").count() == 450
    change(page, lambda: page.select_option("#text", "c"))
    assert page.locator(".word").count() == 150


def test_measure_models_and_residuals_are_chosen(page: Any, url: str) -> None:
    show(page, url, "#/words?text=d")
    assert page.inner_text("#word").startswith("cat") or "text d" in page.inner_text("#word")
    change(page, lambda: page.select_option("#measure", "n400"))
    assert "µV" in page.locator(".unit").first.text_content()
    change(page, lambda: page.uncheck("input[value=two]"))
    assert page.locator(".series-key li").count() == 2
    change(page, lambda: page.click("#show-residual"))
    assert page.locator(".series-key li").all_inner_texts() == ["residual and surprisal, one"]
    assert "show=residual" in page.url
    reason = page.locator("#left-out")
    reason.locator("summary").click()
    assert "no frequency 2 words before in the sentence" in reason.inner_text()


def test_lines_of_words_follow_the_width(page: Any, offline: str) -> None:
    show(page, offline, "#/words?text=c")
    wide = page.locator(".passage-line").count()
    page.set_viewport_size({"width": 360, "height": 800})
    page.wait_for_selector(f".passage-line >> nth={2 * wide}")
    assert page.evaluate(OVERFLOW) <= 0
    middles = page.evaluate(
        "[...document.querySelectorAll('.passage-line')].slice(0, 5).flatMap((line) => {"
        " const left = line.getBoundingClientRect().left;"
        " const dots = [...line.querySelectorAll('rect.band')].map((band) => Number(band.getAttribute('x')) +"
        " Number(band.getAttribute('width')) / 2);"
        " return [...line.querySelectorAll('.word')].map((word, place) => {"
        "  const box = word.getBoundingClientRect();"
        "  return box.left + box.width / 2 - left - dots[place]; }); })"
    )
    assert max(map(abs, middles)) < 1.5


def test_the_words_that_are_shown_are_saved(page: Any, url: str, tmp_path: Path, study: Path) -> None:
    show(page, url, "#/words?text=b&from=11&to=30&model=two")
    with page.expect_download() as saving:
        page.click("#save-words")
    saving.value.save_as(tmp_path / "words.csv")
    saved = pl.read_csv(tmp_path / "words.csv")
    own = read_study(study)["words"].filter(text="b", model="two")[10:30]
    assert saved["word"].to_list() == own["word"].to_list()
    assert saved["two (bits)"].to_list() == pytest.approx(own["surprisal"].to_list())


def test_cells_of_the_report_lead_to_the_words(page: Any, cli: Any, study: Path) -> None:
    assert cli("report", study).code == 0
    page.goto((study / "report.html").as_uri())
    page.evaluate(UNFOLD)
    page.locator("#slopes td a[href*='measure=n400'][href*='model=two']").first.click()
    page.wait_for_selector("main[aria-busy=false] .word.now")
    assert page.input_value("#measure") == "n400"
    assert [box.input_value() for box in page.locator("#models input:checked").all()] == ["two"]
