"""felicity rate from the command line: a study made, simulated, exported, its platform ids forgotten."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import polars as pl
import pytest

from felicity.humans import Answer, Store, build_lists, build_rating_tables, read_rating_study
from felicity.report import decimal
from tests.humans.studies import make_study, write_study

Cli = Callable[..., object]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write_study(tmp_path / "study", more="[design]\nquota = 2\n")


def test_a_study_is_made_from_a_dataset_and_can_be_read(cli: Cli, tmp_path: Path) -> None:
    said = cli("rate", "new", tmp_path / "new", "--from", "starter", "--sample", 1)
    assert said.code == 0, said.err
    assert "in 2 lists of 48, 3 raters each" in said.out
    frame = pl.read_csv(tmp_path / "new" / "stimuli.csv")
    assert frame.columns[:3] == ["item", "condition", "text"]
    again = cli("rate", "new", tmp_path / "new", "--from", "starter")
    assert again.code == 2
    assert "exists already" in again.err


@pytest.mark.parametrize("role", ["filler", "practice"])
def test_fillers_and_practice_items_leave_a_latin_square_alone(cli: Cli, tmp_path: Path, role: str) -> None:
    table = tmp_path / "sentences.csv"
    rows = [f"{item},{one},The {one} {item}.,target" for item in "12" for one in ("cat", "dog")]
    table.write_text("\n".join(["item,condition,text,role", *rows, f"f,,A filler.,{role}"]) + "\n")
    told = cli("rate", "new", tmp_path / "square", "--from", table)
    assert "between raters" not in told.out
    study = read_rating_study(tmp_path / "square")
    assert study.design.between == ()
    for one in build_lists(study):
        shown = [study.stimuli[row] for row in one.rows if study.stimuli[row].role == "target"]
        assert sorted(stimulus.condition for stimulus in shown) == ["cat", "dog"]
    table.write_text("\n".join(["item,condition,text,role", *rows[:-1]]) + "\n")
    assert "condition between raters" in cli("rate", "new", tmp_path / "other", "--from", table).out


def test_a_scale_without_points_is_refused(cli: Cli, tmp_path: Path) -> None:
    told = cli("rate", "new", tmp_path / "new", "--from", "starter", "--points", 0)
    assert told.code == 2
    assert "--points" in told.err


def test_pairs_become_a_forced_choice(cli: Cli, tmp_path: Path) -> None:
    said = cli("rate", "new", tmp_path / "new", "--from", "starter", "--sample", 1, "--task", "choice")
    assert said.code == 0, said.err
    frame = pl.read_csv(tmp_path / "new" / "stimuli.csv")
    assert frame.height == 48
    assert (frame["text"] != frame["text_b"]).all()


def test_a_table_of_ones_own_keeps_its_columns(cli: Cli, tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("item,text,verb\n1,It rains.,rain\n2,It snows.,snow\n")
    said = cli("rate", "new", tmp_path / "new", "--from", table, "--points", 5)
    assert said.code == 0, said.err
    assert pl.read_csv(tmp_path / "new" / "stimuli.csv").columns == ["item", "text", "verb"]
    assert "points = 5" in (tmp_path / "new" / "study.toml").read_text()


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        (
            "item,text\n\n1,It rains.\n1,It snows.\n",
            (),
            "line 4: item '1' in condition '' is already on line 3",
        ),
        (
            'item,text,condition\n1,It rains.,"a, b"\n1,It snows.,"a, b"\n',
            (),
            "line 3: item '1' in condition 'a, b' is already on line 2;",
        ),
        ("item,text\n1,It rains.\n,,\n2,\n", (), "line 3: 3 cells"),
        ("item,text\n1,It rains.\n,\n2,\n", (), "line 4: item and text must not be empty"),
        ("item,text,role\n1,It rains.,filler\n", (), "has no row whose role is 'target'"),
        ("good,bad\nIt rains.,It rain.\n", ("--task", "maze"), "line 2: 2 words but 0 foils"),
    ],
)
def test_a_refusal_names_the_users_table_and_its_line(
    cli: Cli, tmp_path: Path, content: str, options: tuple[str, ...], told: str
) -> None:
    table = tmp_path / "mine.csv"
    table.write_text(content)
    said = cli("rate", "new", tmp_path / "new", "--from", table, *options)
    assert said.code == 2
    assert told in said.err
    assert str(table) in said.err
    assert "stimuli.csv" not in said.err


def test_a_refusal_of_a_dataset_names_the_item(cli: Cli, tmp_path: Path) -> None:
    said = cli("rate", "new", tmp_path / "new", "--from", "starter", "--sample", 1, "--task", "maze")
    assert said.err.startswith("starter, item '")


def test_a_run_becomes_a_study_of_what_it_scored(cli: Cli, tmp_path: Path, tiny_model: Path) -> None:
    run = tmp_path / "run"
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("good,bad\nIt rains.,It rain.\nShe sleeps.,She sleep.\n")
    said = cli("run", pairs, "-m", tiny_model, "-o", run, "-q")
    assert said.code == 0, said.err
    said = cli("rate", "new", tmp_path / "new", "--from", run)
    assert said.code == 0, said.err
    made = pl.read_csv(tmp_path / "new" / "stimuli.csv")
    assert sorted(made["text"]) == ["It rain.", "It rains.", "She sleep.", "She sleeps."]
    assert sorted(made["condition"]) == ["bad", "bad", "good", "good"]


@pytest.mark.data
def test_laus_sentences_come_with_contexts_between_raters_and_their_topic_check(
    cli: Cli, tmp_path: Path, published: Callable[[str], Path]
) -> None:
    published("lau2020/sentences")
    said = cli("rate", "new", tmp_path / "lau", "--from", "lau2020")
    assert "750 stimuli in 15 lists of 50" in said.out, said.err
    frame = pl.read_csv(tmp_path / "lau" / "stimuli.csv")
    assert frame["question"].null_count() == 0
    first = frame.row(0, named=True)
    assert first["correct"] in first["choices"].split(" | ")
    assert len(first["choices"].split(" | ")) == 4


def test_a_wrong_study_is_refused_with_its_line(cli: Cli, small: Path) -> None:
    path = small / "study.toml"
    path.write_text(path.read_text().replace("points = 5", "points = 50"))
    for command in ("status", "simulate"):
        said = cli("rate", command, small)
        assert said.code == 2
        assert "study.toml, line 16: 'task.points' is 50; it should be from 2 to 11." in said.err
    assert "There is no" in cli("rate", "status", small / "nothing").err


def test_a_new_timed_study_tells_raters_what_is_measured(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("item,text\n1,The man | left.\n2,A dog | slept.\n", encoding="utf-8")
    for task, told in (("reading", True), ("likert", False)):
        assert cli("rate", "new", tmp_path / task, "--from", tmp_path / "own.csv", "--task", task).code == 0
        study = read_rating_study(tmp_path / task)
        assert study.information is not None
        assert ("how often the screen is redrawn" in study.information.text) == told


def test_a_preview_is_written_as_one_file(cli: Cli, small: Path, tmp_path: Path) -> None:
    said = cli("rate", "preview", small, "--static", tmp_path / "p.html", "--trials", 2)
    assert said.code == 0, said.err
    # Consent, two trials and the completion code, at least.
    assert int(said.out.split()[0]) >= 4
    assert not (small / "answers.sqlite").exists()
    assert cli("rate", "preview", small, "--static", tmp_path / "p.txt").code == 2
    assert "add --static" in cli("rate", "preview", small, "--trials", 2).err


def test_simulated_raters_fill_every_list_and_leave_the_real_database_alone(cli: Cli, small: Path) -> None:
    said = cli("rate", "simulate", small, "--dropout", 0.4, "--seed", 3, "--json", "-q")
    told = json.loads(said.out)
    assert told["finished"] == 4
    assert told["left"] >= 1
    assert told["ratings"] == 16
    assert not (small / "answers.sqlite").exists()
    files = {path.name for path in (small / "simulation").iterdir()}
    assert {
        "ratings.csv",
        "ratings.parquet",
        "raters.csv",
        "design.csv",
        "codebook.md",
        "report.html",
    } <= files


def test_simulated_ratings_are_marked_wherever_they_go(cli: Cli, tiny_model: Path, tmp_path: Path) -> None:
    words = ("cat", "dog", "bird", "boy", "girl", "man")
    rows = [f"{place},The {word} annoys Tim." for place, word in enumerate(words)]
    (tmp_path / "own.csv").write_text("\n".join(["item,text", *rows]) + "\n")
    assert cli("rate", "new", tmp_path / "study", "--from", tmp_path / "own.csv").code == 0
    made = tmp_path / "study" / "simulation"
    assert cli("rate", "simulate", tmp_path / "study", "--effect", 3, "-q").code == 0
    # Also what is exported from the simulation's database.
    again = tmp_path / "again"
    database = f"sqlite:///{made / 'answers.sqlite'}"
    assert cli("rate", "export", tmp_path / "study", "--database", database, "-o", again).code == 0
    for folder in (made, again):
        for name in ("ratings", "raters", "design"):
            assert pl.read_csv(folder / f"{name}.csv")["simulated"].to_list()[0] is True
            assert pl.read_parquet(folder / f"{name}.parquet")["simulated"].all()
        assert pl.read_csv(folder / "ratings.csv")["rater"].str.starts_with("sim-").all()
        for page in ("codebook.md", "report.html"):
            assert "no person gave them" in (folder / page).read_text(encoding="utf-8"), page
        figures = list((folder / "figures").glob("*.svg"))
        assert figures
        assert all("simulated raters" in figure.read_text(encoding="utf-8") for figure in figures)
    out = tmp_path / "acceptability"
    said = cli("acceptability", made, "-m", tiny_model, "-o", out)
    assert said.code == 0, said.err
    assert "no person gave them" in said.err
    assert "no person gave them" in (out / "report.html").read_text(encoding="utf-8")
    said = cli("fit", "rating ~ 1 + (1|rater)", made / "ratings.csv")
    assert "no person gave them" in said.err


def test_ratings_of_people_carry_no_mark(small: Path) -> None:
    store = Store(read_rating_study(small))
    rater = store.enter(session="a word")
    assert not rater.startswith("sim-")
    assert "simulated" not in build_rating_tables(store, unfinished=True)["ratings"].columns
    store.close()


def test_simulated_raters_need_no_list_of_ids(cli: Cli, tmp_path: Path) -> None:
    more = '[platform]\nname = "prolific"\nids = "ids.txt"\nsigned = true\n[design]\nquota = 1\n'
    said = cli("rate", "simulate", write_study(tmp_path, more=more), "--json", "-q")
    assert json.loads(said.out)["finished"] == 2


def test_a_simulation_overwrites_nothing_but_a_simulation(cli: Cli, small: Path) -> None:
    said = cli("rate", "simulate", small, "-o", small, "-q")
    assert said.code == 2
    assert "contains something other" in said.err
    assert (small / "study.toml").exists()


def test_power_is_simulated_for_the_design_at_hand(cli: Cli, tmp_path: Path) -> None:
    study = write_study(tmp_path, items=8)
    said = cli("rate", "simulate", study, "--effect", 3, "--analyse", "--repeats", 5, "--json", "-q")
    assert json.loads(said.out)["power"]["power"] == 1.0
    assert "in 5 simulated studies" in json.loads(said.out)["power"]["sentence"]


def test_an_empty_study_has_a_status_and_an_export(cli: Cli, small: Path, tmp_path: Path) -> None:
    said = cli("rate", "status", small)
    assert "0 of 4 lists finished" in said.out
    assert json.loads(cli("rate", "status", small, "--json").out)["totals"]["drop_out"] is None
    said = cli("rate", "export", small, "-o", tmp_path / "out")
    assert said.code == 0, said.err
    assert "--family cumulative" in said.out
    assert pl.read_csv(tmp_path / "out" / "ratings.csv").is_empty()


def test_several_workers_need_postgresql(cli: Cli, small: Path) -> None:
    said = cli("rate", "serve", small, "--workers", 2)
    assert said.code == 2
    assert "PostgreSQL" in said.err


def test_forgetting_needs_to_be_confirmed(cli: Cli, small: Path) -> None:
    assert cli("rate", "forget", small).code == 2
    said = cli("rate", "forget", small, "--platform-ids")
    assert "the study is closed" in said.out


def test_ids_and_addresses_that_cannot_be_are_refused_in_a_sentence(cli: Cli, tmp_path: Path) -> None:
    study = write_study(tmp_path, more='[platform]\nname = "prolific"\nsigned = true\n')
    (tmp_path / "ids.txt").write_text("anna\n")
    for line, reason in (
        (("release", study, "--rater", "\udcff"), "is no id"),
        (("withdraw", study, "--rater", "\udcff"), "is no id"),
        (("withdraw", study, "--platform-id", "a b"), "is no id"),
        (("withdraw", study, "--platform-id", "anna"), "came with this id"),
        (("withdraw", study), "say whose answers"),
        (("release", study), "say which places"),
        (("links", study, tmp_path / "ids.txt", "-o", tmp_path / "x", "--url", "\udcff"), "no address"),
    ):
        said = cli("rate", *line)
        assert said.code == 2, line
        assert reason in said.err, said.err


def test_reopening_without_ratings_is_refused_in_a_sentence(cli: Cli, small: Path) -> None:
    said = cli("rate", "reopen", small, "--below", 0.4)
    assert said.code == 2
    assert "nobody can be compared" in said.err


def test_who_disagrees_with_the_others_is_set_aside_and_the_place_opened(cli: Cli, tmp_path: Path) -> None:
    study = make_study(tmp_path, items=6, more='[design]\nlists = "all"\nquota = 4\n')
    store = Store(study)
    for turn in range(4):
        rater = store.enter()
        while (step := store.find_position(rater).step) is not None:
            place = store.find_position(rater)
            value = 1.0 + step.stimulus(study).row % 5
            given = 6.0 - value if turn == 3 else value
            store.record(rater, place.slot, place.position, "k", Answer(value=given), shown=0)
    assert store.has_room() == "full"
    would = cli("rate", "reopen", tmp_path, "--below", 0.4, "--dry-run")
    assert "1 of 4 raters would be set aside" in would.out, would.err
    assert store.has_room() == "full"
    said = json.loads(cli("rate", "reopen", tmp_path, "--below", 0.4, "--json").out)
    assert [row["rater"] for row in said["raters"] if not row["kept"]] == [rater]
    assert store.has_room() is None
    assert rater not in set(build_rating_tables(store)["ratings"]["rater"])
    # Nobody is set aside twice, and a rater is not lost: the next comparison is among everybody again.
    assert json.loads(cli("rate", "reopen", tmp_path, "--below", 0.4, "--json").out)["changed"] == 0


@pytest.mark.slow
def test_the_server_prints_its_links_and_goes_on_after_an_interrupt(small: Path) -> None:
    command = [sys.executable, "-m", "felicity", "rate", "serve", str(small), "--port", "0"]
    for _ in range(2):
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert server.stdout is not None
        raters, researcher = server.stdout.readline(), server.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", raters)
        assert found is not None
        assert "How natural" not in httpx.get(found[0], verify=False).text
        page = researcher.split(": ", 1)[1].strip()
        assert httpx.get(page, verify=False).status_code == 303
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=60)
        assert "Traceback" not in said


@pytest.mark.slow
def test_a_token_from_the_environment_is_not_printed(small: Path) -> None:
    command = [sys.executable, "-m", "felicity", "rate", "serve", str(small), "--port", "0"]
    server = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"FELICITY_TOKEN": "the-secret-token"},
    )
    assert server.stdout is not None
    lines = [server.stdout.readline(), server.stdout.readline()]
    page = lines[1].split(": ", 1)[1].strip()
    assert page.endswith("/researcher?token=...")
    assert httpx.get(page.replace("...", "the-secret-token"), verify=False).status_code == 303
    assert httpx.get(page, verify=False).status_code == 403
    server.send_signal(signal.SIGINT)
    out, said = server.communicate(timeout=60)
    assert "the-secret-token" not in "".join([*lines, out, said])


def test_a_study_that_is_refused_does_not_stay_in_the_way(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("item,text\n1,He left.\n1,She left.\n", encoding="utf-8")
    refused = cli("rate", "new", tmp_path / "new", "--from", tmp_path / "own.csv")
    assert refused.code == 2
    assert "item '1'" in refused.err
    assert not list((tmp_path / "new").iterdir())
    (tmp_path / "own.csv").write_text("item,text\n1,He left.\n2,She left.\n", encoding="utf-8")
    assert cli("rate", "new", tmp_path / "new", "--from", tmp_path / "own.csv").code == 0


def test_a_table_with_other_columns_is_refused_with_those_it_needs(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("foo,bar\na,b\n", encoding="utf-8")
    refused = cli("rate", "new", tmp_path / "new", "--from", tmp_path / "own.csv")
    assert refused.code == 2
    assert "needs the columns item and text, or good and bad" in refused.err
    assert not (tmp_path / "new").exists()


def test_a_sample_of_a_table_of_stimuli_is_refused_not_ignored(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("item,text\n1,He left.\n2,She left.\n", encoding="utf-8")
    refused = cli("rate", "new", tmp_path / "new", "--from", tmp_path / "own.csv", "--sample", 1)
    assert refused.code == 2
    assert "leave out --sample" in refused.err


def test_ratings_are_not_cleaned_unasked_and_have_the_ceilings_of_their_own_report(
    cli: Cli, tmp_path: Path, tiny_model: Path
) -> None:
    table = tmp_path / "sentences.csv"
    rows = [
        f"{item},{kind},The {kind} {word} sleeps."
        for item, word in enumerate(("cat", "dog", "cow", "fox"))
        for kind in ("old", "new")
    ]
    table.write_text("\n".join(["item,condition,text", *rows]) + "\n")
    new = cli("rate", "new", tmp_path / "study", "--from", table, "--points", 7)
    assert new.code == 0, new.err
    simulated = cli("rate", "simulate", tmp_path / "study", "--raters", 12, "--bias", 2, "-q")
    assert simulated.code == 0, simulated.err
    export = next(path.parent for path in (tmp_path / "study").rglob("ratings.csv"))
    command = ("acceptability", export, "-m", tiny_model, "--measure", "lp")
    plain = cli(*command, "-o", tmp_path / "plain")
    assert plain.code == 0, plain.err
    assert "The ratings are raw and were not cleaned (--clean lau2020 cleans them)." in plain.err
    given = pl.read_csv(export / "ratings.csv").filter(pl.col("role") == "target")
    means = given.group_by("item", "condition").agg(pl.col("rating").mean())
    kept = pl.read_csv(tmp_path / "plain" / "ratings.csv")
    assert sorted(kept["rating"]) == pytest.approx(sorted(means["rating"]))
    page = (export / "report.html").read_text(encoding="utf-8")
    for row in pl.read_csv(tmp_path / "plain" / "ceilings.csv").iter_rows(named=True):
        assert decimal(row["r"], 3) in page, row
    cleaned = cli(*command, "-o", tmp_path / "cleaned", "--clean", "lau2020", "--scale", "1:7")
    assert cleaned.code == 0, cleaned.err
    steps = pl.read_csv(tmp_path / "cleaned" / "cleaning.csv")
    assert steps["step"].to_list() == ["raters shifted by 2", "ratings beyond 2 SD of their item"]
    assert steps["ratings_changed"][0] > 0
    for step, changed, dropped in steps.select("step", "ratings_changed", "ratings_dropped").iter_rows():
        said = next(line for line in cleaned.err.splitlines() if step in line)
        assert said.startswith("Note: Cleaned as Lau et al. (2020), scale 1 to 7")
        assert f"{dropped} of " in said
        assert f"{changed} changed." in said
    assert pl.read_csv(tmp_path / "cleaned" / "distribution.csv")["n"].sum() == 8
    assert cli(*command, "-o", tmp_path / "x", "--clean", "lau").code == 2


@pytest.mark.data
def test_ratings_without_rater_ids_are_not_cleaned(cli: Cli, tmp_path: Path) -> None:
    assert "no rater ids" in cli("acceptability", "lau2020", "--clean", "lau2020", "-o", tmp_path / "x").err
