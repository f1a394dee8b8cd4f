"""Tables of unigram counts that cannot be read."""

from pathlib import Path

import pytest

from felicity.core.errors import BadInput
from felicity.measures import read_unigram


def test_a_count_that_no_corpus_has_is_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "counts.tsv"
    path.write_text("a\t5\nb\t" + "9" * 5000 + "\n")
    with pytest.raises(BadInput, match="line 2: not a token, a tab and a count"):
        read_unigram(path)
