import json
from pathlib import Path

import pytest

from felicity.core.errors import BadInput
from felicity.humans import Unanswered, read_answer, read_rating_study
from felicity.humans.interface import INTERFACES, read_interface
from felicity.humans.tasks import normalise_text
from tests.humans.studies import TASKS, make_study, stimulus_rows, write_study


@pytest.mark.parametrize("task", TASKS)
def test_a_study_of_every_task_is_read(tmp_path: Path, task: str) -> None:
    study = make_study(tmp_path, task)
    assert study.task.kind == task
    assert len(study.stimuli) == 8


# The text that is replaced, what replaces it, the line and the reason that must be named.
WRONG = [
    ('title = "Sentence ratings"', "", 1, "'study.title' is missing"),
    ("seed = 7", 'seed = "seven"', 4, "'study.seed' is not a whole number"),
    ("seed = 7", "sead = 7", 4, "'study.sead' is not a known field"),
    ('language = "en"', 'language = "sw"', 3, "felicity has no interface"),
    ("points = 5", "points = 1", 16, "from 2 to 11"),
    ('labels = ["bad", "good"]', 'labels = ["bad", "fair", "good"]', 17, "3 texts for 5 points"),
    ('labels = ["bad", "good"]', 'labels = ["bad", "bad"]', 17, "the same text twice"),
    ('kind = "likert"', 'kind = "lickert"', 14, "one of likert"),
    ("points = 5", "options = 5", 16, "'task.options' is not a known field"),
    ('file = "stimuli.csv"', 'file = "other.csv"', 11, "which does not exist"),
    ('agree = "I agree to take part."', "", 6, "'consent.agree' is missing"),
    ("[consent]", "[consent", 6, "not TOML"),
]


@pytest.mark.parametrize(("old", "new", "line", "reason"), WRONG)
def test_a_wrong_study_file_is_refused_with_line_and_reason(
    tmp_path: Path, old: str, new: str, line: int, reason: str
) -> None:
    path = write_study(tmp_path) / "study.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(BadInput) as refused:
        read_rating_study(tmp_path)
    assert f"study.toml, line {line}:" in str(refused.value)
    assert reason in str(refused.value)


def test_sections_added_by_the_user_are_checked_too(tmp_path: Path) -> None:
    wrong = {
        '[[demographics]]\nname = "age"\nquestion = "Age?"\nkind = "number"\nbins = [30, 20]\n': "ascending",
        '[[demographics]]\nname = "sex"\nquestion = "?"\nchoices = ["one"]\n': "two choices",
        '[quiz]\n[[quiz.questions]]\nquestion = "?"\nchoices = ["a", "b"]\ncorrect = "c"\n': "not one of the",
        '[platform]\nname = "other"\n': "name its URL parameter",
        '[platform]\nname = "prolific"\ncompletion_url = "javascript:alert(1)"\n': "not an https",
        '[design]\nbetween = ["verb"]\n': "not a column of the stimuli",
        '[design]\nlists = "column"\n': "no column 'list'",
        "[screening]\nmost_failed_checks = -1\n": "from 0",
        '[interface]\ncontinu = "Go"\n': "not a known field",
    }
    for more, reason in wrong.items():
        with pytest.raises(BadInput, match=reason):
            make_study(tmp_path, more=more)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (
            '[interface]\nprogress = "{done} of {all}"',
            r"'interface.progress' has the placeholder '{all}'; it may",
        ),
        ('[interface]\nprogress = "{done} of {}"', r"placeholder '{}'; it may have {done} and {total}"),
        ('[interface]\nprogress = "{done.real} of {total}"', "placeholder '{done.real}'"),
        ('[interface]\nprogress = "{done:>9999}"', "placeholder '{done}'"),
        ('[interface]\nkeys_choose = "1 to {n"', "has a single brace"),
        (
            '[interface]\nnumber_between = "from {low} to {n}"',
            "placeholder '{n}'; it may have {high} and {low}",
        ),
        (f'[platform]\ncompletion_code = "{"C" * 65}"', "at most 64 printable characters; it has 65"),
        ('[platform]\ncompletion_code = "C\\u0000"', "printable"),
        ('[design]\nlists = "column"', "the list on line 2 of the stimuli has a name of 70 characters"),
        ("[platform]\nsigned = true", "needs a platform"),
        ('[platform]\nids = "ids.txt"', "needs a platform"),
        ('[platform]\nname = "sona"\nrequired = false\nids = "ids.txt"', "needs a platform"),
    ],
)
def test_what_would_fail_when_a_rater_comes_is_refused_before(tmp_path: Path, more: str, reason: str) -> None:
    rows = [row | {"list": "l" * 70} for row in stimulus_rows("likert")]
    with pytest.raises(BadInput, match=reason):
        make_study(tmp_path, rows=rows, more=more)


def test_braces_may_stand_where_nothing_is_filled_in(tmp_path: Path) -> None:
    more = '[interface]\nthanks = "Thank you {all}"\nprogress = "{{{done}}} / {total}"\n'
    study = make_study(tmp_path, more=more)
    assert study.interface["thanks"] == "Thank you {all}"
    assert study.interface["progress"].format(done=1, total=2) == "{1} / 2"


def test_times_of_places_follow_from_the_lease(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    assert (study.start_minutes, study.lease_minutes, study.longest_minutes) == (10, 30, 180)
    assert study.places_per_address == 40
    study = make_study(tmp_path, study="lease_minutes = 5\n")
    assert (study.start_minutes, study.lease_minutes, study.longest_minutes) == (5, 5, 30)
    with pytest.raises(BadInput, match="'study.start_minutes' is 40; it should be from 1 to 30"):
        make_study(tmp_path, study="start_minutes = 40\n")
    with pytest.raises(BadInput, match="'study.longest_minutes' is 20; it should be from 30"):
        make_study(tmp_path, study="longest_minutes = 20\n")


def test_wrong_stimuli_are_refused_with_their_line(tmp_path: Path) -> None:
    rows = stimulus_rows("likert")
    cases = [
        ("likert", [*rows, {"item": "9", "condition": "a", "text": ""}], "line 10: item and text"),
        ("likert", [*rows, rows[0]], "line 10: item '0' in condition 'a' is already on line 2"),
        ("likert", [{**rows[0], "role": "fillers"}], "line 2: role is 'fillers'"),
        ("likert", [{**rows[0], "role": "filler"}], "nothing to rate"),
        ("likert", [{**rows[0], "question": "Who?", "choices": "a|b", "correct": "c"}], "line 2: a question"),
        ("likert", [{**rows[0], "role": "check"}], "line 2: a check needs"),
        ("likert", [{**rows[0], "answer": "6"}], "line 2: the expected answer '6'"),
        ("cloze", rows, "line 2: a cloze text needs exactly one blank"),
        ("choice", rows, "line 2: a forced choice needs"),
        ("maze", [{**rows[0], "foils": "x-x-x a"}], "line 2: 7 words but 2 foils"),
    ]
    for task, table, reason in cases:
        with pytest.raises(BadInput, match=reason):
            make_study(tmp_path, task, rows=table)


def test_every_interface_has_the_same_strings_and_slots() -> None:
    english = read_interface("en")
    for language in INTERFACES:
        own = read_interface(language)
        assert own.keys() == english.keys()
        for name, text in english.items():
            assert {part for part in ("{n}", "{low}", "{high}", "{done}", "{total}") if part in text} == {
                part for part in ("{n}", "{low}", "{high}", "{done}", "{total}") if part in own[name]
            }


def test_every_interface_names_the_button_that_returns_a_study() -> None:
    # The platforms' own pages are in English, so raters look for this word (Prolific: "Return").
    for language in INTERFACES:
        own = read_interface(language)
        for name in ("expired_text", "screened_text", "withdrawn_text"):
            assert "Return" in own[name], (language, name)


def test_an_arabic_study_runs_right_to_left_with_its_own_interface(tmp_path: Path) -> None:
    study = make_study(tmp_path, language="ar")
    assert study.direction == "rtl"
    assert study.interface["continue"] == "متابعة"


def test_an_arabic_study_runs_right_to_left_with_another_interface(tmp_path: Path) -> None:
    study = make_study(
        tmp_path, language="ar", study='interface = "fr"\n', more='[interface]\nback = "رجوع"\n'
    )
    assert study.direction == "rtl"
    assert study.interface["back"] == "رجوع"
    assert study.interface["continue"] == "Continuer"


@pytest.mark.parametrize(
    ("task", "given", "value"),
    [
        ("likert", "5", 5),
        ("likert", "6", None),
        ("likert", "", None),
        ("likert", "1; DROP TABLE answers", None),
        ("likert", "٣", None),
        ("binary", "1", 1),
        ("binary", "0", 0),
        ("binary", "yes", 1),
        ("binary", "2", None),
        ("choice", "a", 1),
        ("choice", "b", 0),
        ("choice", "c", None),
        ("slider", "0", 0),
        ("slider", "50.5", 50.5),
        ("slider", "101", None),
        ("slider", "", None),
        ("magnitude", "2,5", 2.5),
        ("magnitude", "1e5", None),
        ("magnitude", "0", None),
        ("magnitude", "-3", None),
        ("magnitude", "nan", None),
    ],
)
def test_an_answer_is_a_value_of_the_scale_or_refused(
    tmp_path: Path, task: str, given: str, value: float | None
) -> None:
    study = make_study(tmp_path, task)
    form = {"answer": given, "script": "1", "rt": "1234.5"}
    if value is None:
        with pytest.raises(Unanswered):
            read_answer(study.task, study.stimuli[0], form, flipped=False)
        return
    answer = read_answer(study.task, study.stimuli[0], form, flipped=False)
    assert answer.value == value
    assert answer.rt_ms == 1234.5
    assert answer.flags == ()


def test_pasted_and_untyped_texts_are_flagged_and_kept(tmp_path: Path) -> None:
    study = make_study(tmp_path, "cloze")
    form = {"answer": " Sleeps, I think. ", "script": "1", "rt": "5000", "typed": "16"}
    answer = read_answer(study.task, study.stimuli[0], form, flipped=False)
    assert (answer.raw, answer.normalised, answer.flags) == (" Sleeps, I think. ", "sleeps, i think", ())
    pasted = read_answer(study.task, study.stimuli[0], {**form, "pasted": "1"}, flipped=False)
    assert pasted.flags == ("pasted",)
    untyped = read_answer(study.task, study.stimuli[0], {**form, "typed": "1"}, flipped=False)
    assert untyped.flags == ("not_typed",)
    for empty in ("  ", "...", "x" * 61):
        with pytest.raises(Unanswered):
            read_answer(study.task, study.stimuli[0], {"answer": empty}, flipped=False)


def test_normalised_texts_are_compared_without_case_width_and_punctuation() -> None:
    assert normalise_text("«Ｔｈｅ  Dog!»") == "the dog"
    assert normalise_text("it's") == "it's"
    assert normalise_text("...") == "..."


def test_word_times_must_be_there_for_every_word(tmp_path: Path) -> None:
    study = make_study(tmp_path, "reading")
    words = study.stimuli[0].text.split()
    times = "[" + ",".join('{"ms": 312.4, "correct": true}' for _ in words) + "]"
    answer = read_answer(study.task, study.stimuli[0], {"times": times, "script": "1"}, flipped=False)
    assert answer.detail["ms"] == [312.4] * len(words)
    assert answer.rt_ms == pytest.approx(312.4 * len(words))
    deep, digits, flag = "[" * 20_000, times.replace("312.4", "9" * 400), times.replace("312.4", "true")
    short = '[{"ms": 1, "correct": true}]'
    for wrong in ("", "[]", short, times.replace("312.4", "-1"), "{}", deep, digits, flag, "9" * 5000):
        with pytest.raises(Unanswered):
            read_answer(study.task, study.stimuli[0], {"times": wrong}, flipped=False)


@pytest.mark.parametrize(
    ("sent", "frames"),
    [
        ("", None),
        ('{"frames": "many"}', None),
        ("[1]", None),
        ('{"frames": 90, "hz": 60, "dropped": -1}', {"frames": 90.0, "hz": 60.0, "dropped": None}),
    ],
)
def test_what_a_browser_says_about_its_screen_is_kept_if_it_makes_sense(
    tmp_path: Path, sent: str, frames: dict[str, float | None] | None
) -> None:
    study = make_study(tmp_path, "reading")
    times = json.dumps([{"ms": 300, "correct": True}] * 7)
    form = {"times": times, "frames": sent, "script": "1"}
    stored = read_answer(study.task, study.stimuli[0], form, flipped=False).detail.get("frames")
    assert stored == (frames and frames | {"longest_ms": None, "clock_ms": None})


def test_a_maze_may_end_at_the_first_error_only(tmp_path: Path) -> None:
    study = make_study(tmp_path, "maze")
    good, bad = '{"ms": 400, "correct": true}', '{"ms": 700, "correct": false}'
    stopped = read_answer(study.task, study.stimuli[0], {"times": f"[{good},{bad}]"}, flipped=False)
    assert stopped.correct is False
    assert stopped.detail["correct"] == [True, False]
    with pytest.raises(Unanswered):
        read_answer(study.task, study.stimuli[0], {"times": f"[{good},{good}]"}, flipped=False)
