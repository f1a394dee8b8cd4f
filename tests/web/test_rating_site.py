"""The site as a program sees it: the course of a study, attacks, identity, lists that come out even."""

import os
import re
import socket
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import httpx
import polars as pl
import pytest
import sqlalchemy as sa

from felicity.humans import (
    Population,
    RatingStudy,
    Store,
    build_rating_tables,
    describe_results,
    forget_platform_ids,
    send_raters,
    write_export,
)
from felicity.humans.tables import answers, raters, slots
from felicity.humans.visits import PageForm, read_page_form
from felicity.web import AddressLimit
from felicity.web.markdown import render_markdown
from felicity.web.server import _listen, warn_about
from tests.humans.studies import GERMAN_PAGES, TASKS, make_study, stimulus_rows
from tests.web.sites import TOKEN, Site, open_site

PROLIFIC = '[platform]\nname = "prolific"\n'


OPEN: list[httpx.Client] = []


@pytest.fixture(autouse=True)
def close_clients() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


class Browser:
    """A browser without a script: cookies, redirects, forms."""

    def __init__(self, url: str) -> None:
        self.client = httpx.Client(base_url=url, follow_redirects=True, verify=False, timeout=60)
        OPEN.append(self.client)
        self.answer: httpx.Response | None = None

    def get(self, path: str) -> PageForm:
        self.answer = self.client.get(path)
        return read_page_form(self.answer.text)

    def post(self, path: str, data: dict[str, str]) -> PageForm:
        self.answer = self.client.post(path, data=data)
        return read_page_form(self.answer.text)

    @property
    def status(self) -> int:
        assert self.answer is not None
        return self.answer.status_code

    @property
    def text(self) -> str:
        assert self.answer is not None
        return self.answer.text

    def consent(self, path: str = "/") -> PageForm:
        page = self.get(path)
        return self.post("/consent", {"token": page.fields["token"], "agree": "1"})


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(make_study(tmp_path)) as running:
        yield running


@pytest.mark.parametrize("task", TASKS)
def test_every_task_leads_from_consent_to_a_completion_code(tmp_path: Path, task: str) -> None:
    study = make_study(tmp_path, task)
    with open_site(study) as site:
        visits = send_raters(site.url, study, Population(raters=2, double_clicks=0.5))
        assert all(visit.code for visit in visits)
        assert all(len(visit.acknowledged) == 4 for visit in visits)
        assert len(site.store.rows(answers)) == 8
        tables = build_rating_tables(site.store)
        assert tables["ratings"].height == 8
        assert set(tables) == {"ratings", "raters", "design"} | (
            {"words", "timing"} if study.timed else set()
        )


def test_a_form_without_an_answer_asks_again_and_stores_nothing(site: Site) -> None:
    browser = Browser(site.url)
    page = browser.consent()
    again = browser.post("/answer", {"token": page.fields["token"]})
    assert browser.status == 422
    assert "Please choose an answer." in browser.text
    assert again.row == page.row
    assert site.store.rows(answers) == []


def test_no_answer_is_chosen_beforehand(site: Site) -> None:
    browser = Browser(site.url)
    browser.consent()
    assert "checked" not in browser.text


def test_consent_is_stored_with_the_hash_of_its_text_and_nothing_before_it(site: Site) -> None:
    browser = Browser(site.url)
    page = browser.get("/")
    assert site.store.rows(raters) == []
    browser.post("/consent", {"token": page.fields["token"]})
    assert browser.status == 422
    assert site.store.rows(raters) == []
    browser.consent()
    assert [row.consent_hash for row in site.store.rows(raters)] == [site.store.study.consent_hash]


def test_a_consent_form_sent_twice_lets_one_person_in(site: Site) -> None:
    browser = Browser(site.url)
    page = browser.get("/")
    form = {"token": page.fields["token"], "agree": "1"}
    cookies = dict(browser.client.cookies)
    seen = []
    for _ in range(2):
        # A double click: the second form goes out before the first is answered.
        other = Browser(site.url)
        other.client.cookies.update(cookies)
        seen.append(other.post("/consent", form).row)
    assert len(site.store.rows(raters)) == len(site.store.rows(slots)) == 1
    assert seen[0] == seen[1]


def test_reload_and_back_neither_lose_nor_double(site: Site) -> None:
    browser = Browser(site.url)
    first = browser.consent()
    second = browser.post("/answer", {"token": first.fields["token"], "answer": "2"})
    assert second.row != first.row
    again = browser.post("/answer", {"token": first.fields["token"], "answer": "5"})
    assert again.row == second.row
    assert browser.get("/study").row == second.row
    assert browser.get("/").row == second.row
    assert [row.value for row in site.store.rows(answers)] == [2.0]


def test_a_rater_goes_on_from_another_device_with_the_same_platform_id(tmp_path: Path) -> None:
    with open_site(make_study(tmp_path, more=PROLIFIC)) as site:
        phone, laptop = Browser(site.url), Browser(site.url)
        page = phone.consent("/?PROLIFIC_PID=abc123&STUDY_ID=s&SESSION_ID=x")
        page = phone.post("/answer", {"token": page.fields["token"], "answer": "2"})
        there = laptop.get("/?PROLIFIC_PID=abc123")
        assert there.row == page.row
        assert len(site.store.rows(raters)) == 1


def test_the_platform_id_leaves_the_address_at_once(tmp_path: Path) -> None:
    with open_site(make_study(tmp_path, more=PROLIFIC)) as site:
        answer = httpx.get(f"{site.url}/?PROLIFIC_PID=abc123", verify=False)
        assert answer.status_code == 303
        assert answer.headers["location"] == "/"
        assert "abc123" not in str(answer.headers)
        assert answer.headers["referrer-policy"] == "no-referrer"
        browser = Browser(site.url)
        browser.get("/")
        assert browser.status == 403
        assert "link that the platform gave you" in browser.text
        browser.get("/?PROLIFIC_PID=<script>")
        assert browser.status == 400


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_thousand_platform_ids_are_nowhere_but_in_the_file_that_can_be_deleted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = stimulus_rows("likert", items=1, conditions=("",))
    folder = tmp_path / "study"
    study = make_study(folder, rows=rows, more=PROLIFIC + "[design]\nquota = 1000\n")
    ids = [f"planted{number:06d}x{number * 7919 % 100_000:05d}" for number in range(1000)]
    with open_site(study) as site:
        # Nobody waits for the next page on a machine that is busy with other tests for longer than this.
        with httpx.Client(base_url=site.url, verify=False, timeout=300) as client:

            def ask(method: str, path: str, **options: dict[str, str]) -> PageForm:
                answer = client.request(method, path, **options)  # type: ignore[arg-type]
                assert answer.status_code in (200, 303), (
                    f"{method} {path}: {answer.status_code} {answer.text}"
                )
                return read_page_form(answer.text)

            for name in ids:
                client.cookies.clear()
                ask("GET", "/", params={"PROLIFIC_PID": name})
                page = ask("GET", "/")
                ask("POST", "/consent", data={"token": page.fields["token"], "agree": "1"})
                page = ask("GET", "/study")
                ask("POST", "/answer", data={"token": page.fields["token"], "answer": "3"})
        assert sum(row.state == "finished" for row in site.store.rows(raters)) == 1000
        write_export(site.store, tmp_path / "export", unfinished=True)
        said = "".join(capfd.readouterr())
        assert _files_with(tmp_path, ids) == ["study/platform-ids.csv"]
        assert not any(name in said for name in ids)
        assert "127.0.0.1" not in said
        hashes = [row.key_hash for row in site.store.rows(raters)]
        assert site.store.forget() == 1000
        assert forget_platform_ids(folder)
        site.store.erase()
    assert _files_with(tmp_path, ids) == []
    assert _files_with(tmp_path, [name for name in hashes if name]) == []


def _files_with(folder: Path, needles: list[str]) -> list[str]:
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if any(needle.encode() in content for needle in needles):
                found.append(str(path.relative_to(folder)))
    return found


def test_after_forgetting_no_platform_id_is_written_again(tmp_path: Path) -> None:
    with open_site(make_study(tmp_path, more=PROLIFIC)) as site:
        Browser(site.url).consent("/?PROLIFIC_PID=early")
        site.store.forget()
        forget_platform_ids(tmp_path)
        browser = Browser(site.url)
        browser.get("/?PROLIFIC_PID=late")
        assert "full" in browser.text
        assert not (tmp_path / "platform-ids.csv").exists()


def test_no_address_and_no_browser_is_on_the_disk(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    with open_site(study) as site:
        with httpx.Client(base_url=site.url, verify=False, follow_redirects=True, timeout=60) as client:
            client.headers["user-agent"] = "PlantedBrowser/9"
            page = read_page_form(client.get("/").text)
            client.post("/consent", data={"token": page.fields["token"], "agree": "1"})
        assert len(site.store.rows(slots)) == 1
    assert _files_with(tmp_path, ["PlantedBrowser", "127.0.0.1"]) == []


@pytest.mark.slow
def test_twenty_five_lists_of_three_raters_come_out_even_despite_drop_outs(tmp_path: Path) -> None:
    rows = stimulus_rows("likert", items=100, conditions=("",))
    study = make_study(tmp_path, rows=rows, more="[design]\nparts = 25\nquota = 3\n")
    population = Population(dropout=0.3, seed=11)
    with open_site(study) as site:
        came = 0
        while site.store.has_room() is None:
            wave = send_raters(site.url, study, population, numbers=range(came, came + 20))
            came += len(wave)
            site.clock.ahead += 3600
        ratings = build_rating_tables(site.store)["ratings"]
        everything = build_rating_tables(site.store, unfinished=True)["ratings"]
    assert ratings.group_by("item").len()["len"].to_list() == [3] * 100
    assert ratings.group_by("list").agg(pl.col("rater").n_unique())["rater"].to_list() == [3] * 25
    assert everything.height > ratings.height
    assert came > 75


# Attacks


def test_the_form_of_another_session_is_refused(site: Site) -> None:
    victim, attacker = Browser(site.url), Browser(site.url)
    theirs = victim.consent()
    attacker.consent()
    attacker.post("/answer", {"token": theirs.fields["token"], "answer": "1"})
    assert attacker.status == 403
    assert site.store.rows(answers) == []


def test_a_forged_cookie_or_token_opens_nothing(site: Site) -> None:
    browser = Browser(site.url)
    page = browser.consent()
    rater = site.store.rows(raters)[0].id
    for cookie in ("", rater, f'["x",null,"{rater}",false]', "WyJ4IixudWxsXQ.AAAA"):
        other = Browser(site.url)
        other.client.cookies.set(next(iter(browser.client.cookies)), cookie)
        other.get("/study")
        assert other.status == 403
    name, _, signature = page.fields["token"].rpartition(".")
    for token in ("", "x", f"{name}.{signature[::-1]}", f"A{page.fields['token']}"):
        browser.post("/answer", {"token": token, "answer": "1"})
        assert browser.status == 403
    assert site.store.rows(answers) == []


def test_a_list_cannot_be_chosen_and_fields_that_nobody_asked_for_are_ignored(site: Site) -> None:
    browser = Browser(site.url)
    page = browser.get("/?list=2&slot=x&rater=y")
    form = {"token": page.fields["token"], "agree": "1", "list": "2", "test": "1", "quota": "9"}
    page = browser.post("/consent", form)
    assert not site.store.rows(raters)[0].test
    before = site.store.rows(slots)[0]
    browser.post(
        "/answer", {"token": page.fields["token"], "answer": "1", "step": "3", "slot": "x", "row": "0"}
    )
    after = site.store.rows(slots)[0]
    assert (after.list, after.position) == (before.list, 1)


def test_a_request_without_a_token_changes_nothing(site: Site) -> None:
    browser = Browser(site.url)
    browser.consent()
    for path in ("/answer", "/withdraw", "/more", "/finish", "/alive"):
        browser.post(path, {"answer": "1"})
        assert browser.status == 403, path
    assert site.store.rows(answers) == []
    assert site.store.rows(raters)[0].state == "active"


SQL = ["'; DROP TABLE answers; --", '" OR 1=1 --', "1 UNION SELECT * FROM raters", "\\x00", "%00"]
SCRIPTS = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7*7 }}", "</textarea><b>"]


@pytest.mark.parametrize("payload", [*SQL, *SCRIPTS])
def test_sql_and_script_in_every_field_are_text_and_nothing_else(tmp_path: Path, payload: str) -> None:
    more = '[[demographics]]\nname = "town"\nquestion = "Town?"\nkind = "text"\n'
    with open_site(make_study(tmp_path, "continuation", more=more)) as site:
        browser = Browser(site.url)
        page = browser.get("/")
        form = dict.fromkeys(("token", "agree", "answer", "rt", "script", "away", "typed", "pasted"), payload)
        browser.post("/consent", form)
        assert browser.status == 403
        page = browser.post("/consent", form | {"token": page.fields["token"]})
        page = browser.post("/answer", {"token": page.fields["token"], "town": payload})
        browser.post("/answer", form | {"token": page.fields["token"]})
        browser.get("/study")
        assert browser.status == 200
        assert payload not in browser.text or payload in SQL
        browser.get(f"/researcher?token={TOKEN}")
        assert browser.status == 200
        stored = [row.raw for row in site.store.rows(answers) if row.kind == "trial"]
        assert stored == [payload]
        assert [row.detail for row in site.store.rows(answers) if row.kind == "demographics"] == [
            {"town": payload}
        ]


def test_markup_in_stimuli_and_labels_is_escaped(tmp_path: Path) -> None:
    rows = [{"item": "1", "text": "<b>bold</b> & <script>x()</script>", "context": "<i>a</i>"}]
    with open_site(make_study(tmp_path, rows=rows)) as site:
        browser = Browser(site.url)
        browser.consent()
        assert "&lt;b&gt;bold&lt;/b&gt; &amp; &lt;script&gt;" in browser.text
        assert "<script>x" not in browser.text


@pytest.mark.parametrize("chunked", [False, True])
def test_an_oversized_body_is_refused(site: Site, chunked: bool) -> None:
    browser = Browser(site.url)
    page = browser.consent()
    body = f"token={page.fields['token']}&answer=1&x={'x' * 200_000}".encode()
    headers = {"content-type": "application/x-www-form-urlencoded"}
    content = (body[place : place + 10_000] for place in range(0, len(body), 10_000)) if chunked else body
    answer = browser.client.post("/answer", content=content, headers=headers)
    assert answer.status_code == 413
    assert site.store.rows(answers) == []


@pytest.mark.parametrize("body", [b"\xff\xfe=1", b"&".join(b"f%d=1" % n for n in range(300))])
def test_a_body_that_is_no_form_of_ours_is_refused(site: Site, body: bytes) -> None:
    browser = Browser(site.url)
    browser.consent()
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert browser.client.post("/answer", content=body, headers=headers).status_code == 400
    assert browser.client.post("/answer", content=body).status_code == 415
    assert site.store.rows(answers) == []


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../humans/study.py",
        "/static/..%2f..%2fhumans/study.py",
        "/static/%2e%2e/%2e%2e/site.py",
        "/static//etc/passwd",
        "/answers.sqlite",
        "/keys.json",
        "/docs",
        "/openapi.json",
        "/study?step=abc",
    ],
)
def test_paths_that_are_no_pages_show_nothing(site: Site, path: str) -> None:
    client = Browser(site.url).client
    answer = client.send(httpx.Request("GET", site.url + path))
    assert answer.status_code in (403, 404)
    assert "def " not in answer.text
    assert "root:" not in answer.text


def test_every_answer_carries_the_security_headers(site: Site) -> None:
    for path in ("/", "/study", "/nothing", "/static/rating.js", "/researcher"):
        headers = httpx.get(site.url + path, verify=False).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


def test_no_page_has_a_script_or_style_of_its_own(site: Site) -> None:
    browser = Browser(site.url)
    browser.consent()
    for path in ("/", "/study", "/withdraw", f"/researcher?token={TOKEN}"):
        browser.get(path)
        assert not re.search(r"<script(?![^>]*src=)|<style|style=|\son\w+=|javascript:", browser.text), path
        assert not re.search(r"(?:src|href)=\"https?:", browser.text), path


def test_cookies_are_signed_and_out_of_reach_of_scripts(tmp_path: Path) -> None:
    for secure in (False, True):
        with open_site(make_study(tmp_path), secure=secure) as site:
            cookie = httpx.get(site.url, verify=False).headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=lax" in cookie.lower()
        assert ("Secure" in cookie) == secure
        # Only who has consented is to be known again after the browser was closed.
        assert "max-age" not in cookie.lower()
        assert cookie.startswith("__Host-felicity-") == secure


def test_too_many_requests_are_refused_politely(tmp_path: Path) -> None:
    with open_site(make_study(tmp_path), requests_per_second=2) as site:
        statuses = [httpx.get(f"{site.url}/", verify=False).status_code for _ in range(60)]
    assert statuses[:15] == [200] * 15
    assert 429 in statuses


def test_the_researchers_page_needs_its_token(site: Site) -> None:
    browser = Browser(site.url)
    for path in ("/researcher", "/researcher?token=wrong", "/researcher/export.zip"):
        browser.get(path)
        assert browser.status == 403
    browser.post("/researcher/pause", {"paused": "yes"})
    assert browser.status == 403
    assert not site.store.paused()


def test_the_researcher_can_watch_pause_and_export(site: Site) -> None:
    send_raters(site.url, site.store.study, Population(raters=1))
    browser = Browser(site.url)
    page = browser.get(f"/researcher?token={TOKEN}")
    assert "1 <small>of 6" in browser.text
    assert TOKEN not in str(browser.answer.url)  # type: ignore[union-attr]
    browser.post("/researcher/pause", {"paused": "yes", "csrf": "wrong"})
    assert browser.status == 403
    browser.post("/researcher/pause", {"paused": "yes", "csrf": page.fields["csrf"]})
    assert site.store.paused()
    other = Browser(site.url)
    other.get("/")
    assert "This study is paused" in other.text
    archive = zipfile.ZipFile(BytesIO(browser.client.get("/researcher/export.zip").content))
    assert sorted(archive.namelist()) == ["design.csv", "raters.csv", "ratings.csv"]


def test_the_researcher_sees_results_as_they_come(tmp_path: Path) -> None:
    study = make_study(tmp_path, more='[design]\nquota = 4\n[platform]\nname = "prolific"\n')
    with open_site(study) as site:
        send_raters(site.url, study, Population(raters=3, effect=4.0, noise_sd=0.1))
        browser = Browser(site.url)
        browser.get(f"/researcher?token={TOKEN}")
        page = browser.text
        assert "?PROLIFIC_PID={{%PROLIFIC_PID%}}" in page
        assert "3 finished; the dashed line is the 8 wanted" in page
        ratings = build_rating_tables(site.store)["ratings"]
        for name in ("a", "b"):
            own = ratings.filter(pl.col("condition") == name)["rating"]
            shown = (
                f'<th scope="row">{name}</th><td class="n">{len(own)}</td><td class="n">{own.mean():.2f}</td>'
            )
            assert shown in page
        rater = ratings["rater"][0]
        assert f"/researcher/rater/{rater}" in page
        browser.get(f"/researcher/rater/{rater}")
        for text, answer in ratings.filter(rater=rater).select("text", "answer").iter_rows():
            assert f'{text}</td><td class="answer-cell" dir="auto">{answer}</td>' in browser.text
        browser.get("/researcher/list/1")
        own = build_rating_tables(site.store)["design"].filter(list="1")
        assert all(text in browser.text for text in own["text"])
        for path in ("/researcher/list/9", "/researcher/rater/nobody"):
            browser.get(path)
            assert browser.status == 404
        for path in ("/researcher/list/1", f"/researcher/rater/{rater}"):
            assert "felicity rate serve printed" in Browser(site.url).client.get(path).text


@pytest.mark.parametrize("task", TASKS)
def test_answers_by_condition_are_summarized_for_every_task(tmp_path: Path, task: str) -> None:
    study = make_study(tmp_path, task)
    store = Store(study)
    assert all(row["n"] == 0 and row["mean"] is None for row in describe_results(store).conditions)
    with open_site(study) as site:
        send_raters(site.url, study, Population(raters=2))
        found = describe_results(site.store)
        assert [row["condition"] for row in found.conditions] == ["a", "b"]
        for row in found.conditions:
            assert row["n"] == 4
            assert len(row["shares"]) == len(found.bars)
            assert sum(row["shares"]) == pytest.approx(1.0 if found.bars else 0.0)
            assert bool(found.unit) == (row["mean"] is not None) != bool(row["common"])
        assert len(found.completions) == 2


def test_the_researchers_archive_runs_no_formula_of_a_rater(tmp_path: Path) -> None:
    rows = stimulus_rows("continuation", items=1, conditions=("",))
    with open_site(make_study(tmp_path, "continuation", rows=rows)) as site:
        browser = Browser(site.url)
        page = browser.consent()
        browser.post("/answer", {"token": page.fields["token"], "answer": '=HYPERLINK("http://x.example")'})
        browser.get(f"/researcher?token={TOKEN}")
        archive = zipfile.ZipFile(BytesIO(browser.client.get("/researcher/export.zip").content))
        ratings = pl.read_csv(archive.read("ratings.csv"))
        assert ratings["answer"].to_list() == ['\'=HYPERLINK("http://x.example")']


def test_an_address_is_a_household_and_is_forgotten_after_half_an_hour() -> None:
    now = [0.0]
    limit = AddressLimit(2, clock=lambda: now[0])
    assert limit.allows("2001:db8::1", "a", take=True)
    assert limit.allows("2001:db8::2", "b", take=True)
    assert not limit.allows("2001:db8::3", "c", take=True)
    # A form that was sent twice, another network, and the same household later.
    assert limit.allows("2001:db8::9", "b", take=True)
    assert limit.allows("2001:db8:0:1::1", "c", take=True)
    assert limit.allows("::ffff:192.0.2.1", "a", take=True)
    assert limit.allows("192.0.2.1", "b", take=True)
    assert not limit.allows("192.0.2.1", "c")
    now[0] += 1799
    limit.renew("b")
    now[0] += 2
    # Of the two places in that household, one is still being answered.
    assert limit.allows("2001:db8::3", "c", take=True)
    assert not limit.allows("2001:db8::3", "d", take=True)
    now[0] += 1801
    assert limit.allows("2001:db8::3", "d")
    assert AddressLimit(0).allows("192.0.2.1", "a", take=True)


def test_worker_processes_count_together() -> None:
    limit = AddressLimit(2)
    assert limit.allows("192.0.2.1", "a", take=True)
    child = os.fork()
    if not child:
        os._exit(0 if limit.allows("192.0.2.1", "b", take=True) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not limit.allows("192.0.2.1", "c", take=True)


def test_withdrawing_deletes_everything_after_a_second_question(site: Site) -> None:
    browser = Browser(site.url)
    page = browser.consent()
    browser.post("/answer", {"token": page.fields["token"], "answer": "2"})
    page = browser.get("/withdraw")
    browser.post("/withdraw", {"token": page.fields["token"]})
    assert "You have withdrawn" in browser.text
    assert site.store.rows(answers) == []
    browser.get("/study")
    assert "You have withdrawn" in browser.text


def test_a_preview_is_a_test_run_that_says_so(tmp_path: Path) -> None:
    study = make_study(tmp_path, more=PROLIFIC + "[design]\nquota = 1\n")
    with open_site(study, preview=True) as site:
        for _ in range(3):
            browser = Browser(site.url)
            browser.consent()
            assert "Test run" in browser.text
        assert all(row.test for row in site.store.rows(raters))
        assert site.store.has_room() is None
        assert build_rating_tables(site.store)["ratings"].is_empty()


def test_a_preview_in_a_browser_that_has_taken_part_is_still_a_test_run(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    with open_site(study) as site:
        browser = Browser(site.url)
        browser.consent()
        cookies = browser.client.cookies
    with open_site(study, preview=True) as site:
        again = Browser(site.url)
        again.client.cookies = cookies
        again.consent()
        assert [row.test for row in site.store.rows(raters)] == [False, True]


def test_a_cookie_of_a_database_that_is_gone_starts_anew(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    with open_site(study) as site:
        browser = Browser(site.url)
        browser.consent()
        cookies = browser.client.cookies
    (tmp_path / "answers.sqlite").unlink()
    with open_site(study) as site:
        again = Browser(site.url)
        again.client.cookies = cookies
        assert again.consent().action == "/answer"


def test_a_full_disk_is_told_to_the_rater_and_nothing_is_acknowledged(tmp_path: Path) -> None:
    with open_site(make_study(tmp_path, "continuation", task_more="longest = 5000\n")) as site:
        browser = Browser(site.url)
        page = browser.consent()
        form = {"token": page.fields["token"], "answer": "long " * 900}
        engine = site.store.database.engine
        with engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        # Every connection is told that the file may not grow, which is what SQLite meets on a full disk.
        full = lambda raw, *_: raw.execute(f"PRAGMA max_page_count={pages}")  # noqa: E731
        sa.event.listen(engine, "checkout", full)
        browser.post("/answer", form)
        assert browser.status == 503
        assert "could not be stored" in browser.text
        assert site.store.rows(answers) == []
        sa.event.remove(engine, "checkout", full)
        free = lambda raw, *_: raw.execute("PRAGMA max_page_count=1000000")  # noqa: E731
        sa.event.listen(engine, "checkout", free)
        browser.post("/answer", form)
        assert [row.raw for row in site.store.rows(answers)] == [form["answer"]]


def test_the_course_of_a_full_study_in_german(tmp_path: Path) -> None:
    rows = stimulus_rows("likert")
    rows[0] |= {"question": "Wer schlief?", "choices": "die Katze | der Hund", "correct": "die Katze"}
    rows.append({"item": "p", "text": "Übung.", "role": "practice"})
    study = make_study(tmp_path, rows=rows, more=GERMAN_PAGES, language="de", study="back = true\n")
    with open_site(study) as site:
        browser = Browser(site.url)
        page = browser.consent()
        assert "Anleitung" in browser.text
        page = browser.post("/answer", {"token": page.fields["token"]})
        page = browser.post("/answer", {"token": page.fields["token"], "q0": "1"})
        assert "Nicht alle Antworten waren richtig" in browser.text
        page = browser.post("/answer", {"token": page.fields["token"], "q0": "0"})
        browser.post("/answer", {"token": page.fields["token"], "age": "viel"})
        assert browser.status == 422
        page = browser.post("/answer", {"token": page.fields["token"], "age": "34"})
        assert "Übung" in browser.text
        while page.action == "/answer":
            page = browser.post("/answer", {"token": page.fields["token"], "answer": "1"})
        assert "Abschlusscode" in browser.text
        assert "Das war es." in browser.text
        people = build_rating_tables(site.store)["raters"]
        assert people["age"].to_list() == ["30+"]
        assert people["quiz_tries"].to_list() == [2]
        assert b"34" not in b"".join(
            str(row.detail).encode() for row in site.store.rows(answers) if row.kind == "demographics"
        )


def test_a_rater_may_do_another_list_or_finish(tmp_path: Path) -> None:
    rows = stimulus_rows("likert", items=3, conditions=("",))
    more = "[design]\nparts = 3\nquota = 1\nlists_per_rater = 2\n"
    with open_site(make_study(tmp_path, rows=rows, more=more)) as site:
        browser = Browser(site.url)
        page = browser.consent()
        page = browser.post("/answer", {"token": page.fields["token"], "answer": "1"})
        assert page.action == "/more"
        assert not page.code
        page = browser.post("/more", {"token": page.fields["token"]})
        page = browser.post("/answer", {"token": page.fields["token"], "answer": "2"})
        assert page.code
        other = Browser(site.url)
        page = other.consent()
        page = other.post("/answer", {"token": page.fields["token"], "answer": "3"})
        # No list is left for another part, so the code comes at once.
        assert page.code
        assert build_rating_tables(site.store)["ratings"]["rating"].sort().to_list() == [1.0, 2.0, 3.0]


def test_a_context_is_shown_above_or_with_the_target_highlighted(tmp_path: Path) -> None:
    rows = [{"item": "1", "text": "It rains.", "context": "Look out."}]
    for more, shown in (
        ("", '<p dir="auto">Look out.</p>'),
        ("highlight = true\n", "<mark>It rains.</mark>"),
    ):
        with open_site(make_study(tmp_path, rows=rows, task_more=more)) as site:
            browser = Browser(site.url)
            browser.consent()
            assert shown in browser.text


def test_a_signal_from_the_page_extends_the_lease_until_the_place_is_gone(tmp_path: Path) -> None:
    rows = stimulus_rows("likert", items=2, conditions=("",))
    with open_site(make_study(tmp_path, rows=rows, more="[design]\nquota = 1\n")) as site:
        browser = Browser(site.url)
        page = browser.consent()
        page = browser.post("/answer", {"token": page.fields["token"], "answer": "1"})
        for _ in range(3):
            site.clock.ahead += 20 * 60
            browser.post("/alive", {"token": page.fields["token"]})
            assert browser.status == 204
        assert site.store.has_room() == "full"
        site.clock.ahead += 31 * 60
        other = Browser(site.url)
        other.consent()
        browser.post("/answer", {"token": page.fields["token"], "answer": "1"})
        assert browser.status == 409
        assert "given to someone else" in browser.text
        browser.get("/study")
        assert "given to someone else" in browser.text


def test_markdown_is_escaped_and_small() -> None:
    text = "# A\n\nHello **you** and *me* <b>\n\n- one\n- two\n\n[x](https://example.org) [y](javascript:z)"
    html = str(render_markdown(text))
    assert "<h2>A</h2>" in html
    assert "<strong>you</strong> and <em>me</em> &lt;b&gt;" in html
    assert "<ul><li>one</li><li>two</li></ul>" in html
    assert 'href="https://example.org"' in html
    assert "javascript:z)" in html
    assert 'href="javascript' not in html


def test_items_of_lists_may_be_wrapped_and_follow_their_sentence() -> None:
    html = str(render_markdown("Know this:\n- one\n  and more\n- two\n\n1. first\n2. second\n\n3. third"))
    assert html == (
        "<p>Know this:</p>\n<ul><li>one and more</li><li>two</li></ul>\n"
        "<ol><li>first</li><li>second</li><li>third</li></ol>"
    )
    assert str(render_markdown("It began in\n1999. So it did.")) == "<p>It began in 1999. So it did.</p>"


@pytest.mark.parametrize("task", ["reading", "maze"])
def test_a_timed_task_is_refused_without_a_script_before_consent(tmp_path: Path, task: str) -> None:
    with open_site(make_study(tmp_path, task)) as site:
        browser = Browser(site.url)
        page = browser.get("/")
        assert '<form method="post" action="/consent" hidden>' in browser.text
        browser.post("/consent", {"token": page.fields["token"], "agree": "1"})
        assert browser.status == 403
        assert "needs JavaScript" in browser.text
        assert site.store.rows(raters) == []
        browser.post("/consent", {"token": page.fields["token"], "agree": "1", "script": "1"})
        assert len(site.store.rows(raters)) == 1


def test_a_page_does_not_wait_for_the_acknowledgement_of_its_head() -> None:
    # asyncio switches off Nagle's algorithm only where it sees that a socket is TCP.
    with _listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP


def test_an_open_address_without_a_proxy_is_warned_about() -> None:
    assert warn_about("127.0.0.1", proxy=None) is None
    assert warn_about("localhost", proxy=None) is None
    assert warn_about("0.0.0.0", proxy="127.0.0.1") is None
    assert "unencrypted" in str(warn_about("0.0.0.0", proxy=None))


def test_between_raters_sides_of_a_choice_are_exchanged_and_recorded(tmp_path: Path) -> None:
    study: RatingStudy = make_study(tmp_path, "choice", more="[design]\nquota = 2\n")
    with open_site(study) as site:
        send_raters(site.url, study, replace(Population(), raters=4))
        ratings = build_rating_tables(site.store)["ratings"]
    flipped = ratings.group_by("list", "item").agg(pl.col("flipped").sum())
    assert Counter(flipped["flipped"].to_list()) == {1: 8}
