"""The chained log: every change is found, a torn line is cut, several writers keep one chain."""

import json
import multiprocessing
from pathlib import Path

import pytest

from felicity.core.errors import BadInput
from felicity.stimuli.review import Log, verify_log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A log of five events."""
    made = Log(tmp_path / "log.jsonl")
    for number in range(5):
        made.append("note", {"text": f"event {number}"})
    return made


def test_an_untouched_log_is_whole(log: Log) -> None:
    verdict = verify_log(log.path)
    assert (verdict.whole, verdict.lines) == (True, 5)
    assert verdict.last == log.read()[-1]["hash"]


@pytest.mark.parametrize("line", range(5))
def test_a_changed_line_is_found(log: Log, line: int) -> None:
    lines = log.path.read_text().splitlines()
    lines[line] = lines[line].replace("event", "Event")
    log.path.write_text("\n".join(lines) + "\n")
    verdict = verify_log(log.path)
    assert verdict.problem.startswith(f"line {line + 1}: changed")
    assert verdict.lines == line


@pytest.mark.parametrize("line", range(4))
def test_a_line_left_out_is_found_where_the_next_one_follows(log: Log, line: int) -> None:
    lines = log.path.read_text().splitlines()
    del lines[line]
    log.path.write_text("\n".join(lines) + "\n")
    assert f"line {line + 1}: does not follow" in verify_log(log.path).problem


def test_a_line_that_is_rewritten_with_its_own_hash_breaks_the_chain_behind_it(log: Log) -> None:
    from felicity.stimuli.review.log import hash_event

    lines = log.path.read_text().splitlines()
    event = json.loads(lines[1])
    event["text"] = "forged"
    event["hash"] = hash_event(event)
    lines[1] = json.dumps(event)
    log.path.write_text("\n".join(lines) + "\n")
    assert "line 3: does not follow" in verify_log(log.path).problem


def test_lines_cut_off_at_the_end_are_found_by_a_hash_noted_before(log: Log) -> None:
    last = verify_log(log.path).last
    lines = log.path.read_text().splitlines()
    log.path.write_text("\n".join(lines[:3]) + "\n")
    assert verify_log(log.path).whole
    assert "missing at the end" in verify_log(log.path, last=last).problem


def test_a_line_cut_short_by_a_kill_is_taken_off_by_the_next_writer(log: Log) -> None:
    content = log.path.read_bytes()
    log.path.write_bytes(content + content.splitlines()[-1][:40])
    assert "breaks off" in verify_log(log.path).problem
    again = Log(log.path)
    again.append("note", {"text": "after"})
    assert verify_log(log.path).whole
    assert [event["n"] for event in again.read()] == [1, 2, 3, 4, 5, 6]


def write_some(path: Path, name: str) -> None:
    log = Log(path)
    for number in range(20):
        log.append("note", {"text": f"{name} {number}"})


@pytest.mark.slow
def test_several_processes_keep_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_some, args=(path, name)) for name in ("ada", "bob", "cyd")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    verdict = verify_log(path)
    assert (verdict.whole, verdict.lines) == (True, 60)


def test_a_changed_line_is_refused_when_the_log_is_read(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl")
    log.append("propose", {"item": "1", "texts": ["A cat is a pet"]})
    log.append("accept", {"item": "1"})
    whole = log.path.read_text()
    assert len(Log(log.path).read()) == 2
    for changed in (
        whole.replace("a pet", "a bet"),
        "".join(whole.splitlines(keepends=True)[1:]),
        whole.replace('"n": 2', '"n": 3'),
        whole.replace("{", "[" * 20_000, 1),
    ):
        log.path.write_text(changed)
        with pytest.raises(BadInput, match=r"log\.jsonl, line \d: "):
            Log(log.path).read()
