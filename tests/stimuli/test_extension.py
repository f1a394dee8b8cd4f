"""Extension by a generator: prompts, stored answers, stopping, and kills that cost nothing."""

import json
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest

from felicity.core.errors import BadInput, NotPossible
from felicity.stimuli.extension import (
    FORMS,
    Extension,
    ExtensionTask,
    Limits,
    ModelAnswer,
    build_prompt,
    unique_pairs,
)
from felicity.stimuli.items import Pair, read_item_file
from felicity.stimuli.review import Queue, verify_log

SEEDS = [
    Pair(str(n), f"A {word} is a bird", f"A {word} is not a tool")
    for n, word in enumerate(("robin", "wren", "crow", "jay", "owl"))
]
CONSONANTS = "bdfgklmprt"


def make_task(**changes: object) -> ExtensionTask:
    given = {
        "dataset": "neg_136_simp",
        "form": "negation",
        "instruction": FORMS["negation"].instruction,
        "k": 4,
        "seed": 7,
        "parameters": {"tokens": 100},
        "model": {"name": "a generator"},
        "seeds": [[seed.item, *seed.sentences] for seed in SEEDS],
    }
    return ExtensionTask(**(given | changes))  # type: ignore[arg-type]


def begin(folder: Path, **changes: object) -> Extension:
    extension = Extension(folder)
    extension.begin(make_task(**changes))
    return extension


def answer(prompt: str, seed: int) -> list[ModelAnswer]:
    """Two pairs, one of them often a repetition, and an empty line; the same for the same seed."""
    rng = random.Random(f"{prompt}{seed}")
    words = ["".join(rng.choice(CONSONANTS) + rng.choice("aeiou") for _ in range(size)) for size in (1, 3)]
    lines = [f"A {word} is {'not ' if no else ''}a fish," for word in words for no in ("", "not")]
    return [ModelAnswer("\n".join([*lines[:2], "", *lines[2:]]))]


def test_examples_are_drawn_without_replacement_and_follow_seed_and_number() -> None:
    prompts = [build_prompt(SEEDS, "More:", k=4, seed=1, number=number) for number in (1, 1, 2)]
    assert prompts[0] == prompts[1]
    assert prompts[0].text != prompts[2].text
    assert all(len(set(prompt.examples)) == 4 for prompt in prompts)
    assert prompts[0].text.startswith("More:\nA ")


def test_more_examples_than_seeds_are_refused() -> None:
    with pytest.raises(BadInput, match="5 seeds"):
        build_prompt(SEEDS, "More:", k=6, seed=1, number=1)


def test_repeated_seeds_are_shown_once() -> None:
    assert len(unique_pairs([*SEEDS, *SEEDS])) == len(SEEDS)


def test_every_raw_answer_is_stored_with_all_that_was_asked(tmp_path: Path) -> None:
    extension = begin(tmp_path / "x")
    extension.run(answer, Limits(n=4))
    rows = [json.loads(line) for line in (tmp_path / "x" / "answers.jsonl").read_text().splitlines()]
    first = rows[0]
    assert first["prompt"] == make_task().prompt(1).text
    assert first["prompt_hash"] == make_task().prompt(1).digest
    assert (first["seed"], first["parameters"], first["model"]) == (
        8,
        {"tokens": 100},
        {"name": "a generator"},
    )
    assert first["answers"][0]["text"] == answer(first["prompt"], 8)[0].text


def test_work_stops_at_n_and_asks_nothing_twice(tmp_path: Path) -> None:
    extension = begin(tmp_path / "x")
    first = extension.run(answer, Limits(n=10))
    assert first.queued >= 10
    again = Extension(tmp_path / "x").run(answer, Limits(n=10))
    assert (again.asked, again.queued, again.requests) == (0, first.queued, first.requests)


def test_work_stops_when_the_yield_falls(tmp_path: Path) -> None:
    extension = begin(tmp_path / "x")
    outcome = extension.run(
        lambda *_: [ModelAnswer("A robin is a bird,\nA robin is not a tool,\n")], Limits(n=5, window=6)
    )
    assert outcome.requests == 6
    assert "fewer than the limit" in outcome.stopped


def test_another_task_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    begin(tmp_path / "x")
    with pytest.raises(BadInput, match="begun with another seed"):
        begin(tmp_path / "x", seed=8)


def test_two_processes_do_not_extend_one_folder_at_once(tmp_path: Path) -> None:
    extension = begin(tmp_path / "x")

    def start_another(prompt: str, seed: int) -> list[ModelAnswer]:
        with pytest.raises(NotPossible, match="Another felicity"):
            Extension(tmp_path / "x").run(answer, Limits(n=2))
        return answer(prompt, seed)

    assert extension.run(start_another, Limits(n=2)).queued >= 2


def test_a_request_is_noted_before_it_is_sent_and_counted_if_it_is_sent_again(tmp_path: Path) -> None:
    extension = begin(tmp_path / "x")

    def break_down(prompt: str, seed: int) -> list[ModelAnswer]:
        assert '"request": 1' in (tmp_path / "x" / "sent.jsonl").read_text()
        raise OSError("the power is cut")

    with pytest.raises(OSError, match="power"):
        extension.run(break_down, Limits(n=2))
    outcome = Extension(tmp_path / "x").run(answer, Limits(n=2))
    assert outcome.repeated == 1
    assert Extension(tmp_path / "x").run(answer, Limits(n=2)).repeated == 1


def test_a_folder_whose_starter_was_killed_is_waited_for(tmp_path: Path) -> None:
    """The answer that its background process still waits for is not asked for again."""
    extension = begin(tmp_path / "x")
    gone = multiprocessing.get_context("spawn").Process(target=int)
    gone.start()
    gone.join()
    waited = []

    def start_another(prompt: str, seed: int) -> list[ModelAnswer]:
        def give_up() -> bool:
            waited.append(True)
            return len(waited) > 2

        second = Extension(tmp_path / "x").run(answer, Limits(n=2), stop_now=give_up)
        assert second.stopped == "interrupted"
        return answer(prompt, seed)

    assert extension.run(start_another, Limits(n=1), starter=gone.pid).queued >= 1
    assert len(waited) > 2


def test_a_forecast_counts_tokens_and_cost(tmp_path: Path) -> None:
    extension = begin(tmp_path / "x")
    extension.run(answer, Limits(n=10))
    queued = len(extension.state().proposals)
    requests = len(extension.transcript.read())
    forecast = extension.forecast(queued + 30, count=lambda _: 50, price_per_million=10.0)
    assert forecast.requests == pytest.approx(30 * requests / queued, abs=1.0)
    assert forecast.tokens_sent == 50 * forecast.requests
    assert forecast.tokens_received == 100 * forecast.requests
    assert forecast.cost == pytest.approx(150 * forecast.requests * 10 / 1e6)


def test_a_forecast_counts_characters_where_only_the_server_knows_tokens(tmp_path: Path) -> None:
    forecast = begin(tmp_path / "x").forecast(30, count=lambda _: None)
    assert not forecast.exact
    assert forecast.tokens_sent == pytest.approx(
        forecast.requests * len(make_task().prompt(1).text) / 4, rel=0.05
    )


def test_the_dataset_names_the_model_that_wrote_it(tmp_path: Path) -> None:
    extension = begin(tmp_path / "x")
    extension.run(answer, Limits(n=3))
    queue = Queue(extension.log)
    for item in queue.state.proposals:
        queue.decide(item, "accept", reviewer="ada")
    assert extension.write_dataset() == len(queue.state.proposals)
    items = read_item_file(tmp_path / "x" / "dataset.parquet")
    assert set(items["written_by"]) == {"a generator"}
    assert items["condition"].to_list()[:2] == ["affirmative", "negative"]


def run_counted(folder: Path, *, polite: bool) -> None:
    """An extension whose generator leaves a byte for every request that it sends."""
    from felicity.cli.stimuli_extend import waiting_for_answers

    def generate(prompt: str, seed: int) -> list[ModelAnswer]:
        with (folder / "sent").open("ab") as handle:
            handle.write(b".")
        time.sleep(0.003)
        return answer(prompt, seed)

    extension = Extension(folder)
    if not polite:
        extension.run(generate, Limits(n=200))
        return
    with waiting_for_answers() as interrupted:
        extension.run(generate, Limits(n=200), stop_now=interrupted)


def kill_at_random(folder: Path, number: int, *, polite: bool) -> int:
    """Start the work and end it after a random time, so many times, then let it finish; gives the kills."""
    begin(folder)
    rng, context = random.Random(number), multiprocessing.get_context("fork")
    killed = 0
    for _ in range(number):
        process = context.Process(target=run_counted, args=(folder,), kwargs={"polite": polite})
        process.start()
        time.sleep(rng.uniform(0.0, 0.06))
        if process.is_alive() and process.pid:
            os.kill(process.pid, signal.SIGTERM if polite else signal.SIGKILL)
            killed += 1
        process.join()
    run_counted(folder, polite=False)
    return killed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("polite", [True, False], ids=["SIGTERM", "SIGKILL"])
def test_fifty_kills_at_random_points_change_no_dataset_and_repeat_no_stored_request(
    polite: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    unbroken = begin(tmp_path / "unbroken")
    needed = unbroken.run(answer, Limits(n=200)).requests
    killed = kill_at_random(tmp_path / "killed", 50, polite=polite)
    broken = Extension(tmp_path / "killed")
    sent = (tmp_path / "killed" / "sent").stat().st_size
    repeated = broken.transcript.count_repeated()
    # A polite kill waits for the answer under way; of a hard one that answer is asked for again, and counted.
    assert killed == 50
    assert sent == needed if polite else needed <= sent <= needed + repeated
    assert repeated == 0 if polite else repeated <= killed
    assert broken.transcript.read() == unbroken.transcript.read()
    strip = [
        {name: event[name] for name in event if name not in ("time", "hash", "previous")}
        for event in broken.log.read()
    ]
    assert strip == [
        {name: event[name] for name in event if name not in ("time", "hash", "previous")}
        for event in unbroken.log.read()
    ]
    assert verify_log(tmp_path / "killed" / "log.jsonl").whole


def test_a_stored_answer_or_task_that_was_changed_is_refused(tmp_path: Path) -> None:
    from felicity.stimuli.extension.prompts import Prompt
    from felicity.stimuli.extension.transcript import Transcript

    transcript = Transcript(tmp_path / "answers.jsonl")
    prompt = Prompt(number=1, text="More:", examples=("1",))
    transcript.note_sending(prompt)
    transcript.store(prompt, [ModelAnswer("A robin is a bird")], seed=1, parameters={"top_p": 0.9}, model={})
    assert transcript.read()[1]["answers"][0]["text"] == "A robin is a bird"
    transcript.path.write_text(transcript.path.read_text().replace("robin", "robim"))
    with pytest.raises(BadInput, match="line 1 was changed since it was stored"):
        transcript.read()
    extension = Extension(tmp_path / "folder")
    extension.begin(make_task())
    path = extension.folder / "task.json"
    path.write_text(path.read_text().replace('"seed": ', '"seed": 1'))
    with pytest.raises(BadInput, match="was changed since it was written"):
        extension.task()
