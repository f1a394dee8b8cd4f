"""Readers of formats whose files are not at hand, on rows of the documented form; and none drops a row."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from felicity.core.errors import BadInput, FelicityError
from felicity.data.catalogue import read_dataset
from felicity.data.entry import load_entries
from felicity.data.formats import FORMATS, read_headed, read_headless, read_pair_lines
from felicity.data.rows import read_item_rows

COMPS = {
    "id": 1,
    "property": "can fly",
    "acceptable_concept": "gull",
    "unacceptable_concept": "sofa",
    "prefix_acceptable": "A gull",
    "prefix_unacceptable": "A sofa",
    "property_phrase": "can fly.",
    "negative_sample_type": "random",
    "similarity": 0.1,
}


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_comps_scores_the_property_after_either_concept(tmp_path: Path) -> None:
    write(tmp_path / "comps_base.jsonl", [COMPS])
    data = read_dataset("comps_base", folder=tmp_path)
    rows = data.items.select("item", "suite", "condition", "context_text", "text").rows()
    assert rows == [
        ("random/1", "random", "good", "A gull", "can fly."),
        ("random/1", "random", "bad", "A sofa", "can fly."),
    ]


def test_comps_wugs_keeps_its_premise_in_the_context(tmp_path: Path) -> None:
    prefixes = {
        f"prefix_{side}": f"A wug is a {what}. Therefore, a wug"
        for side, what in (("acceptable", "gull"), ("unacceptable", "sofa"))
    }
    write(tmp_path / "comps_wugs.jsonl", [COMPS | prefixes])
    good = read_dataset("comps_wugs", folder=tmp_path).items.row(0, named=True)
    assert good["context_text"] == "A wug is a gull. Therefore, a wug"


def test_cola_has_no_header_and_no_quotes(tmp_path: Path) -> None:
    for name in ("in_domain_train", "in_domain_dev", "out_of_domain_dev"):
        (tmp_path / f"{name}.tsv").write_text('gj04\t1\t\t"It rains," he said.\nb_73\t0\t*\tRains it.\n')
    items = read_dataset("cola", folder=tmp_path).items
    assert items.select("suite", "rating", "text").rows()[:2] == [
        ("gj04", 1.0, '"It rains," he said.'),
        ("b_73", 0.0, "Rains it."),
    ]
    assert items["item"].n_unique() == len(items) == 6


def test_a_row_of_cola_with_too_few_cells_is_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "in_domain_dev.tsv"
    path.write_text("gj04\t1\t\tIt rains.\ngj04\t1\n")
    with pytest.raises(BadInput, match="line 2: 2 cells instead of 4"):
        read_headless(path, load_entries()["cola"])


def test_lines_that_end_within_a_pair_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "NEG.txt"
    path.write_text("A cat is an animal,\nA cat is not a tool,\nA dog is an animal,")
    with pytest.raises(BadInput, match="3 sentences, an odd number"):
        read_pair_lines(path, load_entries()["role_1500"])


def test_a_file_of_something_else_is_refused_by_its_first_missing_field(tmp_path: Path) -> None:
    write(tmp_path / "comps_base.jsonl", [{"sentence": "A gull can fly."}])
    with pytest.raises(BadInput, match="has no field 'negative_sample_type'; it is not a file of comps_base"):
        read_dataset("comps_base", folder=tmp_path)


def test_rows_that_cannot_be_used_are_reported_with_line_and_reason(tmp_path: Path) -> None:
    rows = [COMPS, COMPS | {"prefix_acceptable": " "}, COMPS | {"property_phrase": ["can fly"]}]
    write(tmp_path / "comps_base.jsonl", rows)
    data = read_dataset("comps_base", folder=tmp_path)
    assert data.left_out.rows() == [
        ("comps_base.jsonl", 2, "'prefix_acceptable' is empty"),
        ("comps_base.jsonl", 3, "'property_phrase' is not text"),
    ]
    assert data.items["item"].n_unique() + data.left_out.height == data.rows == 3


CELL = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.floats(allow_nan=False),
    st.text(max_size=12),
    st.lists(st.integers(), max_size=2),
    st.sampled_from(["stereo", "gender", "1", "0", "33", "a-b"]),
)
FIELDS = {
    name: sorted(
        {"pairID", "UID", "linguistics_term", "sentence_good", "sentence_bad", "one_prefix_method"}
        | {"bias_type", "sent_more", "sent_less", "stereo_antistereo", "verb", "item", "sent", "bias"}
        | {"isHigh", "gender", "negative_sample_type", "prefix_acceptable", "prefix_unacceptable"}
        | {"property", "property_phrase", "context", "expected", "target", "context_aff", "context_neg"}
        | {"target_aff", "target_neg", "licensing", "ID", "translated", "source-language", "sentence"}
        | {"mean-ratings", "constraint", "context_s1", "context_s2", "within_category", "between_category"}
    )
    for name in load_entries()
    if load_entries()[name].format == "table"
}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_rows_in_are_rows_out_and_rows_reported(tmp_path: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(FIELDS)))
    entry = load_entries()[name]
    row = st.fixed_dictionaries(dict.fromkeys(FIELDS[name], CELL))
    rows = data.draw(st.lists(row, min_size=1, max_size=6))
    path = write(tmp_path / "context-real-ratings.jsonl", rows)
    for method in entry.methods.values():
        try:
            found = read_item_rows(read_headed(path, entry), entry, method)
        except FelicityError:
            continue
        stimuli = len(method.stimuli)
        assert found.read + found.left_out.height == len(rows)
        assert found.items.height == stimuli * found.read
        assert found.items["text"].str.len_chars().min() != 0


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200), form=st.sampled_from(sorted(FORMATS)))
def test_no_bytes_bring_a_reader_down(tmp_path: Path, content: bytes, form: str) -> None:
    entry = next(entry for entry in load_entries().values() if entry.format == form)
    entry = entry.narrow("all")[0]
    path = tmp_path / f"any{Path(entry.files[0]).suffix}"
    path.write_bytes(content)
    try:
        found = FORMATS[form]([path], entry, next(iter(entry.methods.values())))
    except FelicityError:
        return
    assert isinstance(found.items, pl.DataFrame)
