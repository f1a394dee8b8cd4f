"""The originals: sentences from a list, or from documents, with the sentences before them and others from
elsewhere."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from felicity.core.errors import BadInput
from felicity.core.files import read_text

BEFORE = 3
SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[^\s])")
# A sentence to be rated has at least and at most this many words.
SHORTEST, LONGEST = 5, 40


@dataclass(frozen=True)
class Original:
    """A sentence; `real` is what stands before it, `unrelated` the same from another document, if known."""

    item: str
    text: str
    real: str = ""
    unrelated: str = ""


def read_originals(path: Path) -> list[Original]:
    """One sentence per line; empty lines are skipped.

    Raises BadInput for a file without sentences or with one twice.
    """
    lines = [line.strip() for line in read_text(path).split("\n")]
    kept = [line for line in lines if line]
    if not kept:
        raise BadInput(f"{path} has no sentences; write one per line.")
    twice = sorted({line for line in kept if kept.count(line) > 1}) if len(set(kept)) < len(kept) else []
    if twice:
        raise BadInput(f"{path} has the sentence '{twice[0][:60]}' twice; keep one.")
    return [Original(f"s{number}", text) for number, text in enumerate(kept, start=1)]


def read_documents(path: Path, *, n: int, seed: int = 0) -> list[Original]:
    """n sentences from documents, one per line, with contexts drawn as in the paper.

    The real context is the three sentences before it; the unrelated one three sentences in a row of another
    document. Sentences are separated by tabs, else found by their punctuation. No document gives two
    sentences until every document has given one.

    Raises BadInput if there are too few documents or sentences.
    """
    documents = [split_document(line.strip()) for line in read_text(path).split("\n") if line.strip()]
    places = {
        number: [
            at for at in range(BEFORE, len(sentences)) if SHORTEST <= len(sentences[at].split()) <= LONGEST
        ]
        for number, sentences in enumerate(documents)
    }
    usable = [number for number, found in places.items() if found]
    if len(usable) < 2:
        raise BadInput(
            f"{path} has {len(usable)} documents with a sentence of {SHORTEST} to {LONGEST} words after "
            f"{BEFORE} others; "
            "at least two are needed, one document per line."
        )
    rng = random.Random(seed)
    for found in places.values():
        rng.shuffle(found)
    made: list[Original] = []
    seen: set[str] = set()
    rounds = 0
    while len(made) < n:
        rng.shuffle(usable)
        before = len(made)
        for number in usable:
            if rounds < len(places[number]) and len(made) < n:
                at = places[number][rounds]
                text = documents[number][at]
                if text in seen:
                    continue
                seen.add(text)
                real = " ".join(documents[number][at - BEFORE : at])
                other = rng.choice([one for one in usable if one != number])
                start = rng.randrange(len(documents[other]) - BEFORE)
                unrelated = " ".join(documents[other][start : start + BEFORE])
                made.append(Original(f"d{number + 1}-{at + 1}", text, real, unrelated))
        rounds += 1
        if len(made) == before and rounds > max(len(places[number]) for number in usable):
            raise BadInput(f"{path} has {len(made)} usable sentences; {n} were asked for.")
    return made


def split_document(text: str) -> list[str]:
    """The sentences of a document.

    >>> split_document("It rained. She left.")
    ['It rained.', 'She left.']
    """
    parts: Sequence[str] = text.split("\t") if "\t" in text else SENTENCE_END.split(text)
    return [part.strip() for part in parts if part.strip()]
