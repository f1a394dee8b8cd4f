"""Datasets in other languages: sizes, identical pairs and people as published, and `--language`."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import read_bytes
from felicity.data.catalogue import Dataset, list_datasets, read_dataset
from felicity.data.entry import build_entry, load_entries
from felicity.data.languages import choose_languages, find_language, load_languages, match_languages
from felicity.data.locate import find_copy
from felicity.data.pairs import Columns

# Pairs (or rated sentences) of each language, suites, and identical pairs, counted in the published files by
# another program than this one; those of the papers are the same.
SIZES_BY_LANGUAGE: dict[str, tuple[dict[str, int], int, int]] = {
    "multiblimp": ({"en": 770, "nl": 2_331, "el": 1_096, "tr": 1_742}, 10, 0),
    "clams": ({"en": 157_346, "fr": 49_360, "de": 47_820, "he": 40_820, "ru": 40_120}, 50, 0),
    "rublimp": ({"ru": 45_000}, 45, 0),
    "turblimp": ({"tr": 16_000}, 16, 20),
    "turblimp_experimental": ({"tr": 2_200}, 22, 10),
    "sling": ({"zh": 40_560}, 54, 24),
    "zhoblimp": ({"zh": 35_400}, 118, 0),
    "lindsea": ({"id": 380, "ta": 470}, 85, 1),
    "qfrblimp": ({"fr-CA": 1_761}, 20, 18),
    "zorro": ({"en": 46_000}, 23, 0),
    "gulordava": ({"en": 410, "it": 1_190, "he": 3_730, "ru": 4_420}, 94, 31),
    "linzen2016": ({"en": 7_489}, 5, 4),
    "syntaxgym_mandarin": ({"zh": 670}, 18, 0),
    "kryvosheieva2025": ({"eu": 8_000, "hi": 6_000, "sw": 8_000}, 22, 0),
    "jcola": ({"ja": 6_919 + 865 + 685}, 37, 0),
    "hucola": ({"hu": 7_274 + 910}, 2, 0),
    "dalaj": ({"sv": 4_702 + 4_371}, 2, 0),
    "mega_acceptability": ({"en": 50_350}, 50, 0),
    "blimp_filtered": ({"en": 59_875}, 67, 7),
    "blimp_supplement": ({"en": 5_218}, 5, 0),
    "entity_tracking": ({"en": 9_483}, 18, 0),
    "wug_adj_nominalization": ({"en": 200}, 1, 0),
    "babylm_reading": ({"en": 1_726}, 1, 0),
}
# Reading these takes longer than counting their lines.
LARGE = ("clams",)


def read_all(name: str, rule: str | None = None) -> Dataset:
    return read_dataset(name, Columns(language="all"), rule=rule)


def count_identical(items: pl.DataFrame) -> int:
    texts = pl.concat_str(pl.col("^context_text$"), "text", separator=" ")
    kinds = items.group_by("item").agg(stimuli=pl.len(), kinds=texts.n_unique())
    return kinds.filter(pl.col("stimuli") > 1, pl.col("kinds") == 1).height


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in SIZES_BY_LANGUAGE if name not in LARGE])
def test_a_dataset_has_its_published_size_and_identical_pairs(
    name: str, published: Callable[[str], Path]
) -> None:
    entry = load_entries()[name]
    published(entry.folder)
    data = read_all(name)
    languages, suites, identical = SIZES_BY_LANGUAGE[name]
    items = data.items
    if not entry.parts:
        items = items.with_columns(language=pl.lit(entry.language))
    found = items.group_by("language").agg(pl.col("item").n_unique())
    assert dict(found.iter_rows()) == languages
    assert items["suite"].n_unique() == suites
    assert count_identical(items) == identical
    assert data.notes == ()
    assert items.select("item", "condition").is_unique().all()


@pytest.mark.data
def test_clams_has_its_published_size_in_five_languages(published: Callable[[str], Path]) -> None:
    published("clams")
    languages, suites, _ = SIZES_BY_LANGUAGE["clams"]
    parts = load_entries()["clams"].narrow("all")
    copies = {part.language: find_copy(part) for part in parts}
    lines = {
        tag: sum(len(read_bytes(path).splitlines()) for path in copy.paths)
        for tag, copy in copies.items()
        if copy
    }
    assert {tag: count // 2 for tag, count in lines.items()} == languages
    assert sum(len(part.files) for part in parts) == suites
    assert {copy.checksum for copy in copies.values() if copy} == {"published"}
    hebrew = read_dataset("clams", Columns(language="heb", suite="he/simple_agrmt"))
    assert hebrew.items["text"][:2].to_list() == ["ה מלצר רוקד", "ה מלצר רוקדים"]


@pytest.mark.data
def test_rated_sets_have_their_published_labels(published: Callable[[str], Path]) -> None:
    published("jcola")
    published("dalaj")
    japanese = read_all("jcola").items.group_by("phenomenon", maintain_order=True).agg(pl.col("rating").sum())
    assert japanese["rating"].to_list() == [5_769, 726, 502]
    swedish = (
        read_all("dalaj").items.group_by("suite", maintain_order=True).agg(wrong=(1 - pl.col("rating")).sum())
    )
    assert swedish["wrong"].to_list() == [2_278, 2_152]


@pytest.mark.data
def test_swedish_corrections_give_sentences_of_the_set(published: Callable[[str], Path]) -> None:
    published("dalaj")
    pairs = read_all("dalaj", rule="pair")
    assert pairs.items["item"].n_unique() == 2_278 + 2_152 - 181
    correct = read_all("dalaj").items.filter(pl.col("rating") == 1)["text"]
    corrected = pairs.items.filter(pl.col("condition") == "good")["text"]
    # Most corrected sentences are themselves in the set, which shows that spaces are put as in Swedish.
    assert corrected.is_in(correct.implode()).sum() == 3_489


@pytest.mark.data
def test_mandarin_garden_paths_have_pairs_but_no_target(published: Callable[[str], Path]) -> None:
    folder = published("syntaxgym_mandarin")
    pairs = read_all("syntaxgym_mandarin", rule="pair").items
    assert pairs["item"].n_unique() == 978
    # The file cls_total repeats 240 of them, which makes the 1,218 pairs of the repository.
    total = (folder / "test_suites/Classifier/cls_total_txt.txt").read_text().split("\n")
    assert pairs["item"].n_unique() + len([line for line in total if line]) // 2 == 1_218
    assert not pairs["text"].str.contains(" ").any()
    # The sentence without an object comes first in these files, and is the worse one.
    missing = read_dataset("syntaxgym_mandarin", Columns(suite="mobj_none_txt")).items[:2]
    assert missing["condition"].to_list() == ["good", "bad"]
    assert missing["context_text"].to_list() == ["记者采访了科学家", "记者采访了"]
    assert missing["text"].to_list() == ["。", "。"]


def mean_people(name: str, language: str = "all", *, weighted: bool = False) -> float:
    people = read_dataset(name, Columns(language=language)).people
    assert people is not None
    weights = people["n"] if weighted else pl.Series([1] * len(people))
    return float((people["people"] * weights).sum() / weights.sum())


@pytest.mark.data
def test_people_are_as_accurate_as_published(published: Callable[[str], Path]) -> None:
    for folder in ("turblimp", "zhoblimp", "qfrblimp", "gulordava"):
        published(folder)
    # Ties count half; the authors' strict 88.57 does not count them.
    assert mean_people("turblimp") == pytest.approx(0.9309, abs=5e-5)
    assert mean_people("zhoblimp", weighted=True) == pytest.approx(2_942 / 3_228)
    assert mean_people("qfrblimp", weighted=True) == pytest.approx(0.8745, abs=5e-5)
    italian = read_dataset("gulordava", Columns(language="it"))
    assert italian.people is not None
    sizes = italian.items.group_by("suite", "phenomenon").agg(items=pl.col("item").n_unique())
    shares = (
        italian.people.join(sizes, on="suite")
        .group_by("phenomenon")
        .agg((pl.col("people") * pl.col("items")).sum() / pl.col("items").sum())
    )
    assert dict(shares.iter_rows()) == pytest.approx({"it/original": 0.9453, "it/nonce": 0.8841}, abs=5e-5)


def test_a_language_is_found_by_tag_code_and_name() -> None:
    assert {find_language(asked).tag for asked in ("he", "heb", "Hebrew", "HE")} == {"he"}
    assert find_language("he").direction == "rtl"
    with pytest.raises(UnknownName, match="did you mean 'German'"):
        find_language("Germam")


def test_every_language_of_the_catalogue_is_in_the_table() -> None:
    tags = {tag for entry in load_entries().values() for tag in entry.languages}
    assert tags <= set(load_languages())
    assert all(entry.languages for entry in load_entries().values())


def test_a_language_asks_for_its_varieties_and_not_the_other_way_round() -> None:
    assert match_languages("fr", ["fr", "fr-CA", "fro"]) == ["fr", "fr-CA"]
    assert match_languages("fr-CA", ["fr"]) == []


def test_datasets_are_listed_by_language() -> None:
    assert {row["name"] for row in list_datasets("Swedish")} == {"dalaj"}
    assert {row["name"] for row in list_datasets("fra")} == {"clams", "qfrblimp"}
    with pytest.raises(UnknownName):
        list_datasets("xx")


def test_languages_are_not_mixed_unless_asked() -> None:
    with pytest.raises(BadInput, match=r"clams has 5 languages.*--language all"):
        read_dataset("clams")
    with pytest.raises(BadInput, match="starter is not in 'de' but in English"):
        read_dataset("starter", Columns(language="de"))
    assert choose_languages("x", ["de", "fr"], "all") == ["de", "fr"]


def test_a_language_that_the_entry_does_not_list_is_read_by_its_code(tmp_path: Path) -> None:
    (tmp_path / "ces").mkdir()
    rows = "sen\twrong_sen\tphenomenon\nVidím psa.\tVidíš psa.\tSV-P\n"
    (tmp_path / "ces" / "data.tsv").write_text(rows, encoding="utf-8")
    data = read_dataset("multiblimp", Columns(language="Czech"), folder=tmp_path)
    assert data.languages == ("cs",)
    assert data.items["suite"].unique().to_list() == ["cs/SV-P"]


def test_a_file_with_a_column_language_is_narrowed(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    rows = ["de,Die Katze schläft.,Die Katze schlafen.", "fr,Le chat dort.,Le chat dorment."]
    path.write_text("\n".join(["language,good,bad", *rows]) + "\n", encoding="utf-8")
    with pytest.raises(BadInput, match="pairs.csv has 2 languages"):
        read_dataset(str(path))
    assert read_dataset(str(path), Columns(language="German")).items["text"][0] == "Die Katze schläft."
    both = read_dataset(str(path), Columns(language="all"))
    assert both.items["suite"].unique(maintain_order=True).to_list() == ["de/pairs", "fr/pairs"]
    with pytest.raises(BadInput, match="no column 'language'"):
        (tmp_path / "plain.csv").write_text("good,bad\nA.,B.\n")
        read_dataset(str(tmp_path / "plain.csv"), Columns(language="de"))


@pytest.mark.parametrize(
    ("format", "content", "message"),
    [
        ("labelled lines", "True\tA cat sleeps\nTrue\tA cat sleep\n", "line 2: not 'False'"),
        ("labelled lines", "True\tA cat sleeps\n", "the last good sentence has no bad one"),
        ("json rows", "[1, 2]", "not an object"),
        ("json rows", "{", "neither a JSON array"),
        ("continuations", '[[["a", "b"], ["c", "d"]]]', "a pair with two prefixes"),
        ("continuations", "[1]", "is not a list of"),
        ("corrections", '{"sentence": "Jag är.", "label": "correct"}', "without 'meta'"),
    ],
)
def test_a_damaged_file_is_refused(format: str, content: str, message: str, tmp_path: Path) -> None:
    from felicity.data.formats import FORMATS

    path = tmp_path / "data.txt"
    path.write_text(content)
    fields = dict.fromkeys(("title", "licence", "home", "version", "citation"), "")
    spec = {"name": "x", "format": format, "folder": "x", "files": ["data.txt"]}
    method = {"rule": "contrast", "stimuli": [{"condition": "good", "text": "{good}"}]}
    entry = build_entry(fields | spec | {"methods": {"pair": method}})
    with pytest.raises(BadInput, match=message):
        FORMATS[format]([path], entry, entry.methods["pair"])
