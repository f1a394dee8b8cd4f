"""Served models: real HTTP to a tiny model, whose scores must be the local engine's, whatever fails."""

import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from felicity.core.engine import TokenExtras
from felicity.core.errors import BadInput, FelicityError, NotPossible, UnknownName
from felicity.core.policy import Policy
from felicity.engines.served import completion as writing
from felicity.engines.served.client import RateLimiter, scrub
from felicity.engines.served.opening import FORCED_TOKENS
from felicity.engines.served.probing import identify
from felicity.engines.served.protocols import find_spans
from felicity.engines.served.settings import CostEstimate, Serving, find_url, read_key
from felicity.run.evaluate import evaluate
from felicity.run.model import Model, open_model
from tests.conftest import Answer, make_tiny_model
from tests.engines.served.served_server import NAME, Served

pytest.importorskip("httpx", reason="served models need httpx: pip install 'felicity[api]'")

TEXTS = [
    "The cats annoy Tim.",
    "The cat annoys Tim.",
    "No dog has ever barked here.",
    "She saw herself — naïve!",
]
CONTEXTS = [None, "No dog barked.", None, "Tim saw Tim."]
# The server computes in float32 with another batch: as far as re-batching may move a token.
CLOSE = 1e-4


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> None:
    for name in ("OPENAI_API_KEY", "FELICITY_API_KEY", "OPENAI_BASE_URL", "FELICITY_URL"):
        monkeypatch.delenv(name, raising=False)


def reach(served: Served, *, policy: Policy | None = None, cache: bool = False, **given: Any) -> Model:
    serving = Serving(**{"url": served.url, "backoff": 0.02, "patience": 20.0} | given)
    return open_model(f"openai:{NAME}", policy=policy, serving=serving, cache=cache)


def assert_same(found: pl.DataFrame, local: pl.DataFrame) -> None:
    assert found.drop("logprob", "tokens").equals(local.drop("logprob", "tokens"))
    pairs = zip(found["logprob"].explode(), local["logprob"].explode(), strict=True)
    assert all(a is b is None or abs(a - b) < CLOSE for a, b in pairs)


@pytest.mark.parametrize(
    ("style", "tokenizer", "policy"),
    [
        ("vllm", True, Policy()),
        ("vllm", False, Policy(bos="<|endoftext|>", eos="<|endoftext|>")),
        ("echo", True, Policy(overflow="drop", casing="lower")),
        ("text", False, Policy(bos="tokenizer")),
        ("llama", False, Policy()),
    ],
)
def test_scores_are_those_of_the_local_engine(
    tiny_model: Path, style: str, tokenizer: bool, policy: Policy
) -> None:
    with Served(tiny_model, style=style) as served:
        found = reach(served, policy=policy, tokenizer=str(tiny_model) if tokenizer else None)
        local = open_model(str(tiny_model), policy=policy, cache=False)
        assert_same(found.tokens(TEXTS, context=CONTEXTS), local.tokens(TEXTS, context=CONTEXTS))
        assert found.info.can == ("score", "fill", "generate")


@pytest.mark.parametrize("fault", ["429", "500", "timeout", "json", "closed", "length"])
def test_what_fails_is_asked_again_and_nothing_is_lost_or_wrong(tiny_model: Path, fault: str) -> None:
    texts = [f"The cats annoy Tim {n}." for n in range(12)]
    with Served(tiny_model) as served:
        lm = reach(served, tokenizer=str(tiny_model), timeout=0.5, concurrency=3)
        before = len(served.asked)
        met: set[str] = set()

        def fail_first(number: int) -> str | None:
            prompt = str(served.asked[number - 1]["prompt"])
            new = prompt not in met
            met.add(prompt)
            return fault if new else None

        served.fault = fail_first
        found = lm.tokens(texts)
        # Behind them a sentence of the probe, which confirms that it is the same model.
        assert len(served.asked) - before == 2 * (len(texts) + 1)
    assert_same(found, open_model(str(tiny_model), cache=False).tokens(texts))


def test_a_server_that_asks_for_time_gets_it(tiny_model: Path) -> None:
    with Served(tiny_model) as served:
        lm = reach(served, tokenizer=str(tiny_model), concurrency=1)
        first = len(served.asked) + 1
        served.fault = lambda number: "429" if number == first else None
        lm.score("She saw herself.")
        assert served.times[first] - served.times[first - 1] >= 0.3  # what the server's Retry-After says


def test_faults_without_end_stop_the_run_and_the_same_command_goes_on(
    tiny_model: Path, tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("good,bad\n" + "".join(f"The cats annoy {n}.,The cats annoys {n}.\n" for n in range(30)))
    with Served(tiny_model) as served:
        lm = reach(served, tokenizer=str(tiny_model), cache=True, concurrency=2, patience=0.2)
        begun, probe = len(served.asked), [body["prompt"] for body in served.asked]

        def fail(number: int) -> str | None:
            return "500" if number > begun + 40 and served.asked[number - 1]["prompt"] not in probe else None

        served.fault = fail
        with pytest.raises(FelicityError, match="status 500: .*the same command resumes from there"):
            evaluate(str(pairs), lm, out=tmp_path / "run")
        served.fault = None
        again = reach(served, tokenizer=str(tiny_model), cache=True)
        opened = len(served.asked)
        run = evaluate(str(pairs), again, out=tmp_path / "run")
        # 60 texts, of which 40 were answered; those under way beside the failing one may be asked again, and
        # a sentence of the probe confirms the model.
        assert 21 <= len(served.asked) - opened <= 23
    whole = evaluate(str(pairs), open_model(str(tiny_model), cache=False))
    assert run["judgements"]["passed"].equals(whole["judgements"]["passed"])
    assert (run["scores"]["value"] - whole["scores"]["value"]).abs().max() < 1e-3  # of about ten tokens


def test_a_server_that_is_not_there_is_told_of_soon(tiny_model: Path) -> None:
    with Served(tiny_model) as served:
        pass
    begun = time.monotonic()
    with pytest.raises(FelicityError, match="check that it is running"):
        reach(served, patience=0.5)
    assert time.monotonic() - begun < 5


def test_another_model_behind_the_same_address_is_another_model(tiny_model: Path, tmp_path: Path) -> None:
    other = make_tiny_model(tmp_path / "other", seed=2)
    with Served(tiny_model) as served:
        first = reach(served, tokenizer=str(tiny_model)).info
        assert reach(served, tokenizer=str(tiny_model)).info.key == first.key
        assert reach(served, tokenizer=str(tiny_model), revision="v2").info.key != first.key
    with Served(other, port=served.port) as swapped:
        assert reach(swapped, tokenizer=str(tiny_model)).info.key != first.key
    with Served(tiny_model, port=served.port, shift=-0.003) as rounded:
        assert reach(rounded, tokenizer=str(tiny_model)).info.key == first.key


SECRET = "sk-very-secret-0123456789"


def test_the_key_is_sent_and_written_nowhere(
    tiny_model: Path,
    tmp_path: Path,
    empty_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Callable[..., Answer],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("good,bad\nThe cats annoy Tim.,The cats annoys Tim.\nShe saw it.,Her saw it.\n")
    run = ("run", pairs, "-o", tmp_path / "run", "-m", f"openai:{NAME}")
    said: list[Answer] = []
    with Served(tiny_model, key=SECRET) as served:
        common = (*run, "--url", served.url, "--tokenizer", tiny_model)
        served.fault = lambda number: "500" if number % 7 == 0 else None
        said.append(cli(*common))
        assert said[-1].code == 0, said[-1].err
        assert served.authorizations == {f"Bearer {SECRET}"}
        served.fault = lambda number: "500"
        said.append(cli(*common, "--patience", 0, "--bos", "none"))
        monkeypatch.setenv("OPENAI_API_KEY", SECRET + "-wrong")
        said.append(cli(*common))
        assert "refuses the key" in said[-1].err
    assert [answer.code for answer in said] == [0, 2, 2]
    assert not any(SECRET in answer.out + answer.err for answer in said)
    written = [path for folder in (tmp_path, empty_cache) for path in folder.rglob("*") if path.is_file()]
    assert len(written) > 5
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    "url", ["http://me:secret@127.0.0.1/v1", "http://127.0.0.1/v1?key=secret", "127.0.0.1:8000", ""]
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="address") as caught:
        open_model(f"openai:{NAME}", serving=Serving(url=url))
    assert "secret" not in str(caught.value)


def test_a_server_that_tells_only_what_comes_next_fills_and_refuses_to_score(tiny_model: Path) -> None:
    with Served(tiny_model, style="top") as served:
        lm = reach(served)
        with pytest.raises(NotPossible, match="can fill, generate but not score"):
            lm.score("She saw herself.")
        assert lm.info.notes["asked"] == "top"
        found = lm.fill("The cats ___.", k=3)
        local = open_model(str(tiny_model), policy=Policy(bos="none"), cache=False).fill("The cats ___.", k=8)
        # Bytes that are no text by themselves are of no use to anybody; the local engine shows them.
        local = local.filter(pl.col("filler") != "\ufffd").head(3)
        assert found["filler"].to_list() == local["filler"].to_list()
        assert (found["logprob"] - local["logprob"]).abs().max() < CLOSE
        with pytest.raises(NotPossible, match="at most 20 logprobs.*request fewer"):
            lm.fill("The cats ___.", k=21)


def test_a_server_that_tells_fewer_words_than_asked_is_refused(tiny_model: Path) -> None:
    with Served(tiny_model, most=2) as served:
        lm = reach(served, tokenizer=str(tiny_model))
        with pytest.raises(NotPossible, match=r"the 10 most probable tokens \(it gave [12] of 15\); request"):
            lm.fill("The cats ___.", k=10)


def test_a_frame_for_which_no_token_is_a_text_is_refused() -> None:
    with pytest.raises(NotPossible, match="None of the 2 most probable tokens .* for 'A ___.' is text"):
        writing._rank("A ___.", [(" ", -1.0), ("\ufffd", -2.0)], 1)


def test_what_a_server_refused_once_is_not_asked_again(tiny_model: Path) -> None:
    with Served(tiny_model, style="llama") as served:
        complete = served.completion

        def at_most_20(body: dict[str, Any], *, short: bool) -> tuple[int, object]:
            refused = body.get("logprobs", 0) > 20
            return (400, {"error": {"message": "at most 20"}}) if refused else complete(body, short=short)

        served.completion = at_most_20  # type: ignore[method-assign]
        lm = reach(served, concurrency=1)
        probe = [body["prompt"] for body in served.asked]
        served.asked.clear()
        for frames in (["The cats ___.", "She saw ___."], ["Tim ___."]):
            assert len(lm.fill(frames, k=20)) >= len(frames)
        assert [body["logprobs"] for body in served.asked if body["prompt"] not in probe] == [25, 20, 20, 20]


@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"--{name.replace('_', '-')} is 0; it must be above 0"):
        Serving(**{name: 0})  # type: ignore[arg-type]


def test_a_service_for_conversations_alone_is_refused(tiny_model: Path) -> None:
    with Served(tiny_model) as served:
        served.completion = lambda *_, **__: (404, {"detail": "Not Found"})  # type: ignore[method-assign]
        with pytest.raises(NotPossible, match="gives no log-probabilities for 'tiny'"):
            reach(served)


def test_words_in_a_blank_and_texts_written_on_are_the_local_engine_s(tiny_model: Path) -> None:
    with Served(tiny_model) as served:
        lm, local = reach(served, tokenizer=str(tiny_model)), open_model(str(tiny_model), cache=False)
        found, wanted = (m.score_candidates("The cats ___.", ["annoy", "annoys Tim"]) for m in (lm, local))
        assert found.drop("logprob").equals(wanted.drop("logprob"))
        assert (found["logprob"] - wanted["logprob"]).abs().max() < CLOSE
        texts, same = (m.generate(["The cats", "She"], tokens=4)["continuation"] for m in (lm, local))
        assert texts.to_list() == same.to_list()
        lm.generate("She", tokens=2, temperature=0.7, samples=2, stop=["."], seed=1)
        drawn = [body for body in served.asked if body["temperature"] == 0.7]
        assert len(drawn) == 2
        assert len({body["seed"] for body in drawn}) == 2


def test_a_tokenizer_that_is_not_the_server_s_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tiny_model / name, tmp_path / name)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["model"]["merges"] = content["model"]["merges"][:3]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with Served(tiny_model) as served, pytest.raises(FelicityError, match="is not that of"):
        reach(served, tokenizer=str(tmp_path))


def test_a_model_that_the_server_does_not_list_suggests_the_near_one(tiny_model: Path) -> None:
    with Served(tiny_model) as served, pytest.raises(UnknownName, match="did you mean 'tiny'"):
        open_model("openai:tinyy", serving=Serving(url=served.url))


def test_the_only_model_need_not_be_named(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Served(tiny_model) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        assert open_model("openai:", cache=False).info.name == NAME


@pytest.mark.parametrize(
    "change", [{"bos": "none"}, {"eos": "auto"}, {"overflow": "drop"}, {"seam": "count"}]
)
def test_what_only_ids_can_do_is_refused_where_texts_are_sent(
    tiny_model: Path, change: dict[str, str]
) -> None:
    with Served(tiny_model, style="text") as served, pytest.raises(NotPossible, match="--tokenizer"):
        reach(served, policy=Policy(**change))  # type: ignore[arg-type]


def test_a_tokenizer_is_of_no_use_where_texts_are_sent(tiny_model: Path) -> None:
    with Served(tiny_model, style="text") as served, pytest.raises(NotPossible, match="accepts no token ids"):
        reach(served, tokenizer=str(tiny_model))


def test_options_that_would_do_nothing_are_refused(tiny_model: Path, cli: Callable[..., Answer]) -> None:
    with Served(tiny_model) as served:
        given = ("judge", "She saw.", "Her saw.", "--url", served.url)
        assert "omit --dtype" in cli(*given, "-m", f"openai:{NAME}", "--dtype", "bfloat16").err
        assert "not a served model" in cli(*given, "-m", tiny_model).err
        with pytest.raises(NotPossible, match="log-probabilities only"):
            list(reach(served).engine.score(pl.DataFrame(), extras=TokenExtras(rank=True)))


def test_an_overlong_text_is_refused_before_it_is_sent(tiny_model: Path) -> None:
    with Served(tiny_model) as served:
        lm = reach(served, tokenizer=str(tiny_model))
        asked = len(served.asked)
        with pytest.raises(BadInput, match="reads at most 63"):  # a window of 64, one token of it written
            lm.score("cat " * 70)
        assert len(served.asked) == asked


def test_no_more_requests_are_under_way_than_allowed(tiny_model: Path) -> None:
    with Served(tiny_model, delay=0.02) as served:
        lm = reach(served, tokenizer=str(tiny_model), concurrency=3)
        served.most_under_way = 0
        lm.score([f"cat {n}" for n in range(12)])
        assert served.most_under_way == 3


def test_a_limit_on_requests_is_kept(tiny_model: Path) -> None:
    with Served(tiny_model) as served:
        lm = reach(served, tokenizer=str(tiny_model), requests_per_minute=1200)
        served.times.clear()
        lm.score([f"cat {n}" for n in range(6)])
        gaps = [after - before for before, after in itertools.pairwise(sorted(served.times))]
        assert sum(gaps) >= 5 * 0.05 - 0.04  # 1200 a minute are 50 ms apart; the first may come late


@given(tokens=st.integers(1, 10_000), rate=st.integers(1, 10_000))
def test_tokens_are_spaced_so_that_a_minute_holds_no_more(tokens: int, rate: int) -> None:
    rate_limiter = RateLimiter(requests_per_minute=None, tokens_per_minute=rate)
    assert rate_limiter.spacing(tokens) * rate / 60 == pytest.approx(tokens)


def test_the_bill_comes_before_the_run(tiny_model: Path) -> None:
    bills: list[CostEstimate] = []
    with Served(tiny_model) as served:
        lm = reach(served, tokenizer=str(tiny_model), price_per_million=3.0, announce=bills.append)
        lm.score(["cat", "cat cat"])
    counts = open_model(str(tiny_model), cache=False).score(["cat", "cat cat"])["n_tokens"].sum()
    assert bills == [CostEstimate(requests=2, tokens=counts, cost=counts * 3e-6)]


def test_a_bill_for_a_token_at_a_time_counts_every_request(tiny_model: Path) -> None:
    with Served(tiny_model, style="llama") as served:
        bills: list[CostEstimate] = []
        lm = reach(served, announce=bills.append)
        before = len(served.asked)
        lm.score("The cats annoy Tim.")
        # Behind them a sentence of the probe, whose tokens, but the first, are a request each.
        sent = served.asked[before : 1 - FORCED_TOKENS]
        assert lm.info.notes["asked"] == "forced"
        assert bills[0].requests == len(sent)
        assert bills[0].tokens == sum(len(body["prompt"]) for body in sent)


def test_a_reader_who_stops_ends_what_is_under_way(tiny_model: Path) -> None:
    prompts = pl.DataFrame(
        {"request": [str(n) for n in range(300)], "context_text": [None] * 300, "text": ["cat"] * 300},
        schema_overrides={"context_text": pl.String},
    )
    with Served(tiny_model) as served:
        frames = reach(served, tokenizer=str(tiny_model), concurrency=2).engine.score(prompts)
        next(iter(frames))
        frames.close()  # type: ignore[attr-defined]
        ended = len(served.asked)
        time.sleep(0.2)
        assert len(served.asked) <= ended + 2
        assert ended < 320


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_scored(tiny_model: Path, tmp_path: Path, empty_cache: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    # Half a minute of requests, so that the interrupt comes before the last one on a busy machine too.
    pairs.write_text("good,bad\n" + "".join(f"The cat {n}.,The cats {n}.\n" for n in range(1_000)))
    with Served(tiny_model, delay=0.1) as served:
        command = [sys.executable, "-m", "felicity", "run", str(pairs), "-m", f"openai:{NAME}", "--no-report"]
        command += ["--url", served.url, "--tokenizer", str(tiny_model), "-o", str(tmp_path / "run")]
        with (tmp_path / "said.txt").open("w") as said:
            process = subprocess.Popen(command, stdout=said, stderr=said, env=os.environ | {"NO_COLOR": "1"})
            assert wait_for(lambda: kept(empty_cache) > 0)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=10) == 130
        assert "finished scores are saved" in (tmp_path / "said.txt").read_text()
        assert 0 < kept(empty_cache) < 2_000


def wait_for(happens: Callable[[], bool], *, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happens():
            return True
        time.sleep(0.05)
    return False


def kept(cache: Path) -> int:
    """Texts in the score cache."""
    counts: Iterator[int] = (
        sqlite3.connect(path).execute("SELECT count(*) FROM score").fetchone()[0]
        for path in cache.glob("scores/*.sqlite")
    )
    try:
        return sum(counts)
    except sqlite3.OperationalError:
        return 0


@settings(max_examples=200)
@given(text=st.text(min_size=1, max_size=20))
def test_pieces_stand_where_the_tokenizers_library_puts_them(tiny_model: Path, text: str) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    whole = tokenizer(text, return_offsets_mapping=True)
    pieces = tokenizer.convert_ids_to_tokens(whole["input_ids"])
    assert find_spans(text, pieces) == [tuple(span) for span in whole["offset_mapping"]]


def test_pieces_that_do_not_make_up_the_text_are_not_placed() -> None:
    assert find_spans("Cats", ["cats"]) is None


def test_a_server_that_adds_its_own_begin_token_is_refused(tiny_model: Path) -> None:
    with Served(tiny_model, style="echo", begins=True) as served:
        with pytest.raises(NotPossible, match="scored other tokens than it was sent"):
            reach(served, tokenizer=str(tiny_model))


def set_first(value: object) -> Callable[[Any], Any]:
    """What changes the second log-probability of an answer."""

    def change(payload: Any) -> Any:
        for choice in payload.get("choices", []):
            rows = choice.get("prompt_logprobs") or []
            for row in rows[1:2]:
                row[next(iter(row))]["logprob"] = value
        return payload

    return change


@pytest.mark.parametrize("value", [None, "-1.0", float("inf"), float("nan"), True, 3.5, [], {}])
def test_an_answer_without_a_number_where_one_is_due_is_said(tiny_model: Path, value: object) -> None:
    with Served(tiny_model) as served:
        lm = reach(served, tokenizer=str(tiny_model), patience=0.1)
        served.change = set_first(value)
        with pytest.raises(FelicityError, match="unusable answers|not usable"):
            lm.score(TEXTS)


@pytest.mark.parametrize(
    "said",
    ["{key}", "{padding}{key}", "Bearer {start}... was refused", "{quoted}", "{base64}", "{hexadecimal}"],
)
def test_no_part_of_the_key_is_repeated(said: str) -> None:
    key = "sk-proj-Ab/9+xyzQRST4567"
    encoded = b64encode(f"Bearer {key}".encode()).decode()
    secrets = {"key": key, "quoted": quote(key, safe=""), "hexadecimal": key.encode().hex()}
    forms = secrets | {"start": key[:12], "base64": encoded, "padding": "x" * 190}
    cleaned = scrub(said.format(**forms), key)[:200]
    # "Bearer" itself is not secret, and the letter of base64 after it is shared with the key's first byte.
    for secret in (*secrets.values(), encoded[11:]):
        assert not any(secret[at : at + 8] in cleaned for at in range(len(secret) - 7))


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-\u00e9", "sk-\x1b[31m"])
def test_a_key_that_no_header_can_carry_is_refused_without_saying_it(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(BadInput) as refusal:
        read_key()
    assert "sk-" not in str(refusal.value)


@pytest.mark.parametrize(
    "url",
    ["http://[::1", "http://h:99999999/v1", "http://h\u00f6st/v1", "http://a b/v1", "http://h\n/v1", "//x"],
)
def test_a_bad_address_is_said_before_anything_is_sent(url: str) -> None:
    with pytest.raises(BadInput, match="address"):
        find_url(Serving(url=url))


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"probe": 3}', '{"digest": 1, "noise": null, "probe": []}']
)
def test_a_damaged_identity_is_made_again(content: str, empty_cache: Path) -> None:
    first = identify({"url": "u"}, [-1.0, -2.0], noise=0.1)
    (path,) = (empty_cache / "served").rglob("*.json")
    path.write_text(content)
    assert identify({"url": "u"}, [-1.0, -2.0], noise=0.1) == first
    path.write_text(path.read_text().replace("0.1", "0.3"))
    assert identify({"url": "u"}, [-1.0, -2.0], noise=0.1) == first
