"""The site in a real browser: mouse, keyboard alone, a narrow phone, no script; axe on every page."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from felicity.humans import INTERFACES, build_rating_tables
from felicity.humans.tables import answers, raters
from felicity.web import write_preview_page
from tests.humans.studies import ENGLISH_PAGES, TASKS, make_study, stimulus_rows
from tests.web.sites import TOKEN, Site, open_site

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
WAIT_S = 60.0
PAGES = (
    ENGLISH_PAGES
    + """
[[demographics]]
name = "first"
question = "Is English your first language?"
choices = ["Yes", "No"]
[design]
quota = 100
"""
)


def write_rows(task: str) -> list[dict[str, str]]:
    rows = stimulus_rows(task, items=2)
    for row in rows:
        row["context"] = "It was a long day, and nobody had come by since the morning."
    for row in rows[:2]:
        row |= {"question": "Who was it about?", "choices": "an animal | a lamp", "correct": "an animal"}
    return rows


class Rater:
    """Somebody in front of a browser, who uses only what the mode allows."""

    def __init__(self, page: Any, *, keyboard: bool, script: bool, task: str) -> None:
        self.page = page
        self.keyboard = keyboard
        self.script = script
        self.task = task
        self.seen: list[str] = []

    def go(self, url: str) -> str:
        """From the first page to the completion code."""
        self.page.goto(url)
        deadline = time.monotonic() + 4 * WAIT_S
        while not self.has("#code"):
            assert time.monotonic() < deadline, self.page.content()
            self.check_page()
            before = self.token()
            self.act()
            self.wait_for_next(before)
        self.check_page()
        return str(self.page.inner_text("#code"))

    def has(self, selector: str) -> bool:
        return bool(self.page.locator(selector).count())

    def token(self) -> str | None:
        # A locator would wait half a minute for a token that left with its page.
        found: str | None = self.page.evaluate("() => document.querySelector('[name=token]')?.value ?? null")
        return found

    def wait_for_next(self, before: str | None) -> None:
        """Until the next page is there: its form or the code, not the empty document that comes before it."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            try:
                if self.has("#code") or self.token() not in (None, before):
                    self.page.wait_for_load_state()
                    return
            except playwright.Error:
                pass  # the page was being replaced
            time.sleep(0.02)
        raise AssertionError(f"nothing happened on {self.page.inner_text('main')}")

    def check_page(self) -> None:
        """No sideways scrolling, nothing that axe objects to."""
        wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert self.page.evaluate(wider) <= 0
        if self.script:
            found = axe.Axe().run(self.page)
            assert found.violations_count == 0, found.generate_report()

    def act(self) -> None:
        if self.has("[name=agree]"):
            self.choose("[name=agree]")
        elif self.has("[name=q0]"):
            self.choose('[name=q0][value="0"]')
        elif self.has("[name=age]"):
            self.write("[name=age]", "33")
            self.choose('[name=first][value="1"]')
        elif self.has("form[data-question]"):
            self.answer_question()
        elif self.has("form.trial"):
            self.answer_trial()
            if self.task in ("reading", "maze"):
                return
        self.submit()

    def answer_question(self) -> None:
        if self.keyboard:
            self.page.keyboard.press("1")
        else:
            self.choose('[name=answer][value="0"]')

    def answer_trial(self) -> None:
        self.seen.append(self.page.inner_text("main"))
        task = self.task
        if task in ("likert", "binary", "choice"):
            if self.keyboard:
                self.page.keyboard.press("2")
            else:
                self.page.locator(f"label:has([name=answer]) >> nth={3 if task == 'likert' else 1}").click()
        elif task == "slider":
            self.use_slider()
        elif task == "magnitude":
            self.write("[name=answer]", "150")
        elif task in ("cloze", "continuation"):
            self.write("[name=answer]", "slept well")
        elif task == "reading":
            for _ in range(8):
                self.page.keyboard.press("Space")
        else:
            self.page.keyboard.press("Space")
            words = self.page.locator("#maze").get_attribute("data-left")
            for left in words.strip("[]").split(", "):
                self.page.keyboard.press("e" if left == "true" else "ArrowRight")

    def use_slider(self) -> None:
        if not self.script:
            self.write("[name=answer]", "70")
            return
        line = self.page.locator("[type=range]")
        assert "untouched" in str(line.get_attribute("class"))
        assert self.page.input_value("[name=answer]") == ""
        if self.keyboard:
            self.tab_to("[type=range]")
            self.page.keyboard.type("70")
        else:
            box = line.bounding_box()
            line.click(position={"x": 0.7 * box["width"], "y": box["height"] / 2})
        assert float(self.page.input_value("[name=answer]")) == pytest.approx(70, abs=3)

    def choose(self, selector: str) -> None:
        if not self.keyboard:
            self.page.locator(f"label:has({selector})").click()
            return
        name = selector.split("]")[0] + "]"
        self.tab_to(name)
        for _ in range(5):
            if self.page.locator(selector).is_checked():
                return
            if self.page.locator(selector).get_attribute("type") == "checkbox":
                self.page.keyboard.press("Space")
                continue
            self.page.keyboard.press(
                "Space" if not self.page.locator(f"{name}:checked").count() else "ArrowDown"
            )
        assert self.page.locator(selector).is_checked()

    def write(self, selector: str, text: str) -> None:
        if self.keyboard:
            self.tab_to(selector)
        else:
            self.page.locator(selector).click()
        self.page.keyboard.type(text)

    def submit(self) -> None:
        if self.keyboard:
            self.tab_to("button.primary")
            self.page.keyboard.press("Enter")
        else:
            self.page.locator("button.primary").click(no_wait_after=True)

    def tab_to(self, selector: str) -> None:
        for _ in range(40):
            if self.page.evaluate("s => document.activeElement.matches(s)", selector):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{selector} cannot be reached with the Tab key")


MODES = {
    "mouse": {"width": 1100, "keyboard": False, "script": True},
    "keyboard": {"width": 1100, "keyboard": True, "script": True},
    "phone": {"width": 320, "keyboard": False, "script": True},
    "without a script": {"width": 1100, "keyboard": False, "script": False},
}
WAYS = [
    (task, mode)
    for task in TASKS
    for mode in MODES
    if not (task in ("reading", "maze") and mode in ("phone", "without a script"))
]


@pytest.mark.slow
@pytest.mark.parametrize(("task", "mode"), WAYS)
def test_a_person_gets_from_consent_to_the_completion_code(
    chromium: Any, tmp_path: Path, task: str, mode: str
) -> None:
    how: dict[str, Any] = MODES[mode]
    study = make_study(
        tmp_path, task, rows=write_rows(task), more=PAGES, study='contact = "lab@example.org"\n'
    )
    with open_site(study) as site:
        context = chromium.new_context(
            viewport={"width": how["width"], "height": 700},
            java_script_enabled=how["script"],
            color_scheme="dark" if mode == "keyboard" else "light",
        )
        page = context.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        rater = Rater(page, keyboard=how["keyboard"], script=how["script"], task=task)
        code = rater.go(site.url)
        context.close()
        assert len(code) == 10
        assert problems == []
        ratings = build_rating_tables(site.store)["ratings"]
    assert ratings.height == 2
    assert ratings["question_correct"].to_list().count(True) == 1
    if how["script"]:
        assert all(0 < value < 60_000 for value in ratings["rt_ms"])
    else:
        assert ratings["rt_ms"].null_count() == 2
        assert set(ratings["flags"]) == {"no_script"}
    expected = {
        "likert": 2.0 if mode == "keyboard" else 4.0,
        "slider": pytest.approx(70, abs=3),
        "magnitude": 150.0,
    }
    if task in expected:
        assert ratings["rating"].to_list() == [expected[task]] * 2
    if task in ("cloze", "continuation"):
        assert ratings["normalised"].to_list() == ["slept well"] * 2
        assert "pasted" not in "".join(ratings["flags"])


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    context = chromium.new_context(viewport={"width": 800, "height": 700})
    yield context.new_page()
    context.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(make_study(tmp_path)) as running:
        yield running


def begin(page: Any, site: Site) -> None:
    page.goto(site.url)
    page.check("[name=agree]")
    page.click("button.primary")
    page.wait_for_selector("form.trial")


def test_an_answer_given_offline_is_kept_and_sent_later_once(page: Any, site: Site) -> None:
    begin(page, site)
    page.context.set_offline(True)
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    page.wait_for_selector("#offline:has-text('No connection')")
    assert site.store.rows(answers) == []
    page.context.set_offline(False)
    page.wait_for_selector("h1:has-text('2 of 4')")
    assert [row.value for row in site.store.rows(answers)] == [3.0]


def test_an_answer_that_could_not_be_sent_before_a_reload_is_sent_after_it(page: Any, site: Site) -> None:
    begin(page, site)
    page.route("**/answer", lambda route: route.abort())
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    page.wait_for_selector("#offline:has-text('No connection')")
    page.unroute("**/answer")
    page.reload()
    page.wait_for_selector("h1:has-text('2 of 4')")
    assert [row.value for row in site.store.rows(answers)] == [3.0]


def test_a_double_click_stores_one_answer(page: Any, site: Site) -> None:
    begin(page, site)
    page.keyboard.press("4")
    page.dblclick("button.primary", no_wait_after=True)
    page.wait_for_selector("h1:has-text('2 of 4')")
    assert [row.value for row in site.store.rows(answers)] == [4.0]


def test_enter_without_an_answer_says_what_is_missing_and_chooses_nothing(page: Any, site: Site) -> None:
    begin(page, site)
    page.keyboard.press("Enter")
    assert page.inner_text("form .error") == "Please choose an answer."
    assert page.locator("[name=answer]:checked").count() == 0
    assert page.evaluate("document.activeElement === document.body")
    check_axe(page)
    page.keyboard.press("2")
    assert page.locator("form .error").count() == 0
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('2 of 4')")
    assert [row.value for row in site.store.rows(answers)] == [2.0]


@pytest.mark.parametrize(("task", "more"), [("choice", ""), ("likert", "numbers = false\n")])
def test_number_keys_choose_where_options_show_their_numbers(
    page: Any, tmp_path: Path, task: str, more: str
) -> None:
    with open_site(make_study(tmp_path, task, task_more=more)) as site:
        begin(page, site)
        page.keyboard.press("2")
        chosen = page.locator("[name=answer]:checked").count()
        shown = [key.inner_text() for key in page.locator(".key").all()]
        assert (chosen, shown) == ((1, ["1", "2"]) if task == "choice" else (0, []))
        assert page.locator(".keys").count() == chosen


@pytest.mark.parametrize("labelled", [False, True])
def test_a_scale_with_context_fits_a_phone_or_says_to_scroll(
    chromium: Any, tmp_path: Path, labelled: bool
) -> None:
    labels = [f"point {n}" for n in range(7)] if labelled else ["very bad", "very good"]
    rows = [
        row | {"context": "Nobody had come by since the morning. " * 4} for row in stimulus_rows("likert")
    ]
    filled = tuple(labels) if labelled else (labels[0], *[""] * 5, labels[1])
    study = make_study(tmp_path, rows=rows)
    study = replace(study, task=replace(study.task, points=7, labels=filled))
    with open_site(study) as site:
        context = chromium.new_context(viewport={"width": 360, "height": 640})
        page = context.new_page()
        begin(page, site)
        page.wait_for_timeout(200)
        bottom = page.evaluate(
            "[...document.querySelectorAll('.point')].pop().getBoundingClientRect().bottom"
        )
        assert (bottom <= 640) != labelled
        assert page.is_visible(".scroll-down") == labelled
        page.locator(".point").last.scroll_into_view_if_needed()
        page.wait_for_timeout(200)
        assert not page.is_visible(".scroll-down")
        context.close()


def test_a_slider_says_its_range(page: Any, tmp_path: Path) -> None:
    with open_site(make_study(tmp_path, "slider", task_more="minimum = -3\nmaximum = 3\n")) as site:
        begin(page, site)
        assert page.inner_text(".ends").split("\n") == ["bad (-3)", "good (3)"]
        assert "a number from -3 to 3" in page.inner_text(".slider-hint")


@pytest.mark.parametrize("task", ["reading", "maze"])
def test_a_timed_trial_begins_with_a_cross_and_measures_the_screen(
    page: Any, tmp_path: Path, task: str
) -> None:
    with open_site(make_study(tmp_path, task)) as site:
        begin(page, site)
        assert page.inner_text(".cross") == "+"
        left = (
            page.locator("#maze").get_attribute("data-left").strip("[]").split(", ") if task == "maze" else []
        )
        page.keyboard.press("Space")
        assert page.locator(".cross").count() == 0
        if task == "maze":
            words = page.locator(".word").first.evaluate("one => getComputedStyle(one).borderTopWidth")
            assert words == "0px"
        for key in ["e" if side == "true" else "i" for side in left] or ["Space"] * 7:
            page.wait_for_timeout(50)
            page.keyboard.press(key)
        page.wait_for_selector("h1:has-text('2 of 4')")
        frames = site.store.rows(answers)[0].detail["frames"]
    assert frames["frames"] > 3
    assert 0 < frames["clock_ms"] <= 1
    assert frames["hz"] > 10
    assert frames["dropped"] >= 0


def test_a_pasted_answer_is_flagged(page: Any, tmp_path: Path) -> None:
    with open_site(make_study(tmp_path, "continuation")) as site:
        begin(page, site)
        page.keyboard.insert_text("written elsewhere")
        page.keyboard.press("Control+a")
        page.keyboard.press("Control+x")
        page.keyboard.press("Control+v")
        page.click("button.primary", no_wait_after=True)
        page.wait_for_selector("h1:has-text('2 of 4')")
        row = site.store.rows(answers)[0]
        assert row.raw == "written elsewhere"
        assert "pasted" in row.flags


def test_a_touch_screen_is_refused_by_a_timed_task(chromium: Any, tmp_path: Path) -> None:
    with open_site(make_study(tmp_path, "reading")) as site:
        context = chromium.new_context(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 800})
        page = context.new_page()
        page.goto(site.url)
        assert page.is_visible("#no-keyboard")
        assert not page.is_visible("form")
        context.close()


@pytest.mark.parametrize("language", [*INTERFACES, "he"])
def test_every_language_and_direction_fits_a_phone(chromium: Any, tmp_path: Path, language: str) -> None:
    study = 'interface = "en"\n' if language == "he" else ""
    right_to_left = language in ("ar", "he")
    rows = stimulus_rows("likert")
    if right_to_left:
        rows = [row | {"text": "نامت القطة على الأريكة طوال اليوم."} for row in rows]
    with open_site(make_study(tmp_path, rows=rows, language=language, study=study)) as site:
        context = chromium.new_context(viewport={"width": 320, "height": 700})
        page = context.new_page()
        begin(page, site)
        assert page.evaluate("document.documentElement.dir") == ("rtl" if right_to_left else "ltr")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        found = axe.Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        context.close()


def test_a_wrong_answer_about_the_instructions_is_told_and_they_are_shown_again(
    page: Any, tmp_path: Path
) -> None:
    with open_site(make_study(tmp_path, more=ENGLISH_PAGES)) as site:
        page.goto(site.url)
        page.check("[name=agree]")
        page.click("button.primary")
        page.click("form[data-answer] button.primary")
        page.click("label:has([name=q0][value='1'])")
        page.click("button.primary", no_wait_after=True)
        page.wait_for_selector(".error:has-text('Not every answer was right')")
        assert "Please read every sentence" in page.inner_text("main")
        check_axe(page)
        assert [row.detail["tries"] for row in site.store.rows(answers) if row.kind == "quiz"] == [1]
        page.click("label:has([name=q0][value='0'])")
        page.click("button.primary", no_wait_after=True)
        page.wait_for_selector("[name=age]")


@pytest.mark.parametrize("task", ["likert", "reading"])
def test_a_preview_file_leads_from_consent_to_the_code_and_sends_nothing(
    page: Any, tmp_path: Path, task: str
) -> None:
    study = make_study(tmp_path, task, rows=write_rows(task), more=ENGLISH_PAGES)
    number = write_preview_page(study, tmp_path / "preview.html", trials=1)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"file://{tmp_path / 'preview.html'}")
    check_axe(page)
    shown = page.frame_locator("#page")
    shown.locator("[name=agree]").check()
    for place in range(1, number):
        page.wait_for_selector(f"#place:has-text('{place}')")
        if shown.locator("#reading").count():
            for _ in range(8):
                page.keyboard.press("Space")
            continue
        for radio in ("[name=q0]", "[name=answer]"):
            if shown.locator(radio).count():
                shown.locator(radio).first.check(force=True)
        shown.locator("button.primary").click()
    shown.locator("#code").wait_for()
    assert shown.locator("#code").inner_text() == "PREVIEW"
    page.click("#again")
    shown.locator("[name=agree]").wait_for()
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == []


def check_axe(page: Any) -> None:
    found = axe.Axe().run(page)
    assert found.violations_count == 0, f"{page.url}\n{found.generate_report()}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_researchers_page_and_the_pages_that_refuse_are_accessible(
    chromium: Any, tmp_path: Path, scheme: str
) -> None:
    rows = stimulus_rows("likert", items=2, conditions=("",))
    more = '[platform]\nname = "prolific"\n[design]\nparts = 2\nquota = 1\nlists_per_rater = 2\n'
    with open_site(make_study(tmp_path, rows=rows, more=more)) as site:
        context = chromium.new_context(viewport={"width": 800, "height": 700}, color_scheme=scheme)
        page = context.new_page()

        def look(path: str, shown: str) -> None:
            page.goto(site.url + path)
            assert shown in page.inner_text("main")
            check_axe(page)

        look("/", "link that the platform gave you")
        look("/nothing", "no such page")
        look("/researcher", "felicity rate serve printed")
        look(f"/researcher?token={TOKEN}", "Nobody has come yet")
        page.goto(f"{site.url}/?PROLIFIC_PID=someone")
        page.click("button.primary")
        check_axe(page)
        page.check("[name=agree]")
        page.click("button.primary")
        page.wait_for_selector("form.trial")
        page.evaluate("HTMLFormElement.prototype.submit.call(document.querySelector('form.trial'))")
        page.wait_for_selector(".error")
        check_axe(page)
        page.keyboard.press("3")
        page.click("button.primary")
        page.wait_for_selector("form[action='/more']")
        check_axe(page)
        look("/withdraw", "Withdraw")
        look(f"/researcher?token={TOKEN}", "Raters")
        look("/researcher/list/1", "The trials in one of the orders")
        rater = site.store.rows(raters)[0].id
        look(f"/researcher/rater/{rater}", "1 of 1 trials")
        look("/researcher", "Answers by condition")
        page.click("form[action='/researcher/pause'] button")
        page.wait_for_selector(".error")
        check_axe(page)
        context.clear_cookies()
        look("/?PROLIFIC_PID=another", "paused")
        site.store.pause(False)
        site.store.enter()
        context.clear_cookies()
        look("/?PROLIFIC_PID=another", "full")
        context.close()
