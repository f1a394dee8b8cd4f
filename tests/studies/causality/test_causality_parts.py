"""Stimuli from a design, flags, references and samples, on small tables."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput, FelicityError
from felicity.humans import build_lists
from felicity.stimuli.extension import Extension
from felicity.stimuli.review import Queue
from felicity.studies.causality import (
    SampleSize,
    analyse_ratings,
    check_balance,
    draw_sample,
    find_offensive,
    find_reference,
    find_repetition,
    flag_continuations,
    read_decisions,
    read_stimuli_set,
    trim_repetition,
    write_study_folder,
)
from felicity.studies.causality.continuations import count_reasons, describe_diversity
from felicity.studies.causality.findings import check_preference
from felicity.studies.causality.preference import (
    BY_VERB,
    add_figures,
    count_pronouns,
    describe_models,
    draw_agreement,
    explain_variance,
    find_bin,
    fit_preference,
)
from felicity.studies.causality.ratings import pick_examples, read_ratings

PRONOUNS = {"m": "he", "f": "she"}
MIXED = {"subject": "m", "object": "f"}
NOUNS = {"subject": "man", "object": "woman"}


def write_design(folder: Path, **fields: str) -> Path:
    (folder / "verbs.csv").write_text("verb,lemma\nadmired,admire\nfrightened,frighten\nzoomed,zoom\n")
    (folder / "nouns.csv").write_text("m,f\nman,woman\nking,queen\n")
    (folder / "norms.csv").write_text("lemma,bias\nadmire,-70\nfrighten,60\n")
    (folder / "counts.csv").write_text("verb,count\nadmired,99\nfrightened,9\nzoomed,0\n")
    given = {"verbs": '"verbs.csv"', "nouns": '"nouns.csv"', "frequency": '"counts.csv"'} | fields
    path = folder / "own.toml"
    path.write_text("".join(f"{name} = {value}\n" for name, value in given.items()))
    return path


def test_a_design_crosses_verbs_noun_pairs_orders_and_connectives(tmp_path: Path) -> None:
    path = write_design(tmp_path, norms='"norms.csv"', connectives='["because", "and so"]')
    stimuli = read_stimuli_set(str(path))
    assert stimuli.rows.height == 3 * 2 * 2 * 2
    first = stimuli.rows.row(1, named=True)
    assert first["prompt"] == "The woman admired the man because"
    assert (first["subject_text"], first["object_text"]) == ("she", "he")
    assert (first["bias"], first["log_frequency"]) == (-70.0, 2.0)
    assert "1 of 3 verbs have no bias norm (zoomed)" in stimuli.notes[0]


def test_two_nouns_of_one_gender_are_compared_by_the_nouns_themselves(tmp_path: Path) -> None:
    stimuli = read_stimuli_set(str(write_design(tmp_path, same_gender="true")))
    same = stimuli.rows.filter(pl.col("subject_gender") == pl.col("object_gender"))
    assert same.height == 3 * 2 * 2
    row = same.filter(verb="admired", noun_pair="m0", order=0).row(0, named=True)
    assert (row["prompt"], row["subject_text"]) == ("The man admired the king because", "the man")


def test_another_language_needs_a_template_and_pronouns(tmp_path: Path) -> None:
    path = write_design(
        tmp_path,
        template='"{subject} {verb} {object}, {connective}"',
        connectives='["weil"]',
        pronouns='{m = "er", f = "sie"}',
    )
    (tmp_path / "nouns.csv").write_text("m,f\nder Mann,die Frau\n")
    (tmp_path / "verbs.csv").write_text("verb\nbewunderte\n")
    row = read_stimuli_set(str(path)).rows.row(0, named=True)
    assert row["prompt"] == "Der Mann bewunderte die Frau, weil"
    assert (row["subject_text"], row["object_text"]) == ("er", "sie")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"template": '"{subject} {verb} {connective}"'}, "has no {object}"),
        ({"verbs": '"nouns.csv"'}, "no column 'verb'"),
        ({"nouns": '"none.csv"'}, "which does not exist"),
        ({"verb": '"verbs.csv"'}, "verb"),
    ],
)
def test_a_wrong_design_is_refused_by_its_field(tmp_path: Path, fields: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read_stimuli_set(str(write_design(tmp_path, **fields)))


def test_bins_are_closed_on_the_left_and_the_last_one_on_both_sides() -> None:
    bias = pl.DataFrame({"bias": [-100.0, -80.0, -0.5, 0.0, 19.9, 20.0, 80.0, 100.0, None]})
    bins = bias.select(find_bin(pl.col("bias"))).to_series().to_list()
    assert bins == [-100, -80, -20, 0, 0, 20, 80, 80, None]


@pytest.mark.parametrize(
    ("text", "side", "by"),
    [
        ("he was late", "subject", "pronoun"),
        ("she's late", "object", "pronoun"),
        ("the woman was late", "object", "noun"),
        ("his car broke down", "unknown", "nothing"),
        ("of the rain", "unknown", "nothing"),
        ("it was the man", "unknown", "nothing"),
        ("", "unknown", "nothing"),
    ],
)
def test_a_continuation_takes_up_the_noun_of_its_first_words(text: str, side: str, by: str) -> None:
    assert find_reference(text, NOUNS, MIXED, PRONOUNS) == (side, by)


def test_a_pronoun_does_not_decide_between_two_nouns_of_its_gender() -> None:
    genders = {"subject": "m", "object": "m"}
    nouns = {"subject": "man", "object": "king"}
    assert find_reference("he was late", nouns, genders, PRONOUNS) == ("unknown", "pronoun of both")
    assert find_reference("the king was late", nouns, genders, PRONOUNS) == ("object", "noun")


def test_a_noun_of_several_words_or_without_an_article_is_found_again() -> None:
    names = {"subject": "Anna", "object": "police officer"}
    for text, side in (
        ("Anna was late", "subject"),
        ("the police officer was late", "object"),
        ("police were late", "unknown"),
        ("poor old Anna was late", "unknown"),
    ):
        assert find_reference(text, names, MIXED, PRONOUNS)[0] == side


def test_the_overall_interval_is_over_verbs_not_prompts() -> None:
    """Of 40 verbs in both orders, 10 pairs of nouns each: half match everywhere, half nowhere."""
    rows = [
        {"verb": f"v{verb}", "subject_preference": 1.0 if verb % 2 else -1.0, "bias": 50.0}
        | {"subject_gender": subject, "object_gender": other}
        for verb in range(40)
        for subject, other in 10 * [("m", "f"), ("f", "m")]
    ]
    table = draw_agreement(add_figures(pl.DataFrame(rows)))
    whole = table.filter(pl.col("bias_bin").is_null(), subject_gender="all", counting="without bias 0")
    row = whole.row(0, named=True)
    assert (row["n"], row["agreement"]) == (800, 0.5)
    # 40 verbs, not 800 prompts: t(39) times .5 / sqrt(39) to each side.
    assert row["high"] - row["agreement"] == pytest.approx(2.0227 * 0.5 / 39**0.5, rel=0.03)


def test_a_model_that_finds_both_texts_impossible_has_no_preference() -> None:
    table = pl.DataFrame(
        {"subject_preference": [float("nan"), 1.0], "bias": [50.0, 50.0], "subject_gender": ["m", "m"]}
    )
    found = add_figures(table)
    assert found["match"].to_list() == [None, 1.0]
    assert found["subject_preference"].to_list() == [None, 1.0]


def test_flags_name_the_term_and_the_reason_and_whole_words_only() -> None:
    assert find_offensive("she wanted to kill him, not to kill time") == [("kill", "violence")]
    assert find_offensive("she wanted to kill time") == []
    assert find_offensive("she was very skilled in analysis") == []
    flags = flag_continuations(pl.Series(["he was tired", "they murdered it", "it is so it is so it is so"]))
    assert flags["flagged"].to_list() == [False, True, True]
    assert flags["reasons"][1] == "offensive: murdered (violence)"
    assert flags["reasons"][2].startswith('repetition: "')
    table = pl.DataFrame({"continuation": ["a", "b", "c"]}).hstack(flags)
    assert dict(count_reasons(table).iter_rows()) == {"offensive (violence)": 1, "repetition": 1}


def test_a_repetition_is_cut_before_the_clause_that_repeats() -> None:
    text = "he was too tired to drive, and the man was too tired to drive"
    assert find_repetition(text) == ("was too tired to", text.index("was too", 20))
    assert trim_repetition(text) == "he was too tired to drive"
    assert trim_repetition("he was tired and she was not") is None


def test_diversity_counts_texts_and_n_grams() -> None:
    found = describe_diversity(pl.DataFrame({"continuation": ["He was late", "he was late", "she was"]}))
    assert (found["n"], found["distinct"], found["repeated_often"]) == (3, 2, 0.0)
    assert found["distinct_1"] == pytest.approx(4 / 8)
    assert found["distinct_2"] == pytest.approx(3 / 5)


def continuations(*, verbs: int = 4, pairs: int = 3, flagged: tuple[str, ...] = ()) -> pl.DataFrame:
    """Continuations of verbs in two bins, pairs in both orders; those in `flagged` have a flag."""
    rows = []
    for place in range(verbs):
        bias = -50.0 if place % 2 else 50.0
        for pair in range(pairs):
            for order in range(2):
                item = f"The {'ab'[order]}{pair} verb{place} the {'ba'[order]}{pair} because"
                rows.append(
                    {
                        "item": item,
                        "prompt": item,
                        "verb": f"verb{place}",
                        "noun_pair": str(pair),
                        "subject_gender": "mf"[order],
                        "bias": bias,
                        "bias_bin": int(bias // 20 * 20),
                        "log_frequency": 3.0 - place / 10,
                        "sample": 0,
                        "continuation": "it was so",
                        "flagged": item in flagged,
                        "reasons": "offensive: x (violence)" if item in flagged else "",
                        "trimmed": None,
                    }
                )
    return pl.DataFrame(rows, schema_overrides={"trimmed": pl.String})


SIZE = SampleSize(verbs=2, bins=2, pairs=2, lists=4)


def test_a_sample_takes_the_most_frequent_verbs_of_each_bin_in_both_orders() -> None:
    sample = draw_sample(continuations(verbs=6), SIZE, seed=1)
    assert sample.rows.height == 2 * 2 * 2 * 2
    assert set(sample.rows["verb"]) == {"verb0", "verb1", "verb2", "verb3"}
    assert check_balance(sample) == {
        "n": 16,
        "list": [4, 4],
        "bin": [8, 8],
        "verb": [4, 4],
        "gender": [8, 8],
        "bin within list": [2, 2],
    }
    assert sample.review.is_empty()
    assert sample.notes == ()


def test_a_flagged_continuation_is_not_shown_and_its_noun_pair_is_exchanged() -> None:
    flagged = "The a0 verb0 the b0 because"
    table = continuations(pairs=2, flagged=(flagged,))
    sample = draw_sample(table, SIZE, seed=1)
    assert flagged not in sample.rows["item"]
    assert sample.rows.filter(verb="verb0")["noun_pair"].unique().to_list() == ["1"]
    assert sample.review["item"].to_list() == [flagged]
    assert "verb0: 1 noun pairs without a flag, not 2" in " ".join(sample.notes)
    # A third pair takes its place where there is one.
    full = draw_sample(continuations(pairs=3, flagged=(flagged,)), SIZE, seed=1)
    assert full.rows.height == 16
    assert flagged not in full.rows["item"]


def test_what_a_person_keeps_is_shown_as_they_left_it(tmp_path: Path) -> None:
    flagged = "The a0 verb0 the b0 because"
    table = continuations(pairs=2, flagged=(flagged,))
    study = write_study_folder(draw_sample(table, SIZE, seed=1), tmp_path / "study")
    assert flagged not in [stimulus.item for stimulus in study.stimuli]
    review = tmp_path / "study" / "review"
    queue = Queue(Extension(review).log)
    shown = queue.show_next("ada")
    assert shown is not None
    assert shown.proposal.item == flagged
    assert shown.proposal.flags == (("offensive", "x (violence)"),)
    assert read_decisions(review).is_empty()
    queue.decide(
        flagged, "edit", reviewer="ada", texts=[shown.proposal.texts[0], f"{flagged} it was quite so."]
    )
    again = draw_sample(table, SIZE, seed=1, decisions=read_decisions(review))
    assert again.rows.height == 16
    assert again.rows.filter(item=flagged)["text"].to_list() == ["it was quite so"]


def test_what_a_person_rejects_stays_out(tmp_path: Path) -> None:
    flagged = "The a0 verb0 the b0 because"
    table = continuations(pairs=2, flagged=(flagged,))
    write_study_folder(draw_sample(table, SIZE, seed=1), tmp_path / "study")
    review = tmp_path / "study" / "review"
    Queue(Extension(review).log).decide(flagged, "reject", reviewer="ada", reason="offensive")
    again = draw_sample(table, SIZE, seed=1, decisions=read_decisions(review))
    assert flagged not in again.rows["item"]


def test_the_study_folder_is_ready_for_raters(tmp_path: Path) -> None:
    sample = draw_sample(continuations(), SIZE, seed=1)
    study = write_study_folder(sample, tmp_path / "study", seed=3, raters=2)
    lists = build_lists(study)
    assert [len(one.rows) for one in lists] == [4] * 4
    assert (study.task.kind, study.task.points, study.design.quota) == ("likert", 5, 2)
    assert study.information is not None
    assert study.consent.text
    assert study.stimuli[0].text == "it was so."
    with pytest.raises(FelicityError, match="exists already"):
        write_study_folder(sample, tmp_path / "study")


def test_too_many_lists_are_refused() -> None:
    with pytest.raises(BadInput, match="take fewer lists"):
        draw_sample(continuations(), SampleSize(verbs=2, bins=2, pairs=2, lists=99))


def test_ratings_are_analysed_with_both_models() -> None:
    rng = np.random.default_rng(2)
    stimuli = pl.DataFrame(
        {
            "sentence": [f"s{place}" for place in range(60)],
            "noun_pair": [str(place % 4) for place in range(60)],
            "bias": rng.uniform(-100, 100, 60),
            "log_frequency": rng.normal(3, 1, 60),
        }
    )
    liking = dict(zip(stimuli["sentence"], rng.normal(3, 1, 60), strict=True))
    rows = [
        (rater, sentence, float(np.clip(round(value + rng.normal(0, 0.7)), 1, 5)))
        for rater in "abcd"
        for sentence, value in liking.items()
    ]
    ratings = pl.DataFrame(rows, schema=["participant", "sentence", "rating"], orient="row")
    found = analyse_ratings(ratings, stimuli)
    assert list(found.models) == ["linear", "ordinal"]
    assert found.counts["n"].sum() == 240


def test_examples_leave_out_flagged_continuations_and_verbs_without_bias() -> None:
    items = pl.DataFrame(
        {
            "sentence": ["a", "b", "c", "d"],
            "continuation": ["it was", "it did", "it had", "it could"],
            "mean": [4.0, 2.0, 5.0, 1.0],
            "flagged": [False, False, True, False],
            "bias_bin": [20, 20, 20, None],
        }
    )
    assert pick_examples(items).select("rated", "sentence").rows() == [
        ("best", "a"),
        ("best", "b"),
        ("worst", "a"),
        ("worst", "b"),
    ]


def test_a_model_that_follows_gender_alone_is_told_from_one_that_follows_bias() -> None:
    rows = [
        {"verb": f"v{verb}", "bias": bias, "subject_gender": subject, "object_gender": other}
        | {"gender": 1.0 if subject == "f" else -1.0}
        for verb, bias in enumerate((-80.0, -40.0, 40.0, 80.0))
        for subject, other in (("m", "f"), ("f", "m"))
    ]
    table = pl.DataFrame(rows)
    by_gender = add_figures(table.with_columns(subject_preference=pl.col("gender")))
    by_bias = add_figures(table.with_columns(subject_preference=pl.col("bias") / 40))
    for table, shares in ((by_gender, (1.0, 0.0)), (by_bias, (0.0, 1.0))):
        found = explain_variance(table)
        assert found["source"].to_list() == ["gender", "bias"]
        assert found["r2"].to_list() == pytest.approx(shares)
    expected = count_pronouns(by_gender, PRONOUNS)
    assert expected["pronoun"].unique().to_list() == ["she"]
    assert expected.select("subject_gender", "n", "share").rows() == [
        ("m", 4, 1.0),
        ("f", 4, 1.0),
        ("all", 8, 1.0),
    ]
    assert count_pronouns(by_bias, PRONOUNS)["share"].to_list() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"connectives": "[]"}, "'connectives' is empty"),
        ({"same_gender": '"no"'}, "'same_gender' is .*true or false"),
    ],
)
def test_a_design_without_prompts_or_with_a_wrong_switch_is_refused(
    tmp_path: Path, fields: dict[str, str], told: str
) -> None:
    with pytest.raises(BadInput, match=told):
        read_stimuli_set(str(write_design(tmp_path, **fields)))


@pytest.mark.parametrize("language", ["xx", "no tag!"])
def test_a_language_without_frequencies_is_refused(tmp_path: Path, language: str) -> None:
    path = write_design(tmp_path, language=f'"{language}"')
    path.write_text(path.read_text().replace('frequency = "counts.csv"\n', ""))
    with pytest.raises(BadInput, match="no words of the language"):
        read_stimuli_set(str(path))


def test_a_table_in_place_of_a_design_is_refused(tmp_path: Path) -> None:
    write_design(tmp_path)
    with pytest.raises(BadInput, match="verbs.csv is not a design file"):
        read_stimuli_set(str(tmp_path / "verbs.csv"))


def test_a_sample_of_which_nothing_can_be_shown_is_refused() -> None:
    table = continuations(verbs=6).with_columns(bias=pl.lit(None, dtype=pl.Float64))
    with pytest.raises(BadInput, match="No continuation can be shown"):
        draw_sample(table, SIZE, seed=1)


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("norms.csv", "lemma,bias\nadmire,much\nfrighten,60\n", "row 1 has 'much' as 'bias'"),
        ("norms.csv", "lemma,bias\nadmire,nan\nfrighten,60\n", "which is not a number"),
        ("norms.csv", "lemma,bias\nadmire,inf\nfrighten,60\n", "which is not a number"),
        ("norms.csv", "lemma,bias\nadmire,1\nadmire,60\n", "list a lemma twice"),
        ("verbs.csv", 'verb,lemma\nadmired,admire\n"",frighten\n', "row 2 has no 'verb'"),
        ("nouns.csv", 'm,f\nman,woman\n"",queen\n', "row 2 has no 'm'"),
        ("counts.csv", "verb,count\nadmired,99\nadmired,7\n", "gives 'admired' two frequencies"),
        ("counts.csv", "verb,count\nadmired,-5\n", "a count below 0"),
        ("counts.csv", "verb,count\nadmired,often\n", "row 1 has 'often' as 'count'"),
    ],
)
def test_tables_of_a_design_with_something_that_is_no_number_or_twice_are_refused(
    tmp_path: Path, file: str, content: str, told: str
) -> None:
    design = write_design(tmp_path, norms='"norms.csv"')
    (tmp_path / file).write_text(content)
    with pytest.raises(BadInput, match=told):
        read_stimuli_set(str(design))


@pytest.mark.parametrize(
    ("rating", "told"),
    [("good", "'good' as 'rating'"), ("7", "is 7.0, not 1 to 5"), ("nan", "is not a number")],
)
def test_ratings_that_are_no_points_of_the_scale_are_refused(tmp_path: Path, rating: str, told: str) -> None:
    table = tmp_path / "ratings.csv"
    table.write_text(f"rater,item,rating,selected,state\na,1,3,1,finished\nb,1,{rating},1,finished\n")
    with pytest.raises(BadInput, match=told):
        read_ratings(table)


def test_ratings_that_were_not_given_or_not_selected_are_left_out(tmp_path: Path) -> None:
    table = tmp_path / "ratings.csv"
    rows = ["a,1,3,true,finished", "b,1,,true,finished", "c,1,5,false,finished", "d,1,5,true,lapsed"]
    table.write_text("rater,item,rating,selected,state\n" + "\n".join(rows) + "\n")
    assert read_ratings(table)["participant"].to_list() == ["a"]


def test_verbs_as_random_effects_stand_beside_the_papers_model() -> None:
    """30 verbs that differ by more than their bias says, each with 6 noun pairs in both orders."""
    rng = np.random.default_rng(1)
    bias, own = rng.uniform(-100, 100, 30), rng.normal(0, 1.5, 30)
    rows = [
        {"verb": f"v{verb}", "noun_pair": f"n{pair}", "bias": bias[verb], "log_frequency": float(verb % 7)}
        | {"subject_gender": "mf"[order], "object_gender": "fm"[order], "subject_male": 1.0 - order}
        | {"subject_preference": 0.004 * bias[verb] + own[verb] + rng.normal()}
        for verb in range(30)
        for pair in range(6)
        for order in (0, 1)
    ]
    found = fit_preference(pl.DataFrame(rows))
    paper, fuller = (found.models[name].fixed.filter(term="bias") for name in ("preference", BY_VERB))
    assert fuller["se"][0] > 2 * paper["se"][0]
    (note,) = found.notes
    assert note.startswith("With verbs as random effects (subject_preference ~ bias * subject_male + ")
    assert ("no longer significant: bias" in note) == (paper["p"][0] <= 0.05 < fuller["p"][0])
    nothing = pl.DataFrame(
        schema={"bias_bin": pl.Int64, "subject_gender": pl.String, "counting": pl.String, "n": pl.Int64}
    )
    checked = check_preference(describe_models(found.models), nothing)[0]
    assert "with verbs as random effects estimate" in checked.figures
