"""Unigram counts of a model's own tokens: from a table, or counted once per tokenizer from a corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from felicity.core.engine import refuse_changed
from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.core.files import replacing
from felicity.core.ids import hash_file
from felicity.core.watched import WatchedFiles
from felicity.engines import open_tokenizer
from felicity.engines.tokenizing import count_pieces, read_lines
from felicity.measures import Unigram, read_unigram, write_unigram
from felicity.run import Model


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

    def find(self, lm: Model, name: str, texts: Sequence[str]) -> tuple[Unigram | None, str, str]:
        """The counts for a model called `name`, where they come from, and a sentence if there are none.

        Raises NotPossible if the table given for this model was counted with another tokenizer.
        """
        for key in (lm.spec, name, lm.info.name):
            if key in self.tables:
                return read_unigram(self.tables[key]), str(self.tables[key]), ""
        if "" in self.tables:
            counts = read_unigram(self.tables[""])
            share = _find_unseen(counts, lm, texts)
            if share <= self.unseen:
                return counts, str(self.tables[""]), ""
            if self.corpus is None:
                missing = (
                    f"{self.tables['']} lacks {share:.0%} of the tokens of {name}, so it was counted with "
                    "another tokenizer; norm_lp and slor of this model are left out."
                )
                return None, "", missing
        if self.corpus is not None:
            return self._count(lm, name, self.corpus), str(self.corpus), ""
        return None, "", f"There are no unigram counts for {name}, so norm_lp and slor are left out."

    @cached_property
    def _corpus_file(self) -> WatchedFiles:
        """The corpus, whose counts are kept by its digest."""
        return WatchedFiles(partial(list, [self.corpus or Path()]), digest=hash_file)

    @cached_property
    def _corpus_digest(self) -> str:
        """The digest of the corpus, taken once: reading a large corpus for every model takes minutes."""
        return self._corpus_file.digest(self.corpus or Path())

    def _count(self, lm: Model, name: str, corpus: Path) -> Unigram:
        """Counts of the corpus in this model's tokens, kept in the folder with a digest.

        They are counted again if the corpus or tokenizer is another one, or the table is damaged.
        """
        path = self.folder / f"{lm.info.tokenizer[:16]}-{self._corpus_digest[:16]}.tsv"
        check = path.with_suffix(".sha256")
        if not _is_intact(path, check):
            try:
                tokenizer = open_tokenizer(lm.spec)
            except FelicityError as error:
                raise NotPossible(
                    f"The tokens of '{name}' cannot be counted here ({error}); count them elsewhere "
                    f"and give the table with --unigram {name}=FILE, or omit --corpus."
                ) from error
            with self._corpus_file.reading():
                counts = count_pieces(tokenizer, read_lines(corpus))
            refuse_changed(lm.engine)
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


def _find_unseen(counts: Unigram, lm: Model, texts: Sequence[str]) -> float:
    """The share of the sentences' tokens, alone and after a space, that a table lacks."""
    shares = []
    for before in ("", " "):
        pieces = count_pieces(open_tokenizer(lm.spec), iter([before + text for text in texts]))
        unseen = sum(n for token, n in pieces.items() if not counts.counts.get(token))
        shares.append(unseen / max(sum(pieces.values()), 1))
    return max(shares)
