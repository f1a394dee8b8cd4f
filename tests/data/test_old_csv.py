import json
from collections.abc import Callable
from pathlib import Path

import pytest

from felicity.core.errors import BadInput
from felicity.data.suites import build_suite_items, read_old_suite, read_suite, write_suite

HEAD = "item_number,condition_name,region_number,region_name,content\n"
OLD = HEAD + "1,match,1,subject,The cats\n1,match,2,verb,annoy\n1,mismatch,1,subject,The cats\n"
OLD += "1,mismatch,2,verb,annoys\n"
FORMULA = "(2;%match%) < (2;%mismatch%)"


def convert(folder: Path, text: str, formula: str = FORMULA) -> Path:
    (folder / "old.csv").write_text(text, encoding="utf-8")
    suite = read_old_suite(folder / "old.csv", name="old", metric="sum", predictions=[formula])
    (folder / "new.json").write_text(write_suite(suite), encoding="utf-8")
    return folder / "new.json"


def test_the_old_form_becomes_a_suite_that_can_be_read(tmp_path: Path) -> None:
    suite = read_suite(convert(tmp_path, OLD))
    assert build_suite_items(suite)["text"].to_list() == ["The cats annoy", "The cats annoys"]
    assert suite.regions == (("1", "subject"), ("2", "verb"))


@pytest.mark.data
def test_every_published_suite_survives_the_way_through_the_old_form(
    published: Callable[[str], Path], tmp_path: Path
) -> None:
    for path in sorted(published("syntaxgym/json").glob("*.json"))[::6]:
        suite = read_suite(path)
        rows = [HEAD.strip()]
        for number, conditions in suite.items.items():
            for condition, contents in conditions.items():
                for (region, name), content in zip(suite.regions, contents, strict=True):
                    quoted = '"' + content.replace('"', '""') + '"'
                    rows.append(f"{number},{condition},{region},{name},{quoted}")
        (tmp_path / "old.csv").write_text("\n".join(rows), encoding="utf-8")
        back = read_old_suite(
            tmp_path / "old.csv", name=suite.name, metric=suite.metric, predictions=suite.predictions
        )
        again = json.loads(write_suite(back))
        original = json.loads(path.read_text(encoding="utf-8"))
        assert again["items"] == original["items"]
        assert again["region_meta"] == original["region_meta"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("1,match,2,verb,annoy\n", "1,match,x,verb,annoy\n", "line 3: 'region_number' is 'x', not a number"),
        (
            "1,match,2,verb,annoy\n",
            "1,match,1,subject,annoy\n",
            "line 3: region 1 of this condition occurs twice",
        ),
        ("1,mismatch,2,verb,annoys\n", "", "item 1, condition 'mismatch' lacks a region"),
        (
            "1,mismatch,1,subject",
            "1,mismatch,1,object",
            "line 4: 'region_name' is 'object', but was 'subject'",
        ),
        ("content", "words", "no column 'content'"),
    ],
)
def test_what_is_wrong_is_said_by_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        convert(tmp_path, OLD.replace(old, new))


def test_a_prediction_about_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="names the region '3'"):
        convert(tmp_path, OLD, "(3;%match%) < (2;%mismatch%)")
