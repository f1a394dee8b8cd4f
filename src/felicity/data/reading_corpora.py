"""Reading corpora by name: Natural Stories, UCL, Provo's cloze norms, MECO's word means, and SAP's items."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import data_folder, read_bytes, read_frame
from felicity.core.frames import Frame
from felicity.data.reading_words import Reading, assemble, read_words, rename_columns
from felicity.data.tables import is_table

# A word that ends a sentence, unless it is a title or an initial.
ENDS = r"""[.?!]['"”’)]*$"""
TITLES = ("Mr.", "Mrs.", "Ms.", "Dr.", "St.", "etc.")
ERPS = {"ELAN": "elan", "LAN": "lan", "N400": "n400", "EPNP": "epnp", "P600": "p600", "PNP": "pnp"}
MECO = ("du", "en", "fi", "ge", "gr", "he", "it", "ko", "ru", "sp", "tr")


def read_reading(
    source: str | Path | Frame,
    *,
    measures: tuple[str, ...] = (),
    folder: Path | None = None,
    language: str = "en",
    needed: bool = True,
) -> Reading:
    """A corpus by name, or a table of words and measures.

    folder: the user's own copy of a corpus. language: of MECO. needed: refuse a table without a measure.

    Raises UnknownName for a corpus that is not known, BadInput if its files are not found or a table cannot
    be used.
    """
    if isinstance(source, str | Path) and not is_table(str(source)):
        if str(source) not in CORPORA:
            raise UnknownName(
                "corpus", str(source), CORPORA, hint="give a known corpus or a file that exists"
            )
        whole = CORPORA[str(source)](folder, language)
        return _choose(whole, measures)
    return read_words(source, measures=measures, needed=needed)


def _choose(corpus: Reading, measures: tuple[str, ...]) -> Reading:
    """A corpus with only the measures asked for."""
    for name in measures:
        if name not in corpus.measures:
            raise UnknownName("measure", name, corpus.measures, where=corpus.name)
    if not measures:
        return corpus
    trials = corpus.trials
    if trials is not None:
        kept = [name for name in measures if name in trials.columns]
        trials = trials.select("text", "sentence", "position", "reader", *kept) if kept else None
    return replace(corpus, measures=tuple(dict.fromkeys(measures)), trials=trials)


def _find(name: str, file: str, folder: Path | None) -> Path:
    """A file of a corpus.

    Raises BadInput if it is not there.
    """
    known = data_folder()
    places = [folder, folder / name] if folder is not None else [known / name] if known is not None else []
    for place in places:
        for path in (place / file, place / Path(file).name):
            if path.is_file():
                return path
    where = f"{folder} lacks" if folder is not None else "there is no copy of"
    raise BadInput(
        f"{where[0].upper()}{where[1:]} {name}/{Path(file).name}; set $FELICITY_DATA to the folder with "
        f"{name}, or name your copy with --from."
    )


def _lines(path: Path, separator: str = "\t") -> pl.DataFrame:
    """A table whose cells are never quoted: words may be quotation marks."""
    return pl.read_csv(read_bytes(path), separator=separator, quote_char=None, infer_schema_length=None)


def _natural_stories(folder: Path | None, language: str) -> Reading:  # noqa: ARG001
    """Mean self-paced times of ten stories, each moved to the word it belongs to, one after the listed."""
    name = "natural_stories"
    listed = _lines(_find(name, "naturalstories_RTS/all_stories.tok.gz", folder))
    times = _lines(_find(name, "naturalstories_RTS/processed_wordinfo.tsv.gz", folder))
    times = times.select("item", pl.col("zone") + 1, pl.col("meanItemRT").alias("self_paced"))
    table = listed.join(times, on=["item", "zone"], how="left").sort("item", "zone")
    last = pl.col("word").str.contains(ENDS) & ~pl.col("word").is_in(TITLES)
    table = table.select(
        pl.col("item").cast(pl.String).alias("text"),
        last.shift(1, fill_value=False).cum_sum().over("item").add(1).cast(pl.String).alias("sentence"),
        "word",
        "self_paced",
    ).with_columns(position=pl.int_range(1, pl.len() + 1).over("text", "sentence"))
    note = (
        "The released times of Natural Stories are listed one word early, which its authors corrected in "
        "another file; each was moved to the next word of its story. Sentences end at final punctuation."
    )
    return assemble(name, table, ["self_paced"], notes=[note], language="en")


def _ucl(folder: Path | None, language: str) -> Reading:  # noqa: ARG001
    """UCL: self-paced and eye-tracking trials of 361 and 205 sentences, and ERP means of those 205."""
    name = "ucl_frank2013"
    table = read_frame(_find(name, "stimuli.csv.gz", folder)).select(
        pl.col("sent_id").cast(pl.String).alias("sentence"), pl.col("word_n").alias("position"), "word"
    )
    keys = [pl.col("sent_id").cast(pl.String).alias("sentence"), pl.col("word_n").alias("position")]
    paced = read_frame(_find(name, "spr_complete.csv.gz", folder))
    tracked = rename_columns(read_frame(_find(name, "et_rt.csv.gz", folder)).rename({"subj": "subj_et"}))
    trials = pl.concat(
        [
            paced.select(
                *keys, pl.format("spr {}", "subj").alias("reader"), pl.col("RT").alias("self_paced")
            ),
            tracked.select(
                pl.col("sentence").cast(pl.String),
                "position",
                pl.format("et {}", "subj_et").alias("reader"),
                *EYE_TRACKING,
            ),
        ],
        how="diagonal",
    ).with_columns(pl.col("self_paced", *EYE_TRACKING).cast(pl.Float64))
    foreign = paced.filter(pl.col("age_en") > 0)["subj"].n_unique()
    notes = [
        f"{foreign} of the {paced['subj'].n_unique()} self-paced readers learned English later; all count.",
        "A 0 in eye tracking is a word that was not fixated.",
    ]
    measures = ["self_paced", *EYE_TRACKING]
    erps = _find_erps(folder)
    if erps is None:
        notes.append("The ERP means of de Varda et al. (devarda2023/all_measures.csv.gz) are not here.")
    else:
        table, unmatched = _join_erps(table, erps)
        measures += list(ERPS.values())
        if unmatched:
            notes.append(f"{unmatched} words with ERPs were not found in the sentences and are left out.")
    table = table.with_columns(text=pl.col("sentence"))
    trials = trials.with_columns(text=pl.col("sentence"))
    return assemble(name, table, measures, trials=trials, notes=notes, language="en")


def _find_erps(folder: Path | None) -> pl.DataFrame | None:
    """ERP means by the text of the sentence, since its numbers there are not those of the corpus."""
    try:
        path = _find("devarda2023", "all_measures.csv.gz", folder)
    except BadInput:
        return None
    return read_frame(path).select(
        pl.col("sentence").str.strip_chars().alias("whole"),
        (pl.col("context_length") + 1).alias("position"),
        pl.col("word").alias("erp_word"),
        *(pl.col(old).alias(new) for old, new in ERPS.items()),
    )


def _join_erps(table: pl.DataFrame, erps: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The words with ERPs, and how many words with ERPs have no equal in the sentences."""
    whole = pl.col("word").str.join(" ").over("sentence", mapping_strategy="group_to_rows").alias("whole")
    joined = table.with_columns(whole).join(erps, on=["whole", "position"], how="left", maintain_order="left")
    same = pl.col("erp_word").str.strip_chars() == pl.col("word")
    found = int(joined.select(same.sum()).item())
    kept = [pl.when(same).then(name).alias(name) for name in ERPS.values()]
    return joined.with_columns(kept).drop("whole", "erp_word"), erps.height - found


def _provo(folder: Path | None, language: str) -> Reading:  # noqa: ARG001
    """Provo's cloze norms: the share of readers who guessed each word of 54 texts."""
    name = "provo_cloze"
    table = read_frame(_find(name, "provo_cloze.csv.gz", folder))
    texts = read_frame(_find(name, "provo_texts.csv.gz", folder))
    once = table.unique(["text_id", "word_n"], keep="first", maintain_order=True)
    written = texts.unique("text_id").select(
        "text_id", sentence_text=pl.col("text").str.replace_all('""', '"').str.strip_chars()
    )
    table = once.join(written, on="text_id", how="left", maintain_order="left").select(
        pl.col("text_id").cast(pl.String).alias("text"),
        pl.lit("1").alias("sentence"),
        pl.col("word_n").alias("position"),
        pl.col("word").str.replace_all('""', '"'),
        pl.col("cp").alias("cloze"),
        "sentence_text",
    )
    note = "Text 2 is absent from this copy and text 27 is listed twice; its second listing is left out."
    return assemble(name, table.sort("text", "position"), ["cloze"], notes=[note], language="en")


def _meco(folder: Path | None, language: str) -> Reading:
    """MECO: word means of eye tracking in one of 11 languages, from the user's copy of the merged tables."""
    if language not in MECO:
        raise UnknownName("language", language, MECO, where="MECO")
    table = read_frame(_find("wilcox2023", f"{language}.csv.gz", folder))
    table = rename_columns(table.unique(["trialid", "ianum"], keep="first", maintain_order=True))
    measures = [name for name in ("first_fixation", "first_pass", "total") if name in table.columns]
    table = table.sort("text", "position").select(
        pl.col("text").cast(pl.String), pl.lit("1").alias("sentence"), "position", "word", *measures
    )
    note = "Means count skipped words as 0 ms. Texts are not divided into sentences."
    return assemble("meco", table, measures, notes=[note], language=language)


def _sap(folder: Path | None, language: str) -> Reading:  # noqa: ARG001
    """SAP: garden paths, relative clauses and agreement, with observed effects by item; no single times."""
    name = "sap_benchmark"
    rows = []
    for file, (place, offset, conditions) in SAP.items():
        items = read_frame(_find(name, f"Surprisals/data/items_{file}.pivot.csv", folder))
        for row in items.iter_rows(named=True):
            if row["condition"] not in conditions:
                continue
            effect, side = conditions[row["condition"]]
            critical = int(row[place]) + offset
            moved = effect == "RC" and side == "hard"
            for at, word in enumerate(str(row["Sentence"]).split()):
                rows.append(
                    {
                        "text": f"{row['condition']}/{row['item']}",
                        "sentence": "1",
                        "position": at + 1,
                        "word": word,
                        "item": str(row["item"]),
                        "effect": effect,
                        "side": side,
                        "roi": OBJECT_CLAUSE.get(at - critical) if moved else at - critical,
                    }
                )
    effects = read_frame(_find(name, "effects_by_item.csv.gz", folder)).filter(pl.col("source") == "human")
    observed = effects.select(
        "effect",
        pl.col("item").cast(pl.String),
        pl.col("ROI").cast(pl.Int64).alias("roi"),
        pl.col("mean").alias("ms"),
    )
    notes = [
        "In relative clauses the words +1 and +2 are the article and the noun, which stand before the "
        "verb in object clauses; in items 42 and 45 the listed places are of other words.",
        "The single reading times of SAP are not released with its items, so times cannot be regressed here; "
        "observed effects are those of the authors' models. Attachment ambiguities are left out.",
    ]
    return assemble(name, pl.DataFrame(rows), [], notes=notes, language="en", effects={"observed": observed})


EYE_TRACKING = ("first_fixation", "first_pass", "right_bounded", "go_past")
# Relative clauses compare the same words: verb, article, noun. In "who the kids followed" the verb is last.
OBJECT_CLAUSE = {0: 0, -2: 1, -1: 2}
# Per file: the column of the critical word, what it needs to count from 0, and the conditions of each effect.
SAP: dict[str, tuple[str, int, dict[str, tuple[str, str]]]] = {
    "ClassicGP": (
        "disambPosition_0idx",
        0,
        {
            f"{kind}_{code}": (f"GPE_{kind}", side)
            for kind in ("MVRR", "NPS", "NPZ")
            for code, side in (("AMB", "hard"), ("UAMB", "easy"))
        },
    ),
    "RelativeClause": ("targetPosition", -1, {"RC_Obj": ("RC", "hard"), "RC_Subj": ("RC", "easy")}),
    "Agreement": ("disambPosition", -1, {"UNAGREE": ("Agr", "hard"), "AGREE": ("Agr", "easy")}),
}
CORPORA: dict[str, Callable[[Path | None, str], Reading]] = {
    "natural_stories": _natural_stories,
    "ucl": _ucl,
    "provo": _provo,
    "meco": _meco,
    "sap": _sap,
}
