"""Every sentence scored by a model without a context and in every context that people saw.

A masked model is asked in both ways of masking, an XLNet in both orders, unless the policy says which.
Unigram counts are those of a model's own tokens: from a table, or counted once per tokenizer from a corpus.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import polars as pl

from felicity.core.engine import refuse_changed
from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.core.files import replacing
from felicity.core.ids import hash_file
from felicity.core.policy import Policy
from felicity.core.progress import Progress
from felicity.core.watched import WatchedFiles
from felicity.data import LEFT_OUT, Dataset
from felicity.engines import open_tokenizer
from felicity.engines.tokenizing import count_tokens, read_lines
from felicity.measures import MEASURES, Unigram, needs_unigram, read_unigram, write_unigram
from felicity.run import Model, RunFolder, carry_out, plan_run, refuse_namesakes
from felicity.studies.acceptability.correlations import SCORES
from felicity.studies.acceptability.rated_rows import NONE
from felicity.studies.acceptability.ratings import RatedSentences

# The readings of a family: the field of the policy, and its values.
READINGS = {"masked": ("pll", ("original", "word_l2r")), "xlnet": ("order", ("left", "both"))}
OpenModel = Callable[[str, Policy], Model]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A model as one row of the table: `reading` is the value of the field that distinguishes its rows."""

    name: str
    lm: Model
    reading: str = ""

    @property
    def place(self) -> str:
        """The name of its folder."""
        return re.sub(r"[^\w.+-]+", "-", self.name).strip("-")


def open_readings(specs: Sequence[str], policy: Policy, open_one: OpenModel) -> Iterator[Reading]:
    """The models one after another, in every reading.

    Raises BadInput if two have the same name.
    """
    names: list[str] = []
    for spec in specs:
        lm = open_one(spec, policy)
        plain = Path(lm.info.name).name or lm.info.name
        names.append(plain)
        refuse_namesakes(names)
        field, values = READINGS.get(lm.info.family, ("", ()))
        if not values or getattr(policy, field) != "auto":
            yield Reading(name=plain, lm=lm)
            continue
        for value in values:
            yield Reading(
                name=f"{plain} {value}", lm=open_one(spec, policy.replace(**{field: value})), reading=value
            )


@dataclass(frozen=True, kw_only=True)
class CountSource:
    """Where unigram counts come from.

    tables: files by the model they are for; the key "" is for every model whose tokens it has. corpus: a text
    that is counted once per tokenizer, into `folder`. unseen: the share of tokens that a table may lack.
    """

    folder: Path
    tables: dict[str, Path]
    corpus: Path | None = None
    unseen: float = 0.05

    @classmethod
    def parse(
        cls, given: Sequence[str], *, corpus: Path | None, folder: Path, unseen: float
    ) -> "CountSource":
        """Tables as the command line gives them: FILE, or MODEL=FILE.

        Raises BadInput for two tables without a model.
        """
        tables: dict[str, Path] = {}
        for text in given:
            model, equals, file = text.partition("=")
            name, path = (model, file) if equals and not Path(text).exists() else ("", text)
            if name in tables:
                whose = f"for '{name}'" if name else "without a model; write MODEL=FILE"
                raise BadInput(f"Two unigram tables are given {whose}.")
            tables[name] = Path(path)
        return cls(folder=folder, tables=tables, corpus=corpus, unseen=unseen)

    def find(self, model: Reading, texts: Sequence[str]) -> tuple[Unigram | None, str, str]:
        """The counts for a model, where they come from, and a sentence if there are none.

        Raises NotPossible if the table given for this model was counted with another tokenizer.
        """
        named = next((self.tables[key] for key in (model.lm.spec, model.name) if key in self.tables), None)
        if named is not None:
            return read_unigram(named), str(named), ""
        if "" in self.tables:
            counts = read_unigram(self.tables[""])
            share = self._lacks(counts, model, texts)
            if share <= self.unseen:
                return counts, str(self.tables[""]), ""
            if self.corpus is None:
                return (
                    None,
                    "",
                    (
                        f"{self.tables['']} lacks {share:.0%} of the tokens of {model.name}, so it was "
                        "counted with "
                        "another tokenizer; norm_lp and slor of this model are left out."
                    ),
                )
        if self.corpus is not None:
            return self._count(model, self.corpus), str(self.corpus), ""
        return None, "", f"There are no unigram counts for {model.name}, so norm_lp and slor are left out."

    def _lacks(self, counts: Unigram, model: Reading, texts: Sequence[str]) -> float:
        """The share of the sentences' tokens, alone and after a space, that a table lacks."""
        shares = []
        for before in ("", " "):
            found = count_tokens(open_tokenizer(model.lm.spec), iter([before + text for text in texts]))
            unseen = sum(n for token, n in found.items() if not counts.counts.get(token))
            shares.append(unseen / max(sum(found.values()), 1))
        return max(shares)

    @cached_property
    def _corpus_file(self) -> WatchedFiles:
        """The corpus, whose counts are kept by its digest."""
        return WatchedFiles(partial(list, [self.corpus or Path()]), digest=hash_file)

    @cached_property
    def _corpus_digest(self) -> str:
        """The digest of the corpus, taken once: reading a large corpus for every model takes minutes."""
        return self._corpus_file.digest(self.corpus or Path())

    def _count(self, model: Reading, corpus: Path) -> Unigram:
        """Counts of the corpus in this model's tokens, kept in the folder with a digest.

        They are counted again if the corpus or tokenizer is another one, or the table is damaged.
        """
        path = self.folder / f"{model.lm.info.tokenizer[:16]}-{self._corpus_digest[:16]}.tsv"
        check = path.with_suffix(".sha256")
        if not _is_intact(path, check):
            try:
                tokenizer = open_tokenizer(model.lm.spec)
            except FelicityError as error:
                raise NotPossible(
                    f"The tokens of '{model.name}' cannot be counted here ({error}); count them elsewhere "
                    f"and give the table with --unigram {model.name}=FILE, or omit --corpus."
                ) from error
            with self._corpus_file.reading():
                counts = count_tokens(tokenizer, read_lines(corpus))
            refuse_changed(model.lm.engine)
            write_unigram(counts, path)
            with replacing(check) as part:
                part.write_text(f"{hash_file(path)}  {path.name}\n", encoding="ascii")
        return read_unigram(path)


def _is_intact(path: Path, check: Path) -> bool:
    """Whether a file is there and has the digest that is kept beside it."""
    try:
        return check.read_text(encoding="ascii", errors="replace").split()[:1] == [hash_file(path)]
    except OSError:
        return False


def build_stimuli(ratings: RatedSentences) -> pl.DataFrame:
    """One row per sentence and context that a model is given; `rating` is that of the same setting.

    Without ratings in the setting `none`, sentences without a context carry those of the first setting, so
    that a model can be asked without a context too.
    """
    parts = []
    for context in (NONE, *ratings.in_context):
        setting = context if context in ratings.settings else ratings.settings[0]
        own = ratings.contexts.filter(setting=context).select("item", "context_text")
        parts.append(
            ratings.sentences.join(own, on="item", how="left", maintain_order="left").with_columns(
                pl.lit(context).alias("condition"), pl.Series("rating", ratings.mean(setting))
            )
        )
    stimuli = pl.concat(parts)
    return stimuli.select("item", "suite", "phenomenon", "condition", "text", "context_text", "rating")


def choose_measures(asked: Sequence[str], counts: Unigram | None) -> list[str]:
    """The measures asked for, or all that are registered; without counts, those that need none."""
    wanted = list(asked) or list(MEASURES)
    needy = [] if counts else needs_unigram(wanted)
    return [name for name in wanted if name not in needy]


def score_reading(
    model: Reading,
    ratings: RatedSentences,
    folder: Path,
    *,
    measures: Sequence[str],
    counts: Unigram | None,
    origin: str,
    unseen: float,
    seed: int,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Rows of SCORES for one model; its run is kept in `folder`/models and resumes where it stopped.

    Raises NotPossible if no measure is left.
    """
    chosen = choose_measures(measures, counts)
    if not chosen:
        raise NotPossible(f"'{measures[0]}' needs unigram counts; give them with --unigram or --corpus.")
    stimuli = build_stimuli(ratings)
    data = Dataset(
        name=ratings.name,
        items=stimuli,
        rule="rating",
        method="rating",
        rows=len(stimuli),
        left_out=pl.DataFrame(schema=LEFT_OUT),
    )
    plan = plan_run(
        data,
        stimuli,
        model.lm,
        measures=chosen,
        counts=counts,
        unseen=unseen,
        seed=seed,
        options={"study": "acceptability", "unigram": origin or None},
    )
    place = RunFolder(folder / "models" / model.place)
    carry_out(model.lm, plan, place, progress=progress)
    requests = place.read("requests").select("request", "item", context="condition")
    scores = place.read("scores").filter(pl.col("measure").is_in(chosen))
    found = scores.join(requests, on="request", maintain_order="left").with_columns(
        pl.lit(model.name).alias("model")
    )
    return found.select(pl.col(name).cast(dtype) for name, dtype in SCORES.items())
