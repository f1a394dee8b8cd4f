"""Simulated raters on the site: each goes through the real pages, from the platform's link to the code.

They read forms as a browser does, click twice, lose the connection and try again. Thousands of them share the
processor with the server that they test, so that each request must be cheap: they know only the HTTP that the
site uses, and read only forms.
"""

import asyncio
import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import urlencode, urlsplit

from felicity.core.progress import Progress
from felicity.humans.lists import build_lists
from felicity.humans.simulated import Population, SimulatedRater, draw_answer, draw_rater, find_truth
from felicity.humans.stimuli import Stimulus
from felicity.humans.study import RatingStudy

RETRY_SECONDS = 0.2
ANSWER_SECONDS = 60.0

# The templates put attributes in double quotes and escape what they hold, so that a tag ends at its first >.
TAG = re.compile(r"<(form|input)\b([^>]*)>")
ATTRIBUTE = re.compile(r'([\w-]+)(?:="([^"]*)")?')
CODE = re.compile(r'id="code"[^>]*>([^<]*)<')
TITLE = re.compile(r"<h1[^>]*>(.*?)</h1>", re.DOTALL)


@dataclass
class PageForm:
    """What a rater needs of a page: its first form, the choices in it, a completion code."""

    title: str = ""
    action: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    choices: dict[str, list[str]] = field(default_factory=dict)
    row: int | None = None
    question: bool = False
    code: str = ""


def read_page_form(text: str) -> PageForm:
    """A page as a simulated rater sees it."""
    title, code = TITLE.search(text), CODE.search(text)
    page = PageForm(
        title=unescape(title[1]) if title else text[:80], code=unescape(code[1]).strip() if code else ""
    )
    for tag, attributes in TAG.findall(text):
        values = {name: unescape(value) for name, value in ATTRIBUTE.findall(attributes)}
        if tag == "form":
            if not page.action:
                page.action = values.get("action", "")
                page.row = int(values["data-stimulus"]) if "data-stimulus" in values else None
                page.question = "data-question" in values
        elif name := values.get("name"):
            if values.get("type") in ("radio", "checkbox"):
                page.choices.setdefault(name, []).append(values.get("value", "1"))
            else:
                page.fields.setdefault(name, values.get("value", ""))
    return page


@dataclass(frozen=True)
class Wait:
    """How long a rater waited: when an answer was sent, its acknowledgement, and the next page."""

    sent: float
    stored_ms: float
    shown_ms: float


@dataclass
class Visit:
    """What became of one simulated rater: every answer that the site acknowledged, and the code."""

    number: int
    platform_id: str
    acknowledged: list[tuple[int, bool, str]] = field(default_factory=list)
    code: str = ""
    left: bool = False
    refused: str = ""
    waits: list[Wait] = field(default_factory=list)


Answerer = Callable[["Visit", Stimulus], Mapping[str, str]]


@dataclass(frozen=True)
class RaterSimulation:
    """What the raters of one study have in common."""

    url: str
    study: RatingStudy
    population: Population
    truth: Mapping[int, float]
    trials: int
    answerer: Answerer | None = None
    patience: float = 60.0
    think: Callable[[random.Random], float] | None = None
    until: float = math.inf

    async def visit(self, number: int) -> Visit:
        """Send one simulated rater through the site."""
        rng = random.Random(f"{self.population.seed} visit {number}")
        habits = draw_rater(self.population, number)
        visit = Visit(number, f"simulated{self.population.seed}x{number}")
        browser = Browser(self.url, patience=self.patience)
        try:
            await self._go_through(browser, visit, habits, rng)
        finally:
            browser.close()
        return visit

    async def _go_through(
        self, browser: "Browser", visit: Visit, habits: SimulatedRater, rng: random.Random
    ) -> None:
        clock = asyncio.get_running_loop().time
        parameter = self.study.platform.parameter
        page = await browser.open(f"/?{urlencode({parameter: visit.platform_id})}" if parameter else "/")
        if page.action == "/consent":
            page = await browser.submit(
                "/consent", {"token": page.fields["token"], "agree": "1", "script": "1"}
            )
        answered = 0
        while page.action in ("/answer", "/more"):
            if page.action == "/more":
                page = await browser.submit("/finish", {"token": page.fields["token"]})
                continue
            if self.think is not None:
                await asyncio.sleep(min(self.think(rng), self.until - clock()))
            tired = page.row is not None and not page.question and self._leaves(habits, answered)
            if tired or clock() >= self.until:
                visit.left = True
                return
            fields = self._fill(page, answered, habits, visit, rng)
            answered += page.row is not None and not page.question
            body = {"token": page.fields["token"]} | fields
            if rng.random() < habits.double_clicks:
                await browser.request("POST", "/answer", body)
            sent = clock()
            reply = await browser.request("POST", "/answer", body)
            stored = clock()
            given = page
            page = await browser.follow(reply)
            if given.row is not None and reply.status == 303:
                waited = Wait(sent, 1000 * (stored - sent), 1000 * (clock() - sent))
                visit.waits.append(waited)
                answer = fields.get("answer", fields.get("times", ""))
                visit.acknowledged.append((given.row, given.question, answer))
        visit.code = page.code
        if not page.code:
            visit.refused = page.title

    def _leaves(self, habits: SimulatedRater, answered: int) -> bool:
        return habits.leaves_at is not None and answered >= habits.leaves_at * self.trials

    def _fill(
        self, page: PageForm, answered: int, habits: SimulatedRater, visit: Visit, rng: random.Random
    ) -> dict[str, str]:
        """The fields of the page's form."""
        study = self.study
        if page.row is None:
            fields = {name: values[-1] for name, values in page.choices.items()}
            if study.quiz and "q0" in page.choices:
                for index, question in enumerate(study.quiz.questions):
                    fields[f"q{index}"] = str(question.choices.index(question.correct))
            return fields | {"script": "1"}
        stimulus = study.stimuli[page.row]
        if page.question:
            right = stimulus.choices.index(stimulus.correct)
            guesses = habits.clicker or rng.random() < 0.05
            chosen = rng.randrange(len(stimulus.choices)) if guesses else right
            return {"answer": str(chosen), "script": "1", "rt": f"{rng.lognormvariate(7.5, 0.4):.1f}"}
        if self.answerer is not None:
            return dict(self.answerer(visit, stimulus))
        done = answered / max(self.trials, 1)
        return draw_answer(study, stimulus, self.truth[page.row], habits, done, rng)


@dataclass(frozen=True)
class Reply:
    """The site's answer to one request."""

    status: int
    location: str
    text: str


class Browser:
    """What a rater needs of a browser: cookies, a connection, and retries while the server is away."""

    def __init__(self, url: str, *, patience: float) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 80
        self.patience = patience
        self._cookies: dict[str, str] = {}
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def open(self, path: str) -> PageForm:
        """Go to an address."""
        return await self.follow(await self.request("GET", path))

    async def submit(self, path: str, body: Mapping[str, str]) -> PageForm:
        """Send a form and see where it leads."""
        return await self.follow(await self.request("POST", path, body))

    async def follow(self, reply: Reply) -> PageForm:
        """The page that a reply leads to."""
        while reply.status == 303:
            reply = await self.request("GET", reply.location)
        return read_page_form(reply.text)

    async def request(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Reply:
        """One request, sent again while the server is away or cannot store.

        Raises TimeoutError if that lasts longer than the rater's patience.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + self.patience
        while True:
            reply = None
            kept = self._writer is not None
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    reply = await self._exchange(method, path, body)
                if reply.status < 500 and reply.status != 429:
                    return reply
            except (OSError, EOFError, TimeoutError):
                self.close()
                if kept:
                    # The server may have closed a connection that was idle: a browser opens another at once.
                    continue
            if clock() > deadline:
                if reply is not None:
                    return reply
                raise TimeoutError(f"the site did not answer for {self.patience:g} seconds")
            await asyncio.sleep(RETRY_SECONDS)

    async def _exchange(self, method: str, path: str, body: Mapping[str, str] | None) -> Reply:
        if self._reader is None or self._writer is None or self._reader.at_eof():
            self.close()
            self._reader, self._writer = await asyncio.open_connection(self.host, self.port)
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}:{self.port}"]
        if self._cookies:
            lines.append("Cookie: " + "; ".join(f"{name}={value}" for name, value in self._cookies.items()))
        sent = urlencode(body or {})
        if method == "POST":
            lines += ["Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(sent)}"]
        self._writer.write("\r\n".join([*lines, "", sent]).encode("latin-1"))
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *headers = head.split("\r\n")
        length, location = 0, ""
        for line in headers:
            name, _, value = line.partition(": ")
            match name.lower():
                case "content-length":
                    length = int(value)
                case "location":
                    location = value
                case "set-cookie":
                    cookie, _, held = value.partition(";")[0].partition("=")
                    self._cookies[cookie] = held
        text = (await self._reader.readexactly(length)).decode() if length else ""
        return Reply(int(first.split(" ")[1]), location, text)


def send_raters(
    url: str,
    study: RatingStudy,
    population: Population,
    *,
    numbers: range | None = None,
    at_once: int = 20,
    answerer: Answerer | None = None,
    patience: float = 60.0,
    think: Callable[[random.Random], float] | None = None,
    arrival: float = 0.0,
    seconds: float = math.inf,
    progress: Progress | None = None,
) -> list[Visit]:
    """Send raters through the site, `at_once` at a time; gives what became of each.

    patience: for how many seconds an unreachable server is tried again. think: seconds that a rater looks at
    a page. arrival: seconds within which the raters come, one after the other; 0 for all at once.
    seconds: whoever is still answering then leaves, between two pages.
    """
    chosen = numbers if numbers is not None else range(population.raters)
    truth, trials = find_truth(study, population), len(build_lists(study)[0].rows)
    done = 0

    async def run() -> list[Visit]:
        until = asyncio.get_running_loop().time() + seconds
        simulation = RaterSimulation(url, study, population, truth, trials, answerer, patience, think, until)
        gate = asyncio.Semaphore(at_once)

        async def one(order: int, number: int) -> Visit:
            nonlocal done
            await asyncio.sleep(arrival * order / len(chosen))
            async with gate:
                visit = await simulation.visit(number)
            done += 1
            if progress is not None:
                progress("Raters", done, len(chosen))
            return visit

        return list(await asyncio.gather(*(one(*pair) for pair in enumerate(chosen))))

    return asyncio.run(run())
