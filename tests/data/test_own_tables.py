"""Tables of one's own: further columns are kept, and ratings are judged as ratings."""

from pathlib import Path

import pytest

import felicity as fe
from felicity.core.errors import BadInput, UnknownName
from felicity.data.catalogue import read_dataset
from felicity.data.pairs import Columns
from felicity.run.answers import analysis_table, stimuli_table
from felicity.run.evaluate import evaluate, read_run

PAIRS = "good,bad,zipf,list\nThe cats sleep.,The cats sleeps.,4.5,a\nThe dog barks.,The dog bark.,3.9,b\n"
FACTORS = """item,condition,text,ambiguity,comma
1,good,The cats sleep well.,no,yes
1,bad,The cats sleeps well.,yes,yes
2,good,The dog barks now.,no,no
2,bad,The dog bark now.,yes,no
"""


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_further_columns_of_pairs_are_kept_as_numbers_or_text(tmp_path: Path) -> None:
    items = read_dataset(write(tmp_path / "p.csv", PAIRS)).items
    assert items["zipf"].to_list() == [4.5, 3.9, 4.5, 3.9]
    assert items["list"].to_list() == ["a", "b", "a", "b"]


def test_columns_of_items_can_be_predictors_of_margins(tmp_path: Path, tiny_model: Path) -> None:
    evaluate(write(tmp_path / "p.csv", PAIRS), str(tiny_model), out=tmp_path / "run")
    table = analysis_table([tmp_path / "run"], "margin")
    assert table.select("item", "zipf").unique().sort("zipf")["zipf"].to_list() == [3.9, 4.5]


def test_factors_of_stimuli_stand_beside_their_surprisal(tmp_path: Path, tiny_model: Path) -> None:
    evaluate(write(tmp_path / "f.csv", FACTORS), str(tiny_model), out=tmp_path / "run")
    table = analysis_table([tmp_path / "run"], "surprisal")
    assert set(table["ambiguity"]) == {"yes", "no"}
    wanted = fe.model(str(tiny_model)).score(table["text"].to_list())["lp"]
    assert stimuli_table(read_run(tmp_path / "run"))["lp"].to_list() == pytest.approx(wanted.to_list())


def test_a_table_of_texts_and_ratings_is_judged_by_the_rating_rule(tmp_path: Path, tiny_model: Path) -> None:
    path = write(
        tmp_path / "r.csv", "text,rating,list\nThe cats sleep.,4,a\nCats the sleep.,1.5,b\nHe left.,3,a\n"
    )
    run = fe.evaluate(path, str(tiny_model))
    assert run["correlations"]["n"].max() == 3
    assert run["items"]["list"].to_list() == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("text,rating\nHe left.,2\nShe left.,two\n", "line 3: 'rating' is 'two', not a number"),
        ("text,rating\nHe left.,2\nShe left.,\n", "line 3: 'rating' is"),
        ("text,rating\nHe left.,2\nShe left.,2\n", "All ratings of .* are 2"),
        ("text,rating\n,2\nShe left.,3\n", "line 2: 'text' is empty"),
        ("item,text,rating\n1,He left.,2\n1,She left.,3\n", "line 3: item"),
    ],
)
def test_ratings_that_cannot_be_used_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        read_dataset(write(tmp_path / "r.csv", text))


def test_factors_name_the_conditions_and_stay_columns_of_the_items(tmp_path: Path) -> None:
    path = tmp_path / "garden.csv"
    rows = ("amb,no,A b.", 'amb,yes,"A, b."', "clear,no,A c b.", 'clear,yes,"A c, b."')
    path.write_text("item,ambiguity,comma,text\n" + "".join(f"1,{row}\n" for row in rows))
    columns = Columns(good="clear, yes", factors=("ambiguity", "comma"))
    data = read_dataset(str(path), columns)
    assert data.items["condition"].to_list() == ["amb, no", "amb, yes", "clear, no", "clear, yes"]
    assert data.items["ambiguity"].to_list() == ["amb", "amb", "clear", "clear"]
    assert data.contrasts[0].better == "clear, yes"
    with pytest.raises(UnknownName, match="did you mean 'comma'"):
        read_dataset(str(path), Columns(good="clear, yes", factors=("coma",)))


def test_an_item_of_a_cloze_table_with_a_condition_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "blanks.csv"
    head = "suite,item,condition,context_text,text\n"
    rows = ["s,1,a,The cat saw the,dog", "s,1,b,The cat saw a,dog", "t,1,a,The cat saw the,dog"]
    path.write_text(head + "\n".join(rows) + "\n")
    assert len(read_dataset(str(path)).items) == 3
    path.write_text(head + "\n".join([*rows, "s,1,a,The cat saw the,bird"]) + "\n")
    with pytest.raises(BadInput, match="row 1: item '1' has the condition 'a' more than once"):
        read_dataset(str(path))
