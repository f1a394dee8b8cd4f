"""A study whose link is known to everybody: taken places, invented ids, other people's ids, people's data."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from felicity.cli import rate_people
from felicity.humans import RatingStudy, erasure, load_keys, sign_platform_id
from felicity.humans.tables import answers, raters, slots
from felicity.humans.visits import PageForm, read_page_form
from tests.conftest import Answer
from tests.humans.studies import make_study, stimulus_rows
from tests.web.sites import TOKEN, Site, open_site

Cli = Callable[..., Answer]
PROLIFIC = '[platform]\nname = "prolific"\n'
ARRIVING = 24
OPEN: list[httpx.Client] = []


@pytest.fixture(autouse=True)
def close_clients() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


class Visitor:
    """A browser at an address of its own; every address of 127.0.0.0/8 is this machine."""

    def __init__(self, site: Site, address: str = "127.0.0.1") -> None:
        transport = httpx.HTTPTransport(local_address=address, verify=False)
        self.client = httpx.Client(base_url=site.url, transport=transport, follow_redirects=True, timeout=60)
        OPEN.append(self.client)
        self.status = 0
        self.text = ""

    def _read(self, answer: httpx.Response) -> PageForm:
        self.status, self.text = answer.status_code, answer.text
        return read_page_form(answer.text)

    def get(self, path: str) -> PageForm:
        return self._read(self.client.get(path))

    def post(self, path: str, **fields: str) -> PageForm:
        return self._read(self.client.post(path, data=fields))

    def consent(self, path: str = "/") -> PageForm:
        page = self.get(path)
        if page.action != "/consent":
            return page
        return self.post("/consent", token=page.fields["token"], agree="1")

    def answer(self, page: PageForm, answer: str = "1") -> PageForm:
        return self.post("/answer", token=page.fields["token"], answer=answer)


def files_with(folder: Path, needles: list[str]) -> list[str]:
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(needle.encode() in path.read_bytes() for needle in needles)
    ]


# Places


@pytest.mark.parametrize(
    ("allowed", "places"), [(8, 12), pytest.param(40, 60, marks=pytest.mark.slow, id="as by default")]
)
def test_one_address_takes_neither_every_place_nor_a_place_for_ever(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, allowed: int, places: int
) -> None:
    setting = "" if allowed == 40 else f"places_per_address = {allowed}\n"
    study = make_study(tmp_path, more=f"[design]\nquota = {places // 2}\n", study=setting)
    with open_site(study, limited=True) as site:
        taken = []
        for _ in range(places):
            visitor = Visitor(site, "127.0.0.2")
            taken.append((visitor, visitor.consent()))
        assert Counter(visitor.status for visitor, _ in taken) == {200: allowed, 429: places - allowed}
        assert "as many people have begun" in taken[-1][0].text
        assert f"One address has {allowed} places" in caplog.text
        assert "127.0.0.2" not in caplog.text
        assert Visitor(site, "127.0.0.3").consent().action == "/answer"
        assert site.store.has_room() is None
        # Who merely holds a place loses it after ten minutes, who gives one answer after three hours.
        held = taken[0][0].answer(taken[0][1])
        for _ in range(10):
            site.clock.ahead += 19 * 60
            for visitor, page in ((taken[0][0], held), taken[1]):
                visitor.post("/alive", token=page.fields["token"])
                assert visitor.status == 204
        assert not any(row.lease > site.clock() for row in site.store.rows(slots))
    assert files_with(tmp_path, ["127.0.0.2"]) == []


def test_thirty_people_in_one_room_all_get_in(tmp_path: Path) -> None:
    study = make_study(tmp_path, more="[design]\nquota = 15\n")
    with open_site(study, limited=True) as site:

        def begin(_number: int) -> str:
            visitor = Visitor(site, "127.0.0.2")
            return visitor.answer(visitor.consent()).action

        with ThreadPoolExecutor(10) as pool:
            assert set(pool.map(begin, range(30))) == {"/answer"}


def test_a_researcher_frees_places_that_nobody_works_on(tmp_path: Path, cli: Cli) -> None:
    with open_site(make_study(tmp_path, more="[design]\nquota = 2\n")) as site:
        lazy = [Visitor(site) for _ in range(3)]
        pages = [visitor.consent() for visitor in lazy]
        busy = Visitor(site)
        page = busy.consent()
        refused = Visitor(site)
        refused.get("/")
        assert "full" in refused.text
        assert cli("rate", "release", tmp_path).code == 2
        with site.store.database.write() as connection:
            connection.execute(sa.update(slots).values(started=time.time() - 600))
        page = busy.answer(page)
        said = cli("rate", "release", tmp_path, "--idle", 5)
        assert "3 places are free again" in said.out, said.err
        assert refused.consent().action == "/answer"
        lazy[0].answer(pages[0])
        assert lazy[0].status == 409
        assert busy.answer(page).action == "/answer"
        assert "3 dropped out" in cli("rate", "status", tmp_path).out


# Platform ids


def test_a_platform_id_is_not_kept_before_consent(tmp_path: Path) -> None:
    with open_site(make_study(tmp_path, more=PROLIFIC)) as site:
        for number in range(20):
            Visitor(site).get(f"/?PROLIFIC_PID=invented{number}")
        assert files_with(tmp_path, ["invented"]) == []
        Visitor(site).consent("/?PROLIFIC_PID=invented7")
        assert files_with(tmp_path, ["invented7"]) == ["platform-ids.csv"]
        assert (tmp_path / "platform-ids.csv").stat().st_mode & 0o777 == 0o600


def test_only_expected_ids_are_let_in(tmp_path: Path, cli: Cli) -> None:
    make_study(tmp_path, more=PROLIFIC + 'ids = "expected.txt"\n')
    said = cli("rate", "status", tmp_path)
    assert said.code == 2
    assert "expected.txt" in said.err
    listed = tmp_path / "expected.txt"
    listed.write_text("# those who took part in March\nanna\nbob\n")
    study = make_study(tmp_path, more=PROLIFIC + 'ids = "expected.txt"\n')
    with open_site(study, limited=True) as site:
        for number in range(60):
            visitor = Visitor(site)
            visitor.consent(f"/?PROLIFIC_PID=invented{number}")
            assert visitor.status == 403
        assert Visitor(site).consent("/?PROLIFIC_PID=anna").action == "/answer"
        listed.write_text("anna\nbob\ncarol\n")
        assert Visitor(site).consent("/?PROLIFIC_PID=carol").action == "/answer"
        listed.write_text("anna\nb o b\n")
        assert Visitor(site).consent("/?PROLIFIC_PID=bob").action == "/answer"
        assert len(site.store.rows(raters)) == 3
    assert "line 2" in cli("rate", "status", tmp_path).err


def test_a_signed_link_is_needed_where_the_study_says_so(tmp_path: Path, cli: Cli) -> None:
    study = make_study(tmp_path, more=PROLIFIC + "signed = true\n")
    (tmp_path / "ids.txt").write_text("anna\n")
    with open_site(study, limited=True) as site:
        said = cli(
            *(
                "rate",
                "links",
                tmp_path,
                tmp_path / "ids.txt",
                "-o",
                tmp_path / "links.csv",
                "--url",
                site.url,
            )
        )
        assert said.code == 0, said.err
        assert (tmp_path / "links.csv").stat().st_mode & 0o777 == 0o600
        link = (tmp_path / "links.csv").read_text().splitlines()[1].split(",")[1].removeprefix(site.url)
        other = sign_platform_id(load_keys(tmp_path), "bob")
        for path in (
            "/?PROLIFIC_PID=anna",
            "/?PROLIFIC_PID=anna&signature=",
            f"/?PROLIFIC_PID=anna&signature={other}",
            link.replace("anna", "bob"),
        ):
            visitor = Visitor(site)
            visitor.consent(path)
            assert visitor.status == 403, path
        phone, laptop = Visitor(site), Visitor(site)
        phone.answer(phone.consent(link))
        # The link proves who it is, so that withdrawing works on any device.
        laptop.get(link)
        laptop.post("/withdraw", token=laptop.get("/withdraw").fields["token"])
        assert "You have withdrawn" in laptop.text
        assert site.store.rows(answers) == []


def test_who_knows_an_id_can_neither_withdraw_its_answers_nor_see_them(tmp_path: Path, cli: Cli) -> None:
    study = make_study(tmp_path, more=PROLIFIC, study="back = true\n")
    with open_site(study) as site:
        anna, other = Visitor(site), Visitor(site)
        page = anna.consent("/?PROLIFIC_PID=anna")
        page = anna.answer(page, "2")
        there = other.get("/?PROLIFIC_PID=anna")
        assert there.row == page.row
        other.get("/withdraw")
        assert other.status == 403
        assert "browser in which you gave your consent" in other.text
        other.post("/withdraw", token=there.fields["token"])
        assert other.status == 403
        other.get("/study?step=0")
        assert "checked" not in other.text
        # Nor can a page that was opened before replace the answer that is given meanwhile.
        anna.answer(page, "3")
        other.answer(there, "5")
        assert sorted(row.value for row in site.store.rows(answers)) == [2.0, 3.0]
        anna.get("/study?step=0")
        assert "checked" in anna.text
        # Whoever has lost the browser writes to the researchers.
        assert "came with this id" in cli("rate", "withdraw", tmp_path, "--platform-id", "nobody").err
        said = cli("rate", "withdraw", tmp_path, "--platform-id", "anna")
        assert said.code == 0, said.err
        assert site.store.rows(answers) == []
        assert site.store.unerased() == 0


# Forgetting and withdrawing


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_forgetting_while_people_arrive_leaves_no_id(tmp_path: Path, cli: Cli) -> None:
    for number in range(12):
        folder = tmp_path / str(number)
        with open_site(make_study(folder, more=PROLIFIC + "[design]\nquota = 500\n")) as site:
            over = threading.Event()

            def arrive(worker: int, site: Site = site, over: threading.Event = over) -> None:
                visitor, count = Visitor(site), 0
                while not over.is_set():
                    count += 1
                    visitor.client.cookies.clear()
                    address = f"/?PROLIFIC_PID=planted{worker}x{count}"
                    # Most only look, so that many are in the server at the same moment.
                    visitor.get(address) if worker % 4 else visitor.consent(address)

            with ThreadPoolExecutor(ARRIVING) as pool:
                workers = [pool.submit(arrive, worker) for worker in range(ARRIVING)]
                while not (folder / "platform-ids.csv").exists():
                    time.sleep(0.005)
                time.sleep(0.02 * number)
                said = cli("rate", "forget", folder, "--platform-ids")
                time.sleep(0.3)
                over.set()
                for worker in workers:
                    worker.result(60)
            assert said.code == 0, said.err
            assert not (folder / "platform-ids.csv").exists()
            assert all(row.key_hash is None for row in site.store.rows(raters))
            assert files_with(folder, ["planted"]) == []


def test_forgetting_while_another_program_reads_deletes_the_ids_and_can_be_repeated(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_people, "ERASE_PATIENCE", 0.2)
    with open_site(make_study(tmp_path, more=PROLIFIC)) as site:
        Visitor(site).consent("/?PROLIFIC_PID=planted")
        hashes = [row.key_hash for row in site.store.rows(raters)]
    reader = sa.create_engine(f"sqlite:///{tmp_path / 'answers.sqlite'}")
    with reader.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql("SELECT * FROM raters").all()
        said = cli("rate", "forget", tmp_path, "--platform-ids")
        assert said.code == 2
        assert "still in the log of the database" in said.err
        assert files_with(tmp_path, ["planted"]) == []
    reader.dispose()
    assert cli("rate", "forget", tmp_path, "--platform-ids").code == 0
    assert files_with(tmp_path, hashes) == []


@pytest.fixture
def vacuums(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every time that a database is written anew."""
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if statement == "VACUUM":
            seen.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    yield seen
    sa.event.remove(sa.Engine, "before_cursor_execute", note)


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_withdrawing_again_and_again_writes_the_database_once(tmp_path: Path, vacuums: list[str]) -> None:
    with open_site(make_study(tmp_path)) as site:
        visitor = Visitor(site)
        visitor.answer(visitor.consent())
        token = visitor.get("/withdraw").fields["token"]
        cookies = dict(visitor.client.cookies)

        def withdraw(_number: int) -> int:
            other = Visitor(site)
            other.client.cookies.update(cookies)
            other.post("/withdraw", token=token)
            return other.status

        with ThreadPoolExecutor(10) as pool:
            assert set(pool.map(withdraw, range(50))) == {200}
        wait_until(lambda: site.store.unerased() == 0)
    assert vacuums == ["VACUUM"]


def test_withdrawn_text_leaves_the_log_when_the_other_reader_does(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(erasure, "RETRY_SECONDS", 0.1)
    with open_site(make_study(tmp_path, "continuation")) as site:
        visitor = Visitor(site)
        visitor.answer(visitor.consent(), "my very secret words")
        reader = sa.create_engine(f"sqlite:///{tmp_path / 'answers.sqlite'}")
        with reader.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            connection.exec_driver_sql("SELECT * FROM answers").all()
            visitor.post("/withdraw", token=visitor.get("/withdraw").fields["token"])
            # The page does not say more than is true.
            assert "overwritten afterwards" in visitor.text
            assert site.store.rows(answers) == []
            wait_until(lambda: "may still be in a file" in caplog.text)
            assert files_with(tmp_path, ["my very secret words"])
            assert "1 withdrawn: their answers are deleted, but" in cli("rate", "status", tmp_path).out
            visitor.get(f"/researcher?token={TOKEN}")
            assert "still to be rewritten" in visitor.text
        reader.dispose()
        wait_until(lambda: site.store.unerased() == 0)
        assert files_with(tmp_path, ["my very secret words"]) == []


def test_a_server_erases_what_one_that_was_killed_has_left(tmp_path: Path) -> None:
    study = make_study(tmp_path, "continuation")
    with open_site(study) as site:
        visitor = Visitor(site)
        visitor.answer(visitor.consent(), "my very secret words")
    with open_site(study) as site:
        # As if the server had been killed in between.
        site.store.withdraw(site.store.rows(raters)[0].id)
        assert site.store.unerased() == 1
    with open_site(study) as site:
        wait_until(lambda: site.store.unerased() == 0)
        assert files_with(tmp_path, ["my very secret words"]) == []


# Failing disks and lost lists


def test_a_full_disk_is_logged_once_and_no_id_is_cut(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    resource = pytest.importorskip("resource")
    with open_site(make_study(tmp_path, more=PROLIFIC)) as site:
        path = tmp_path / "platform-ids.csv"
        # So long that the files of the database end before it.
        before = b"\n" * 1_000_000
        path.write_bytes(before)
        ready = [Visitor(site) for _ in range(3)]
        pages = [visitor.get(f"/?PROLIFIC_PID=late{n}") for n, visitor in enumerate(ready)]
        old = resource.getrlimit(resource.RLIMIT_FSIZE)
        caplog.clear()
        # Files end 70 bytes after what is there: within the line of the next id.
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 70, old[1]))
        try:
            for visitor, page in zip(ready, pages, strict=True):
                visitor.post("/consent", token=page.fields["token"], agree="1")
                assert visitor.status == 503
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
        assert path.read_bytes() == before
        said = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert len(said) == 1
        assert "platform-ids.csv" in said[0].getMessage()
        page = ready[0].post("/consent", token=pages[0].fields["token"], agree="1")
        assert page.action == "/answer"
        assert path.read_bytes().endswith(b",late0")


def test_a_rater_who_lost_a_further_list_is_led_to_the_code(tmp_path: Path) -> None:
    rows = stimulus_rows("likert", items=4, conditions=("",))
    more = "[design]\nparts = 2\nquota = 1\nlists_per_rater = 2\n"
    study: RatingStudy = make_study(tmp_path, rows=rows, more=more)
    for attempt in ("/study", "/", "answer"):
        (tmp_path / "answers.sqlite").unlink(missing_ok=True)
        with open_site(study) as site:
            visitor, other = Visitor(site), Visitor(site)
            page = visitor.answer(visitor.answer(visitor.consent()))
            page = visitor.post("/more", token=page.fields["token"])
            site.clock.ahead += 31 * 60
            other.consent()
            done = visitor.answer(page) if attempt == "answer" else visitor.get(attempt)
            assert visitor.status == 200
            assert done.code
            assert visitor.get("/study").code == done.code
