"""Paired frames and targets crossed: each frame also with the target of its partner.

NEG and ROLE give two frames an item, each with its own target. Without knowing the model's whole
vocabulary one can still ask whether a target fits its own frame better than the other frame, or its
frame better than the other target.
"""

import polars as pl

ARTICLES = ("a", "an")


def cross_targets(items: pl.DataFrame) -> pl.DataFrame:
    """Items with further rows: condition `x:y` is the frame of condition x with the target of condition y.

    The article before a target goes with the target. Items whose two targets are the same word are left
    as they are, for nothing can be asked of them.
    """
    made = []
    for (_,), pair in items.group_by("item", maintain_order=True):
        rows = pair.to_dicts()
        made += rows
        if len(rows) != 2 or rows[0]["text"] == rows[1]["text"]:
            continue
        for own, other in (rows, rows[::-1]):
            made.append(
                own
                | {
                    "condition": f"{own['condition']}:{other['condition']}",
                    "context_text": _with_article(own["context_text"], other["context_text"]),
                    "text": other["text"],
                }
            )
    return pl.DataFrame(made, schema=items.schema)


def _with_article(frame: str, other: str) -> str:
    """A frame with the article that the other frame ends in, where both end in one.

    >>> _with_article("A cat is an", "A cat is not a")
    'A cat is a'
    """
    head, _, article = frame.rpartition(" ")
    wanted = other.rpartition(" ")[2]
    return f"{head} {wanted}" if article in ARTICLES and wanted in ARTICLES else frame
