"""Cloze sets: which frames, which targets, and which small set a large one extends."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from felicity.core.documents import is_document
from felicity.core.errors import BadInput, NotPossible
from felicity.core.ids import fingerprint
from felicity.core.settings import Data
from felicity.data import (
    Dataset,
    is_table,
    read_dataset,
    read_table,
    refuse_other_columns,
    sample_items,
    take_frame,
)
from felicity.run import list_target_conditions
from felicity.stimuli import Pair

if TYPE_CHECKING:
    # The settings register every study, this one too, and so cannot be read first.
    from felicity.studies.cloze.settings import ClozeSettings

# The published extensions of Ettinger's sets, and the model that wrote two of them.
EXTENDS = {
    "neg_1500_simp_temp": "neg_136_simp",
    "neg_1500_simp_gen": "neg_136_simp",
    "role_1500": "role_88",
}
WRITTEN_BY = {"neg_1500_simp_gen": "text-davinci-002", "role_1500": "text-davinci-002"}
# Names under which the same model goes.
ALIASES = {"text-davinci-002": ("text-davinci-002", "davinci-002", "gpt3", "gpt-3")}
UNKNOWN_WRITER = ""


@dataclass(frozen=True)
class ClozeSet:
    """A cloze dataset as the study uses it.

    items: one row per frame, with item, condition, context_text, target, and contrast: the target of the
    partner, null if it is the same word. targets: conditions whose target is searched for. change: the
    two conditions between which the likeliest word may change. written_by: the model that wrote it.
    sample: only this many items of each suite, drawn with the seed. looked_for: the targets, in words.
    data: the dataset it was read from.
    """

    name: str
    items: pl.DataFrame
    targets: tuple[str, ...]
    change: tuple[str, ...]
    written_by: str = UNKNOWN_WRITER
    sample: int | None = None
    seed: int = 0
    looked_for: str = ""
    data: Dataset | None = None

    @property
    def label(self) -> str:
        """A short name for tables and folders."""
        path = Path(self.name)
        return path.parent.name or path.stem if path.stem == "dataset" else path.stem

    @property
    def key(self) -> str:
        """The same frames, targets and contrasts have the same key."""
        return fingerprint(
            self.items.select("item", "condition", "context_text", "target", "contrast").rows()
        )


def read_cloze_set(
    given: Data, *, sample: int | None = None, seed: int = 0, affirmative: str | None = None
) -> ClozeSet:
    """A dataset by its name, a cloze file, the folder of an extension, or a frame with a file's columns.

    sample: only this many items of each suite. affirmative: the condition of a file whose targets are looked
    for; by default those of all conditions are.

    Raises NotPossible if it has no cloze frames, BadInput naming the columns that a file lacks.
    """
    data, name = _read(given, affirmative)
    if data.rule != "cloze":
        raise NotPossible(f"'{name}' has no cloze frames; `felicity data show {name}` lists its rules.")
    wanted = {*data.targets, *data.change}
    rows = (
        sample_items(data.items, sample, seed=seed)
        .filter(pl.col("condition").is_in(list(wanted)))
        .rename({"text": "target"})
    )
    rows = rows.with_columns(pl.concat_str("suite", "item", separator="/").alias("item"))
    partner = dict(zip(data.change, reversed(data.change), strict=True))
    other = rows.select("item", condition=pl.col("condition").replace(partner), contrast="target")
    joined = rows.join(other, on=["item", "condition"], how="left", maintain_order="left")
    same = pl.col("contrast") == pl.col("target")
    items = joined.with_columns(pl.when(same).then(None).otherwise(pl.col("contrast")).alias("contrast"))
    writer = data.items["written_by"][0] if "written_by" in data.items.columns else WRITTEN_BY.get(name)
    return ClozeSet(
        name=name,
        items=items.select("item", "condition", "context_text", "target", "contrast"),
        targets=tuple(data.targets),
        change=tuple(data.change),
        written_by=writer or UNKNOWN_WRITER,
        sample=sample,
        seed=seed,
        looked_for=list_target_conditions(data),
        data=data,
    )


def _read(given: Data, affirmative: str | None) -> tuple[Dataset, str]:
    """The dataset and its name; a named dataset is read by its cloze rule."""
    if not isinstance(given, str | Path):
        return take_frame(given, affirmative=affirmative), "frame"
    name = str(given)
    source = find_file(name)
    if Path(source).is_file() and is_table(source) and not is_document(Path(source)):
        refuse_other_columns(read_table(Path(source)).columns, Path(source))
    if Path(source).suffix:
        return replace(read_dataset(source, affirmative=affirmative), name=source), name
    return read_dataset(source, rule="cloze"), name


def find_file(name: str) -> str:
    """The dataset in the folder of an extension; any other name as it is.

    Raises BadInput if the folder has no dataset yet.
    """
    path = Path(name)
    if not path.is_dir():
        return name
    if not (path / "dataset.parquet").exists():
        raise BadInput(
            f"{name} has no dataset.parquet; review it first, with `felicity stimuli review {name}`."
        )
    return str(path / "dataset.parquet")


def read_cloze_pairs(name: str) -> list[Pair]:
    """The sentences of a cloze dataset in pairs, each frame with its target."""
    data = read_cloze_set(name)
    if len(data.change) != 2:
        raise NotPossible(f"The frames of '{name}' do not come in pairs.")
    whole = data.items.with_columns(pl.concat_str("context_text", "target", separator=" ").alias("sentence"))
    pairs = []
    for (item,), part in whole.group_by("item", maintain_order=True):
        said = dict(part.select("condition", "sentence").iter_rows())
        if all(condition in said for condition in data.change):
            pairs.append(Pair(str(item).rpartition("/")[2], *(said[one] for one in data.change)))
    return pairs


def find_extensions(names: Sequence[str], given: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Small sets and their extensions among the datasets; `given` adds some, written SMALL:LARGE.

    Raises BadInput if one of them is not among the datasets.
    """
    found = [(small, large) for large, small in EXTENDS.items() if {small, large} <= set(names)]
    for text in given:
        small, colon, large = text.partition(":")
        if not colon or small not in names or large not in names:
            raise BadInput(f"--against {text} is not SMALL:LARGE with two of the datasets.")
        found.append((small, large))
    return list(dict.fromkeys(found))


def read_cloze_sets(settings: "ClozeSettings") -> dict[str, ClozeSet]:
    """Datasets by their labels, under the conditions of `read_cloze_set`.

    Raises BadInput if two have the same label, if no file has the condition `affirmative`, or if a small set
    and its extension would be judged by targets of different conditions.
    """
    names, affirmative = settings.datasets, settings.affirmative
    read = [
        read_cloze_set(name, sample=settings.sample, seed=settings.seed, affirmative=affirmative)
        for name in names
    ]
    sets = {data.label: data for data in read}
    if len(sets) < len(names):
        raise BadInput("Two datasets have the same name; rename a file, or leave one out.")
    if affirmative is not None and all(
        isinstance(name, str) and not Path(find_file(name)).suffix for name in names
    ):
        raise BadInput(
            "--affirmative is for cloze files; the datasets named here say it themselves; omit it."
        )
    for small, large in find_extensions(list(sets), settings.against):
        if _takes_all(sets[small]) != _takes_all(sets[large]):
            raise BadInput(
                f"{small} has the {sets[small].looked_for}, {large} the {sets[large].looked_for}; these are "
                "not comparable: name the condition of the file with --affirmative."
            )
    return sets


def _takes_all(data: ClozeSet) -> bool:
    """Whether both members of a pair have a target that is looked for."""
    return set(data.change) <= set(data.targets)


def wrote_items(data: ClozeSet, *, name: str, spec: str) -> bool:
    """Whether a model would be judged on items that it wrote itself."""
    if not data.written_by:
        return False
    writer = data.written_by.lower()
    known = {spec.lower(), spec.lower().removeprefix("openai:"), name.lower()}
    return bool(known & {writer, *ALIASES.get(writer, ())})
