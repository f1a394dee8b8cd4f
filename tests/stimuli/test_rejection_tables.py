"""The paper's two rejection tables, exactly, from transcripts with its shares of each fault."""

from collections.abc import Callable
from pathlib import Path

import pytest

from felicity.stimuli.extension import FORMS, Extension, ExtensionTask, Limits, ModelAnswer
from felicity.stimuli.review import PAPER_ROWS, Queue, tabulate_rejections, verify_log
from tests.stimuli.paper_transcripts import build_negation, build_roles

# Appendix B.1 and B.2, in percent of all generated sentences.
NEGATION = {
    "duplicates": 62.5,
    "empty lines": 15.0,
    "only negated sentences": 8.75,
    "others": 1.25,
    "rejected": 87.5,
    "generated": 100.0,
}
ROLES = {
    "duplicates": 32.5,
    "no pair, or simple sentences": 14.3,
    "empty lines": 8.5,
    "semantically wrong, or a wrong reversal": 7.4,
    "repeated instructions or partial sentences": 5.3,
    "generated": 100.0,
}
SEEDS = {
    "negation": [
        ["1", "A robin is a bird", "A robin is not a tree"],
        ["2", "An oak is a tree", "An oak is not a bird"],
    ],
    "role": [["1", "the cook saw which boy the girl had met", "the cook saw which girl the boy had hit"]],
}


def review_transcript(folder: Path, form: str, build: Callable[[], tuple[list[str], set[str]]]) -> Extension:
    """Put the answers through the rules, and the rest through the queue."""
    answers, wrong = build()
    extension = Extension(folder)
    extension.begin(
        ExtensionTask(
            dataset=form,
            form=form,
            instruction=FORMS[form].instruction,
            k=1,
            seed=0,
            parameters={"tokens": 100},
            model={"name": "transcript"},
            seeds=SEEDS[form],
        )
    )
    limits = Limits(n=10**9, least_yield=-1.0, most=len(answers))
    extension.run(lambda _, seed: [ModelAnswer(answers[seed - 1])], limits)
    queue = Queue(extension.log)
    for item, proposal in list(queue.state.proposals.items()):
        if proposal.texts[0] in wrong:
            queue.decide(item, "reject", reviewer="first", reason="semantic")
        else:
            queue.decide(item, "accept", reviewer="first")
    return extension


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "build", "published", "places", "sentences"),
    [("negation", build_negation, NEGATION, 2, 12_000), ("role", build_roles, ROLES, 1, 4_700)],
)
def test_a_transcript_with_the_papers_faults_gives_its_rejection_table(
    form: str,
    build: Callable[[], tuple[list[str], set[str]]],
    published: dict[str, float],
    places: int,
    sentences: int,
    tmp_path: Path,
) -> None:
    extension = review_transcript(tmp_path / form, form, build)
    state = extension.state()
    table = tabulate_rejections(state, PAPER_ROWS[form])
    percent = dict(table.select("category", "percent").iter_rows())
    assert {name: round(percent[name], places) for name in published} == published
    counts = dict(table.select("category", "sentences").iter_rows())
    assert counts["generated"] == sentences
    assert counts["accepted"] == 1_500
    assert len(state.accepted) == 750
    assert verify_log(extension.folder / "log.jsonl").whole
