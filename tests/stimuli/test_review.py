"""The queue: decisions made once, undo, second readings, and a dataset that is a replay of the log."""

import threading
from pathlib import Path

import pytest

from felicity.core.errors import BadInput, NotPossible
from felicity.stats import cohen_kappa
from felicity.stimuli.review import Decided, Log, Queue, balance_targets, list_second_readings, replay_log

PAIRS = 40


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    """A queue of forty pairs."""
    log = Log(tmp_path / "log.jsonl")
    log.append_all(
        [
            (
                "propose",
                {
                    "request": 1,
                    "item": f"1.1.{number}",
                    "texts": [f"A thing{number} is a tool", f"A thing{number} is not a bird"],
                    "flags": [],
                },
            )
            for number in range(PAIRS)
        ]
    )
    return Queue(log)


def take(queue: Queue, reviewer: str) -> str:
    shown = queue.show_next(reviewer)
    assert shown is not None
    return shown.proposal.item


def test_the_dataset_is_a_replay_of_the_log(queue: Queue) -> None:
    queue.decide(take(queue, "ada"), "accept", reviewer="ada")
    queue.decide(take(queue, "ada"), "reject", reviewer="ada", reason="semantic")
    texts = ["A wug is a tool", "A wug is not a bird,"]
    queue.decide(take(queue, "ada"), "edit", reviewer="ada", texts=texts)
    accepted = replay_log(Log(queue.log.path).read()).accepted
    assert [pair.sentences for pair in accepted] == [
        ("A thing0 is a tool", "A thing0 is not a bird"),
        ("A wug is a tool", "A wug is not a bird"),
    ]
    assert accepted == queue.state.accepted


def test_undo_takes_back_the_last_decision_and_shows_its_pair_again(queue: Queue) -> None:
    first = take(queue, "ada")
    queue.decide(first, "accept", reviewer="ada")
    second = take(queue, "ada")
    queue.decide(second, "accept", reviewer="ada")
    assert queue.undo("ada").item == second
    assert take(queue, "ada") == second
    assert queue.undo("ada").item == first
    assert queue.state.accepted == []
    with pytest.raises(NotPossible, match="no decision to undo"):
        queue.undo("ada")


def test_a_reviewer_undoes_only_their_own(queue: Queue) -> None:
    queue.decide(take(queue, "ada"), "accept", reviewer="ada")
    with pytest.raises(NotPossible):
        queue.undo("bob")


def test_two_people_are_not_shown_the_same_pair(queue: Queue) -> None:
    assert take(queue, "ada") != take(queue, "bob")
    assert take(queue, "ada") == take(queue, "ada")


def test_a_lease_runs_out(tmp_path: Path, queue: Queue) -> None:
    now = [0.0]
    timed = Queue(queue.log, clock=lambda: now[0])
    item = take(timed, "ada")
    assert take(timed, "bob") != item
    now[0] = 10_000.0
    assert take(timed, "cyd") == item


def test_a_decision_is_refused_the_second_time_even_from_another_process(queue: Queue) -> None:
    elsewhere = Queue(Log(queue.log.path))
    item = take(queue, "ada")
    assert take(elsewhere, "bob") == item
    queue.decide(item, "accept", reviewer="ada")
    with pytest.raises(Decided, match="ada has decided"):
        elsewhere.decide(item, "reject", reviewer="bob", reason="other")


def test_two_reviewers_at_once_never_decide_the_same_pair_twice(queue: Queue) -> None:
    """Each on a queue of their own over the same file, as two processes would be."""
    refused: list[str] = []

    def work(name: str) -> None:
        own = Queue(Log(queue.log.path))
        while True:
            shown = own.show_next(name)
            if shown is None:
                return
            try:
                own.decide(shown.proposal.item, "accept", reviewer=name)
            except Decided:
                refused.append(shown.proposal.item)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ada", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    decided = [event["item"] for event in Log(queue.log.path).read() if event["event"] == "accept"]
    assert sorted(decided) == sorted(set(decided))
    assert len(decided) == PAIRS


def test_a_rejection_needs_a_reason_and_an_edit_two_sentences(queue: Queue) -> None:
    item = take(queue, "ada")
    with pytest.raises(BadInput, match="needs a reason"):
        queue.decide(item, "reject", reviewer="ada", reason=" ")
    with pytest.raises(BadInput, match="both sentences"):
        queue.decide(item, "edit", reviewer="ada", texts=["A wug is a tool", ""])
    with pytest.raises(BadInput, match="no pair 'nobody'"):
        queue.decide("nobody", "accept", reviewer="ada")


def test_a_second_reader_gives_cohens_kappa(queue: Queue) -> None:
    """Hand-worked: 20 agree on accept, 10 on reject, 5 and 5 apart: (.75 - .53125) / (1 - .53125)."""
    queue.ask_second(1.0)
    for number in range(PAIRS):
        accept = number < 25
        queue.decide(f"1.1.{number}", "accept" if accept else "reject", reviewer="ada", reason="other")
    assert queue.show_next("ada") is None
    while (shown := queue.show_next("bob")) is not None:
        number = int(shown.proposal.item.rpartition(".")[2])
        accept = number < 20 or number >= 35
        action = "accept" if accept else "reject"
        queue.decide(shown.proposal.item, action, reviewer="bob", round=shown.round, reason="other")
    both = list_second_readings(queue.state)
    assert both.height == PAIRS
    kappa = cohen_kappa(both["first"], both["second"])["kappa"][0]
    assert kappa == pytest.approx((0.75 - 0.53125) / (1 - 0.53125))
    assert len(queue.state.accepted) == 25


def test_a_share_is_read_a_second_time_always_the_same_one(queue: Queue) -> None:
    queue.ask_second(0.25)
    chosen = [item for item in queue.state.proposals if queue.state.in_second(item)]
    assert 4 <= len(chosen) <= 16
    assert chosen == [item for item in queue.state.proposals if Queue(queue.log).state.in_second(item)]


def test_the_balance_of_targets_counts_what_is_accepted(queue: Queue) -> None:
    for number in range(3):
        queue.decide(f"1.1.{number}", "accept", reviewer="ada")
    assert balance_targets(queue.state).rows() == [("bird", 0, 3, 3), ("tool", 3, 0, 3)]
