"""The pages about datasets say what is so: examples are read, names and sizes are those of the catalogue."""

import re
from pathlib import Path

import pytest

from felicity.data.catalogue import read_dataset
from felicity.data.entry import load_entries
from tests.conftest import ROOT
from tests.data.test_catalogue import SIZES

PAGES = ROOT / "docs"
EXAMPLES = re.findall(
    r"```(csv|toml|json)\n(.*?)```", (PAGES / "how-to" / "own-suites.md").read_text(encoding="utf-8"), re.S
)


@pytest.mark.parametrize(
    ("kind", "text"), EXAMPLES, ids=[f"{n}-{kind}" for n, (kind, _) in enumerate(EXAMPLES)]
)
def test_every_example_of_a_users_file_is_read(kind: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / f"example.{kind}"
    path.write_text(text, encoding="utf-8")
    assert read_dataset(str(path)).items.height >= 2


def test_there_is_an_example_of_every_form() -> None:
    assert [kind for kind, _ in EXAMPLES] == ["csv", "csv", "toml", "json"]


def test_the_table_of_datasets_has_names_rules_and_sizes_of_the_catalogue() -> None:
    page = (PAGES / "reference" / "datasets.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (`.*?) \| (.*?) \| (.*?) \| (.*?) \| `(\w+)`(?: \([^|]*\))? \| (.*?) ?\|$", page, re.M
    )
    seen = set()
    for names, items, stimuli, suites, rule, others in rows:
        for name in re.findall(r"`(\w+)`", names):
            seen.add(name)
            assert list(load_entries()[name].methods) == [rule, *re.findall(r"`(\w+)`", others)], name
            if name in SIZES:
                told = tuple(int(cell.replace(",", "")) for cell in (items, stimuli, suites))
                assert told == SIZES[name], name
    assert seen == set(load_entries())
