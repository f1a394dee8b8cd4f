"""ARPA files: written and read back whole, read as others write them, refused by the line."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import Policy
from felicity.engines.ngram.arpa import read_arpa, read_header
from felicity.engines.ngram.training import train_ngram
from felicity.run.model import open_model

# Numbers of no particular meaning; `b c` and so the beginning of `b c d` is missing, as after pruning.
FOREIGN = """
Some words by the program that wrote this.

\\data\\
ngram 1=6
ngram 2=2
ngram 3=1

\\1-grams:
-99\t<s>\t-0.5
-1.0\t</s>
-0.8\tb\t-0.2
-0.9 c   -0.3
-1.2\td
-2.0\t<UNK>\t-0.1

\\2-grams:
-0.4\t<s> b\t-0.25
-0.6\tc d

\\3-grams:
-0.05\tb c d

\\end\\
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def log10(path: Path, text: str, **policy: str) -> list[float | None]:
    lm = open_model(str(path), policy=Policy(**policy), cache=False)
    return [None if x is None else x / np.log(10) for x in lm.tokens(text)["logprob"].to_list()[0]]


def test_a_file_of_another_program_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "foreign.arpa", FOREIGN)
    # p(b|<s>) = -.4;  p(c|<s> b): back off by -.25 (<s> b) and -.2 (b) to -.9;  p(d|b c) = -.05.
    assert log10(path, "b c d") == pytest.approx([-0.4, -0.25 - 0.2 - 0.9, -0.05], abs=1e-6)
    # p(d|<s> c): <s> c is no history, so only -.5 and then c d.
    assert log10(path, "c d") == pytest.approx([-0.5 - 0.9, -0.6], abs=1e-6)
    # p(<unk>|<s>) = -.5 - 2;  p(b|<unk>) = -.1 - .8;  p(</s>|b) = -.2 - 1.
    found = log10(path, "zebra b", eos="auto")
    assert found == pytest.approx([-2.5, -0.9, -1.2], abs=1e-6)


def test_kenlm_agrees_on_a_file_of_another_program(tmp_path: Path) -> None:
    kenlm = pytest.importorskip(
        "kenlm", reason="the package kenlm is not here: pip install 'felicity[ngram]'"
    )
    # KenLM is stricter: tabs, and the beginning and end of every longer n-gram.
    strict = FOREIGN[FOREIGN.index("\\data") :].replace("-0.9 c   -0.3", "-0.9\tc\t-0.3")
    strict = strict.replace("-0.6\tc d", "-0.6\tc d\n-0.7\tb c\t-0.15").replace("2=2", "2=3")
    path = write(tmp_path / "foreign.arpa", strict)
    model = kenlm.Model(str(path))
    for text in ("b c d", "c d", "zebra b c d", "d c b", "b b c d d"):
        theirs = [score for score, *_ in model.full_scores(text)]
        assert log10(path, text, eos="auto") == pytest.approx(theirs, abs=1e-5)


def test_what_a_foreign_vocabulary_knows_whole_stays_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "foreign.arpa", FOREIGN.replace("\td\n", "\tc.d\n").replace(" d\n", " c.d\n"))
    tokens = open_model(str(path), cache=False).tokens("c.d b. (c)")["tokens"].to_list()[0]
    assert tokens == ["c.d", "b", "<unk>", "<unk>", "c", "<unk>"]


def test_written_and_read_back_it_is_the_same_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [" ".join(rng.choice(["un", "deux", "trois", "été"], size=7)) for _ in range(50)]
    corpus = write(tmp_path / "corpus.txt", "\n".join(lines))
    plain, packed = tmp_path / "m.arpa", tmp_path / "m.arpa.gz"
    train_ngram(corpus, plain, order=4, casing="lower", splitting="space")
    train_ngram(corpus, packed, order=4, casing="lower", splitting="space")
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    model = read_arpa(packed)
    header, words = read_header(plain)
    assert (
        (model.splitting, model.lower, model.order)
        == (header.splitting, header.lower, 4)
        == ("space", True, 4)
    )
    assert model.words == words
    assert header.counts == tuple(len(values) for values in model.logprob)


def test_an_arpa_file_is_known_by_its_content(tmp_path: Path) -> None:
    path = write(tmp_path / "model.lm", FOREIGN)
    assert open_model(str(path), cache=False).info.family == "ngram"


def test_a_closed_vocabulary_refuses_unknown_words_unless_they_are_left_out(tmp_path: Path) -> None:
    closed = FOREIGN.replace("-2.0\t<UNK>\t-0.1\n", "").replace("1=6", "1=5")
    path = write(tmp_path / "closed.arpa", closed)
    with pytest.raises(NotPossible, match="--policy unknown=skip"):
        log10(path, "b zebra c")
    # After an unknown word nothing is known of the history.
    assert log10(path, "b zebra c", unknown="skip") == pytest.approx([-0.4, None, -0.9], abs=1e-6)


DAMAGES = {
    "no data": (FOREIGN.replace("\\data\\", ""), "no line"),
    "no counts": (FOREIGN.replace("ngram 1=6\nngram 2=2\nngram 3=1\n", ""), "line 6: not 'ngram 1='"),
    "counts out of order": (FOREIGN.replace("ngram 2=2\n", ""), "line 6: not 'ngram 2='"),
    "too few n-grams": (FOREIGN.replace("ngram 2=2", "ngram 2=3"), r"line 20: not a number, 2 words"),
    "too many n-grams": (FOREIGN.replace("ngram 2=2", "ngram 2=1"), r"line 19: not '\\3-grams:'"),
    "cut off": (FOREIGN[: FOREIGN.index("-0.6\tc d")], r"ends after 1 of its 2 2-grams"),
    "no end": (FOREIGN.replace("\\end\\", ""), "is the file complete"),
    "no number": (FOREIGN.replace("-0.8\tb", "x\tb"), "line 12: 'x' is not the logarithm"),
    "positive": (FOREIGN.replace("-0.8\tb", "0.8\tb"), "line 12: '0.8' is not the logarithm"),
    "bad weight": (FOREIGN.replace("b\t-0.25", "b\t-o.25"), "line 18: '-o.25' is not a back-off weight"),
    "new word": (FOREIGN.replace("c d\n", "c e\n"), "line 19: 'e' is not among the 1-grams"),
    "word twice": (FOREIGN.replace("-1.2\td", "-1.2\tb"), "line 14: 'b' occurs in the file twice"),
    "n-gram twice": (FOREIGN.replace("-0.6\tc d", "-0.6\t<s> b"), "line 19: this n-gram occurs twice"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_by_the_line(tmp_path: Path, damage: str) -> None:
    text, said = DAMAGES[damage]
    path = write(tmp_path / "bad.arpa", text)
    with pytest.raises(BadInput, match=said):
        read_arpa(path)


def test_bad_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.arpa"
    path.write_bytes(FOREIGN.encode().replace(b"<s> b\t-0.25", b"<s> \xff\t-0.25"))
    with pytest.raises(BadInput, match="line 18: not UTF-8"):
        read_arpa(path)
    packed = tmp_path / "bad.arpa.gz"
    packed.write_bytes(gzip.compress(FOREIGN.encode())[:-12])
    with pytest.raises(BadInput, match="not a complete gzip file"):
        read_arpa(packed)


def test_a_missing_file_is_not_looked_for_on_the_hub(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no model folder or file 'absent\.arpa'"):
        open_model("absent.arpa")
    (tmp_path / "model.bin").write_bytes(b"something else")
    with pytest.raises(BadInput, match="KenLM file"):
        open_model(str(tmp_path / "model.bin"))
