"""The driver of every study: it begins, resumes, refuses, and reads back what it wrote."""

import gc
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import BadInput, UnknownName
from felicity.studies import STUDIES, analyse_study, read_study, report_study
from tests.conftest import Answer

Cli = Callable[..., Answer]
PAIRS = pl.DataFrame(
    {
        "suite": ["s1", "s1", "s2", "s2"],
        "good": ["The cats annoy Tim.", "He left.", "She saw herself.", "Same here."],
        "bad": ["The cats annoys Tim.", "Him left.", "She saw himself.", "Same here."],
    }
)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    PAIRS.write_csv(path)
    return path


def test_command_and_python_give_the_same_tables(
    cli: Cli, tiny_model: Path, pairs: Path, tmp_path: Path
) -> None:
    answer = cli("bias", pairs, "-m", tiny_model, "--measure", "pen_lp", "-o", tmp_path / "one", "-q")
    assert answer.code == 0, answer.err
    study = fe.bias(PAIRS, models=str(tiny_model), measures="pen_lp")
    kept = read_study(tmp_path / "one")
    assert set(kept.tables) == set(study.tables)
    for name, table in study.tables.items():
        assert table.equals(kept[name]), name
        assert table.schema == kept[name].schema


def test_a_study_without_a_folder_lives_as_long_as_its_object(tiny_model: Path) -> None:
    study = fe.bias(PAIRS, models=str(tiny_model))
    folder = study.folder
    assert study.run("tiny-gpt2")["judgements"].height == 4
    assert "<svg" in study._repr_html_()
    assert study.plot("splits").to_dict()["$schema"]
    del study
    gc.collect()
    assert not folder.exists()


def test_an_unknown_table_or_figure_suggests_the_near_one(tiny_model: Path) -> None:
    study = fe.bias(PAIRS, models=str(tiny_model))
    with pytest.raises(UnknownName, match="did you mean 'splits'"):
        study.plot("split")
    with pytest.raises(UnknownName, match="did you mean 'curves'"):
        study["curve"]


def test_the_same_command_resumes_and_another_is_refused(
    tiny_model: Path, pairs: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    fe.bias(pairs, models=str(tiny_model), out=folder)
    before = {path.name: path.read_bytes() for path in folder.glob("*.csv")}
    fe.bias(pairs, models=str(tiny_model), out=folder)
    assert {path.name: path.read_bytes() for path in folder.glob("*.csv")} == before
    with pytest.raises(BadInput, match=r"another sample \(none, now 1\)"):
        fe.bias(pairs, models=str(tiny_model), out=folder, sample=1)
    PAIRS.head(3).write_csv(pairs)
    with pytest.raises(BadInput, match="data of the study"):
        fe.bias(pairs, models=str(tiny_model), out=folder)


def test_a_folder_with_a_run_is_refused(tiny_model: Path, pairs: Path, tmp_path: Path) -> None:
    fe.evaluate(pairs, fe.model(str(tiny_model)), out=tmp_path / "run")
    with pytest.raises(BadInput, match="contains a run"):
        fe.bias(pairs, models=str(tiny_model), out=tmp_path / "run")


def test_a_changed_table_is_refused_and_a_page_is_written_again(
    tiny_model: Path, pairs: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    fe.bias(pairs, models=str(tiny_model), out=folder)
    page = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    assert report_study(folder).read_bytes() == page
    analyse_study(folder)
    assert report_study(folder).read_bytes() == page
    (folder / "splits.csv").write_text("model\nother\n")
    with pytest.raises(BadInput, match=r"splits\.csv was changed"):
        read_study(folder)


def test_two_models_of_one_name_are_refused(tiny_model: Path, pairs: Path, tmp_path: Path) -> None:
    twin = tmp_path / "other" / tiny_model.name
    twin.parent.mkdir()
    twin.symlink_to(tiny_model)
    with pytest.raises(BadInput, match="Two models are called"):
        fe.bias(pairs, models=[str(tiny_model), str(twin)])


@pytest.mark.parametrize("name", list(STUDIES))
def test_every_setting_is_an_option_with_help_and_a_keyword(cli: Cli, name: str) -> None:
    shown = cli(name, "--help").out
    function = getattr(fe, name)
    assert function.__doc__
    for field in STUDIES[name].settings.__dataclass_fields__.values():
        about = field.metadata["option"]
        assert about.help.endswith((".", "]")), field.name
        assert (
            about.metavar or field.name.upper()
            if about.positional
            else about.flag or f"--{field.name.replace('_', '-')}"
        ) in shown
        assert f"{field.name}: {about.help}" in function.__doc__
