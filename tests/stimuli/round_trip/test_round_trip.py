"""Round trips: Apertium itself, any command, a model that is handed in; contexts and balanced samples."""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.humans import Population, read_rating_study, send_raters
from felicity.humans.tables import answers, raters
from felicity.stimuli.round_trip import (
    Original,
    Route,
    Translator,
    balance_sources,
    build_rating_stimuli,
    degrade_sentences,
    open_apertium,
    open_command,
    parse_routes,
    read_documents,
    read_originals,
    translate_by_prompt,
)
from tests.web.sites import open_site

needs_apertium = pytest.mark.skipif(shutil.which("apertium") is None, reason="Debian's apertium is not here")
SENTENCES = ["she resigned in august to finish her law studies.", "the dog was soon dropped to the bench."]


def say(texts: Sequence[str], source: str, target: str) -> list[str]:
    """A translator that writes down where a text went, except that `same` never changes."""
    return [text if text == "same" else f"{text} {source}{target}" for text in texts]


PLAIN = Translator("plain", "1", say)


def write_documents(path: Path, *, documents: int = 6, sentences: int = 8) -> Path:
    lines = [
        "\t".join(
            f"document {d} has the sentence {s} with {'more ' * (s % 4)}words." for s in range(sentences)
        )
        for d in range(documents)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@needs_apertium
def test_apertium_goes_to_spanish_and_back() -> None:
    originals = [Original(f"s{k}", text) for k, text in enumerate(SENTENCES)]
    translator = open_apertium(["spa"])
    found = degrade_sentences(originals, [Route("spa")], translator, lower=True)
    assert set(found.texts["spa"]) == {"s0", "s1"}
    back = found.texts["spa"]["s0"]
    assert back != SENTENCES[0]
    # Most words survive the way there and back.
    assert len(set(back.split()) & set(SENTENCES[0].split())) >= 3
    assert "apertium-eng-spa" in translator.version


@needs_apertium
def test_a_language_that_apertium_has_not_is_refused() -> None:
    with pytest.raises(NotPossible, match="no translation from 'en' to 'xyz' here; install"):
        open_apertium(["xyz"])


def test_without_apertium_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotPossible, match="install Debian's apertium"):
        open_apertium(["spa"])


def test_routes_have_trips_and_stops() -> None:
    assert [route.name for route in parse_routes("spa, cat+gl")] == ["spa", "cat+gl"]
    assert Route("spa+cat").hops("en") == [("en", "spa"), ("spa", "en"), ("en", "cat"), ("cat", "en")]
    assert Route("spa-cat").hops("en") == [("en", "spa"), ("spa", "cat"), ("cat", "en")]
    for wrong in ("", "spa,", "spa+", "-cat"):
        with pytest.raises(BadInput, match="not a list of routes"):
            parse_routes(wrong)
    with pytest.raises(BadInput, match="given twice"):
        parse_routes("spa,spa")


def test_unchanged_and_empty_sentences_are_dropped_and_counted() -> None:
    originals = [Original("a", "same"), Original("b", "Other."), Original("c", "Gone.")]
    translator = Translator(
        "odd",
        "",
        lambda texts, a, b: [
            "" if one == "Gone." or not one else two for one, two in zip(texts, say(texts, a, b), strict=True)
        ],
    )
    found = degrade_sentences(originals, [Route("x")], translator)
    assert found.texts == {"x": {"b": "Other. enx xen"}}
    assert found.unchanged == {"x": 1}
    assert found.empty == {"x": 1}


def test_a_command_translates_line_by_line(tmp_path: Path) -> None:
    script = tmp_path / "upper.py"
    script.write_text("import sys\nfor line in sys.stdin: print(sys.argv[2] + ' ' + line.strip().upper())\n")
    translator = open_command(f"{sys.executable} {script} {{source}} {{target}}")
    assert translator.translate(["one", "two"], "en", "de") == ["de ONE", "de TWO"]
    script.write_text("print('only one line')\n")
    with pytest.raises(FelicityError, match="gave 1 lines for 2 sentences"):
        translator.translate(["one", "two"], "en", "de")
    script.write_text("import sys\nsys.exit('no such language')\n")
    with pytest.raises(FelicityError, match="failed: no such language"):
        translator.translate(["one"], "en", "de")


def test_a_command_must_name_the_target_and_exist() -> None:
    with pytest.raises(BadInput, match="lacks {target}"):
        open_command("translate")
    with pytest.raises(BadInput, match="no program 'no-such-program'"):
        open_command("no-such-program {source} {target}")


def test_a_model_is_asked_sentence_by_sentence() -> None:
    asked: list[tuple[str, int]] = []

    def generate(prompt: str, tokens: int) -> str:
        asked.append((prompt, tokens))
        return " eine Antwort "

    translator = translate_by_prompt(generate, name="model")
    assert translator.translate(["a b", "c"], "English", "German") == ["eine Antwort", "eine Antwort"]
    assert asked[0] == ("Translate the sentence from English into German.\nEnglish: a b\nGerman:", 48)


def test_contexts_are_three_sentences_before_and_three_of_another_document(tmp_path: Path) -> None:
    found = read_documents(write_documents(tmp_path / "d.txt"), n=6, seed=3)
    assert len({one.item.split("-")[0] for one in found}) == 6  # one of every document first
    for one in found:
        own = one.text.split()[1]
        assert [sentence.split()[1] for sentence in one.real.split(". ")] == [own] * 3
        at = int(one.text.split()[5])
        assert f"the sentence {at - 1} " in one.real
        others = {sentence.split()[1] for sentence in one.unrelated.split(". ")}
        assert len(others) == 1
        assert own not in others
    assert found == read_documents(tmp_path / "d.txt", n=6, seed=3)
    assert found != read_documents(tmp_path / "d.txt", n=6, seed=4)


def test_too_few_documents_or_sentences_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="at least two are needed"):
        read_documents(write_documents(tmp_path / "one.txt", documents=1), n=2)
    with pytest.raises(BadInput, match="10 usable sentences; 11 were asked for"):
        read_documents(write_documents(tmp_path / "few.txt", documents=2), n=11)


def test_originals_are_lines_without_repeats(tmp_path: Path) -> None:
    path = tmp_path / "o.txt"
    path.write_text("One.\n\nTwo.\n", encoding="utf-8")
    assert [one.text for one in read_originals(path)] == ["One.", "Two."]
    path.write_text("One.\nOne.\n", encoding="utf-8")
    with pytest.raises(BadInput, match="'One.' twice"):
        read_originals(path)
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(BadInput, match="no sentences"):
        read_originals(path)


def test_a_balanced_sample_uses_each_original_once_and_every_length() -> None:
    originals = [Original(f"s{k}", " ".join(["word"] * (1 + k)) + ".") for k in range(18)]
    degraded = degrade_sentences(originals, parse_routes("x,y"), PLAIN)
    chosen = balance_sources(originals, degraded, size=6, seed=1)
    used = [item for items in chosen.values() for item in items]
    assert len(used) == len(set(used)) == 18
    for items in chosen.values():
        strata = [int(item[1:]) // 6 for item in items]
        assert sorted(strata) == [0, 0, 1, 1, 2, 2]
    with pytest.raises(BadInput, match="too few sentences for 9 of each of 3 sources"):
        balance_sources(originals, degraded, size=9)


def test_stimuli_come_in_every_setting_that_is_known() -> None:
    originals = [Original("a", "One.", "Before.", "Elsewhere."), Original("b", "Two.", "So.", "There.")]
    table = build_rating_stimuli(originals, degrade_sentences(originals, [Route("x")], PLAIN))
    assert table.height == 2 * 2 * 3
    row = table.filter(item="x/a", condition="random").row(0, named=True)
    assert (row["context"], row["text"], row["original"]) == ("Elsewhere.", "One. enx xen", "One.")
    assert set(table.filter(suite="en")["phenomenon"]) == {"original"}
    bare = build_rating_stimuli(
        [Original("a", "One.")], degrade_sentences([Original("a", "One.")], [Route("x")], PLAIN)
    )
    assert bare["condition"].to_list() == ["none", "none"]


def test_the_table_begins_a_rating_study(cli: Callable[..., Any], tmp_path: Path) -> None:
    script = tmp_path / "t.py"
    script.write_text("import sys\nfor line in sys.stdin: print(line.strip() + ' ' + sys.argv[1])\n")
    documents = write_documents(tmp_path / "d.txt")
    table = tmp_path / "stimuli.csv"
    said = cli(
        "stimuli", "round-trip", documents, "--documents", 12, "--through", "x,y", "--balance", 3,
        "--command", f"{sys.executable} {script} {{target}}", "--lower", "-o", table, "--json",
    )  # fmt: skip
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert told["items"] == 9
    assert told["rows"] == 27
    assert json.loads((tmp_path / "stimuli.json").read_text())["routes"][0]["hops"] == "en-x x-en"
    begun = cli("rate", "new", tmp_path / "study", "--from", table)
    assert begun.code == 0, begun.err
    stimuli = pl.read_csv(tmp_path / "study" / "stimuli.csv")
    assert set(stimuli["condition"]) == {"none", "real", "random"}
    assert set(stimuli["suite"]) == {"en", "x", "y"}


@needs_apertium
@pytest.mark.data
def test_originals_of_the_paper_through_spanish_are_rated_in_a_preview(
    cli: Callable[..., Any], published: Callable[[str], Path], tmp_path: Path
) -> None:
    rated = pl.read_csv(published("lau2020/human-ratings/context-none-ratings.csv"))
    originals = rated.filter(pl.col("translated") == 0)["sentence"].head(25).to_list()
    (tmp_path / "originals.txt").write_text("\n".join(originals) + "\n", encoding="utf-8")
    table = tmp_path / "degraded.csv"
    said = cli(
        *("stimuli", "round-trip", tmp_path / "originals.txt", "--through", "spa", "--lower", "-o", table),
        "--json",
    )
    assert said.code == 0, said.err
    (route,) = json.loads(said.out)["routes"]
    assert route["sent"] == 25
    assert route["kept"] + route["unchanged"] + route["empty"] + route["flawed"] == 25
    assert route["kept"] >= 20
    begun = cli("rate", "new", tmp_path / "study", "--from", table)
    assert begun.code == 0, begun.err
    study = read_rating_study(tmp_path / "study")
    with open_site(study, preview=True) as site:
        (visit,) = send_raters(site.url, study, Population(raters=1))
        assert all(row.test for row in site.store.rows(raters))
        assert len(site.store.rows(answers)) >= route["kept"]
    assert visit.code, visit


def test_two_translators_or_another_ending_are_refused(cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "o.txt").write_text("One.\n", encoding="utf-8")
    both = cli(
        "stimuli", "round-trip", tmp_path / "o.txt", "--command", "a {target}", "-m", "b", "-o", "x.csv"
    )
    assert both.code == 2
    assert "both name a translator" in both.err
    other = cli("stimuli", "round-trip", tmp_path / "o.txt", "-o", tmp_path / "x.parquet")
    assert "does not end in .csv" in other.err


def test_a_model_continues_the_prompt_on_the_command_line(
    cli: Callable[..., Any], tiny_model: Path, tmp_path: Path
) -> None:
    """A model that has not learned to translate still gives a line, or nothing, for every sentence."""
    (tmp_path / "o.txt").write_text("The cat.\nA dog.\n", encoding="utf-8")
    said = cli(
        "stimuli", "round-trip", tmp_path / "o.txt", "-m", tiny_model, "--home", "a", "--through", "b",
        "-o", tmp_path / "x.csv", "--json",
    )  # fmt: skip
    if said.code:  # the tiny model's window may be too short for a long answer
        assert "tokens" in said.err
    else:
        route = json.loads(said.out)["routes"][0]
        assert route["kept"] + route["unchanged"] + route["empty"] == 2


def test_a_table_of_originals_is_refused(cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("item,text\n1,He left.\n", encoding="utf-8")
    answer = cli("stimuli", "round-trip", tmp_path / "own.csv", "-o", tmp_path / "new.csv")
    assert answer.code == 2
    assert "own.csv is a table; give a text file" in answer.err


class _Unfinished:
    """A translator that leaves a word as it is in one sentence and a space before a full stop in another."""

    name, version = "unfinished", "1"

    def translate(self, texts: list[str], source: str, target: str) -> list[str]:
        del source
        if target != "en":
            return texts
        back = {"The kitchen window is open.": "The kuireja window is open.", "She heard it.": "She heard ."}
        return [back.get(text, f"Yes, {text.lower()}") for text in texts]


@pytest.mark.parametrize(("keep", "kept"), [(False, ["s3"]), (True, ["s1", "s2", "s3"])])
def test_unfinished_translations_are_left_out_unless_they_are_wanted(keep: bool, kept: list[str]) -> None:
    texts = ["The kitchen window is open.", "She heard it.", "The dog slept."]
    originals = [Original(f"s{place}", text) for place, text in enumerate(texts, start=1)]
    words = {"the", "window", "is", "open", "she", "heard", "yes", "dog", "slept"}
    degraded = degrade_sentences(
        originals, parse_routes("eo"), _Unfinished(), knows=words.__contains__, keep_flawed=keep
    )
    assert list(degraded.texts["eo"]) == kept
    assert degraded.flawed["eo"] == {
        "s1": "'kuireja' is not a word of the language",
        "s2": "a space before '.'",
    }
