"""Simulated raters that go through the site's real pages, to pilot a study before anybody is paid.

Each has habits of its own: a bias, a way of using the scale, noise that grows with fatigue, and sometimes
no interest at all. They read forms as a browser does, click twice, lose the connection and try again.
"""

import asyncio
import json
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from statistics import NormalDist

import httpx

from felicity.core.progress import Progress
from felicity.humans.lists import build_lists
from felicity.humans.stimuli import Stimulus
from felicity.humans.study import Study

CLOZE_WORDS = ("house", "dog", "way", "morning", "people", "friend", "idea", "door")
LATENT_SD = 1.3
RETRY_SECONDS = 0.2


@dataclass(frozen=True)
class Population:
    """Who takes part: standard deviations are on a latent scale on which conditions differ by `effect`."""

    raters: int = 30
    effect: float = 1.0
    item_sd: float = 0.5
    bias_sd: float = 0.5
    scale_sd: float = 0.2
    noise_sd: float = 0.7
    fatigue: float = 0.3
    clickers: float = 0.0
    dropout: float = 0.0
    double_clicks: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class SimulatedRater:
    """The habits of one rater; `leaves_at` is the share of trials after which they drop out."""

    bias: float
    scale: float
    noise: float
    fatigue: float
    clicker: bool
    leaves_at: float | None
    double_clicks: float


def draw_rater(population: Population, number: int) -> SimulatedRater:
    """The rater with this number, always the same for the same seed."""
    rng = random.Random(f"{population.seed} rater {number}")
    leaves = rng.random() if rng.random() < population.dropout else None
    return SimulatedRater(
        bias=rng.gauss(0, population.bias_sd),
        scale=math.exp(rng.gauss(0, population.scale_sd)),
        noise=population.noise_sd,
        fatigue=population.fatigue,
        clicker=rng.random() < population.clickers,
        leaves_at=leaves,
        double_clicks=population.double_clicks,
    )


def find_truth(study: Study, population: Population) -> dict[int, float]:
    """How good each stimulus is: its column `truth` if it has one, else by condition and item.

    Conditions are evenly spaced in the order of the table, the first one best, `effect` from end to end.
    """
    conditions = list(dict.fromkeys(one.condition for one in study.stimuli if one.role == "target"))
    steps = max(len(conditions) - 1, 1)
    found = {}
    for stimulus in study.stimuli:
        own = stimulus.factors.get("truth", "")
        try:
            found[stimulus.row] = float(own)
        except ValueError:
            rng = random.Random(f"{population.seed} item {stimulus.item}")
            place = conditions.index(stimulus.condition) if stimulus.condition in conditions else steps / 2
            level = population.effect * (0.5 - place / steps) if len(conditions) > 1 else 0.0
            found[stimulus.row] = level + rng.gauss(0, population.item_sd)
    return found


def draw_answer(
    study: Study, stimulus: Stimulus, truth: float, habits: SimulatedRater, done: float, rng: random.Random
) -> dict[str, str]:
    """The fields of the form that this rater would send; `done` is the share of trials behind them."""
    noise = habits.noise * (1 + habits.fatigue * done)
    latent = (
        rng.gauss(0, 1) * LATENT_SD
        if habits.clicker
        else habits.scale * (truth + habits.bias + rng.gauss(0, noise))
    )
    rt = rng.lognormvariate(5.5 if habits.clicker else 8.0, 0.4) * (1 - 0.3 * done)
    fields = {"script": "1", "rt": f"{rt:.1f}", "away": ""}
    if stimulus.answer and not habits.clicker:
        return fields | {"answer": stimulus.answer}
    return fields | TASK_ANSWERS[study.task.kind](study, stimulus, latent, rng)


def _share(latent: float) -> float:
    return NormalDist(0, LATENT_SD).cdf(latent)


def _likert(study: Study, _stimulus: Stimulus, latent: float, _rng: random.Random) -> dict[str, str]:
    points = study.task.points
    return {"answer": str(min(int(_share(latent) * points), points - 1) + 1)}


def _times(study: Study, stimulus: Stimulus, latent: float, rng: random.Random) -> dict[str, str]:
    """Words are read more slowly the worse the sentence is; a Maze is sometimes missed."""
    rows: list[dict[str, float | bool]] = []
    for _ in stimulus.text.split():
        right = study.task.kind == "reading" or not rows or rng.random() > 0.02
        rows.append({"ms": round(rng.lognormvariate(5.9 - 0.05 * latent, 0.3), 2), "correct": right})
        if not right and study.task.on_error == "stop":
            break
    return {"times": json.dumps(rows)}


def _text(_study: Study, _stimulus: Stimulus, _latent: float, rng: random.Random) -> dict[str, str]:
    word = rng.choice(CLOZE_WORDS)
    return {"answer": word, "typed": str(len(word)), "pasted": ""}


TASK_ANSWERS: dict[str, Callable[[Study, Stimulus, float, random.Random], dict[str, str]]] = {
    "likert": _likert,
    "binary": lambda _study, _stimulus, latent, _rng: {"answer": "1" if latent > 0 else "0"},
    "choice": lambda _study, _stimulus, latent, _rng: {"answer": "a" if latent > 0 else "b"},
    "slider": lambda study, _stimulus, latent, _rng: {
        "answer": f"{study.task.minimum + (study.task.maximum - study.task.minimum) * _share(latent):.1f}"
    },
    "magnitude": lambda study, _stimulus, latent, _rng: {
        "answer": f"{study.task.modulus * math.exp(latent / 2):.3f}"
    },
    "cloze": _text,
    "continuation": _text,
    "reading": _times,
    "maze": _times,
}


@dataclass
class Page(HTMLParser):
    """What a rater needs of a page: its first form, the choices in it, a completion code."""

    action: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    choices: dict[str, list[str]] = field(default_factory=dict)
    row: int | None = None
    question: bool = False
    code: str = ""
    _in_code: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in forms and fields."""
        values = {name: value or "" for name, value in attrs}
        if tag == "form" and not self.action:
            self.action = values.get("action", "")
            self.row = int(values["data-stimulus"]) if "data-stimulus" in values else None
            self.question = "data-question" in values
        elif tag == "input" and values.get("name"):
            if values.get("type") in ("radio", "checkbox"):
                self.choices.setdefault(values["name"], []).append(values.get("value", "1"))
            elif values["name"] not in self.fields:
                self.fields[values["name"]] = values.get("value", "")
        self._in_code = values.get("id") == "code"

    def handle_data(self, data: str) -> None:
        """Take in the completion code."""
        if self._in_code and not self.code:
            self.code = data.strip()


def read_page(text: str) -> Page:
    """A page as a simulated rater sees it."""
    page = Page()
    page.feed(text)
    return page


@dataclass
class Visit:
    """What became of one simulated rater: every answer that the site acknowledged, and the code."""

    number: int
    platform_id: str
    acknowledged: list[tuple[int, bool, str]] = field(default_factory=list)
    code: str = ""
    left: bool = False
    refused: str = ""
    waits_ms: list[float] = field(default_factory=list)


Answerer = Callable[["Visit", Stimulus], Mapping[str, str]]


async def visit_site(
    url: str,
    study: Study,
    number: int,
    *,
    population: Population,
    truth: Mapping[int, float],
    answerer: Answerer | None = None,
    patience: float = 60.0,
    think: Callable[[random.Random], float] | None = None,
    name: str | None = None,
) -> Visit:
    """Send one simulated rater through the site, from the platform's link to the completion code.

    patience: for how many seconds an unreachable server is tried again. think: seconds between pages.
    """
    rng = random.Random(f"{population.seed} visit {number}")
    habits = draw_rater(population, number)
    visit = Visit(number, name or f"simulated{population.seed}x{number}")
    # No TLS is spoken on this machine, and preparing for it would take longer than the visit.
    async with httpx.AsyncClient(base_url=url, verify=False, timeout=30.0) as client:
        browser = _Client(client, patience, visit)
        parameter = study.platform.parameter
        page = await browser.get("/", {parameter: visit.platform_id} if parameter else {})
        if page.action == "/consent":
            page = await browser.post("/consent", {"token": page.fields["token"], "agree": "1"})
        answered = 0
        trials = len(build_lists(study)[0].rows)
        while page.action in ("/answer", "/more"):
            if page.action == "/more":
                page = await browser.post("/finish", {"token": page.fields["token"]})
                continue
            if think is not None:
                await asyncio.sleep(think(rng))
            fields, answered = _fill(study, page, answered, trials, habits, truth, visit, answerer, rng)
            if fields is None:
                visit.left = True
                return visit
            body = {"token": page.fields["token"]} | fields
            if rng.random() < habits.double_clicks:
                await browser.post_only("/answer", body)
            given = fields.get("answer", fields.get("times", ""))
            acknowledged = (page.row, page.question, given) if page.row is not None else None
            page = await browser.post("/answer", body, acknowledged)
        visit.code = page.code
        if not page.code:
            visit.refused = browser.title
        return visit


def _fill(
    study: Study,
    page: Page,
    answered: int,
    trials: int,
    habits: SimulatedRater,
    truth: Mapping[int, float],
    visit: Visit,
    answerer: Answerer | None,
    rng: random.Random,
) -> tuple[dict[str, str] | None, int]:
    """The fields of the page's form, or None where the rater leaves; and the trials answered."""
    if page.row is None:
        fields = {name: values[-1] for name, values in page.choices.items()}
        if study.quiz and "q0" in page.choices:
            for place, question in enumerate(study.quiz.questions):
                fields[f"q{place}"] = str(question.choices.index(question.correct))
        return fields | {"script": "1"}, answered
    stimulus = study.stimuli[page.row]
    if page.question:
        right = stimulus.choices.index(stimulus.correct)
        chosen = rng.randrange(len(stimulus.choices)) if habits.clicker or rng.random() < 0.05 else right
        return {"answer": str(chosen), "script": "1", "rt": f"{rng.lognormvariate(7.5, 0.4):.1f}"}, answered
    if habits.leaves_at is not None and answered >= habits.leaves_at * trials:
        return None, answered
    if answerer is not None:
        return dict(answerer(visit, stimulus)), answered + 1
    done = answered / max(trials, 1)
    return draw_answer(study, stimulus, truth[page.row], habits, done, rng), answered + 1


@dataclass
class _Client:
    """A browser's part: follows redirects, keeps cookies, and tries again while the server is away."""

    client: httpx.AsyncClient
    patience: float
    visit: Visit
    title: str = ""

    async def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Page:
        answer = await self._request("GET", path, parameters=parameters)
        return await self._follow(answer)

    async def post_only(self, path: str, body: Mapping[str, str]) -> httpx.Response:
        return await self._request("POST", path, body=body)

    async def post(
        self, path: str, body: Mapping[str, str], acknowledged: tuple[int, bool, str] | None = None
    ) -> Page:
        clock = asyncio.get_running_loop().time
        begin = clock()
        answer = await self._request("POST", path, body=body)
        if acknowledged and answer.status_code == 303:
            self.visit.waits_ms.append(1000 * (clock() - begin))
            self.visit.acknowledged.append(acknowledged)
        return await self._follow(answer)

    async def _follow(self, answer: httpx.Response) -> Page:
        while answer.status_code == 303:
            answer = await self._request("GET", answer.headers["location"])
        text = answer.text
        start = text.find("<h1")
        self.title = text[text.find(">", start) + 1 : text.find("</h1>")] if start >= 0 else text[:80]
        return read_page(text)

    async def _request(
        self,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, str] | None = None,
        body: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self.patience
        while True:
            try:
                answer = await self.client.request(method, path, params=parameters or None, data=body)
                if answer.status_code < 500 and answer.status_code != 429:
                    return answer
            except httpx.HTTPError:
                answer = None
            if clock() > deadline:
                if answer is not None:
                    return answer
                raise TimeoutError(f"the site did not answer for {self.patience:g} seconds")
            await asyncio.sleep(RETRY_SECONDS)


def send_raters(
    url: str,
    study: Study,
    population: Population,
    *,
    numbers: range | None = None,
    at_once: int = 20,
    answerer: Answerer | None = None,
    patience: float = 60.0,
    think: Callable[[random.Random], float] | None = None,
    told: Progress | None = None,
) -> list[Visit]:
    """Send raters through the site, so many at once; gives what became of each."""
    truth = find_truth(study, population)
    chosen = numbers if numbers is not None else range(population.raters)
    done = 0

    async def run() -> list[Visit]:
        gate = asyncio.Semaphore(at_once)

        async def one(number: int) -> Visit:
            nonlocal done
            async with gate:
                visit = await visit_site(
                    url,
                    study,
                    number,
                    population=population,
                    truth=truth,
                    answerer=answerer,
                    patience=patience,
                    think=think,
                )
            done += 1
            if told is not None:
                told("Raters", done, len(chosen))
            return visit

        return list(await asyncio.gather(*(one(number) for number in chosen)))

    return asyncio.run(run())
