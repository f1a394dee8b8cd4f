"""A smaller dataset: some items of each suite, drawn by a seed."""

import numpy as np
import polars as pl

from felicity.core.errors import BadInput


def sample_items(items: pl.DataFrame, size: int | None, *, seed: int) -> pl.DataFrame:
    """At most `size` items of each suite, both conditions of each; all of them without a size.

    Raises BadInput for a size below one.
    """
    if size is None:
        return items
    if size < 1:
        raise BadInput(f"A sample of {size} items a suite holds nothing; ask for at least 1.")
    names = items.select("suite", "item").unique(maintain_order=True)
    rng = np.random.default_rng(seed)
    chosen: list[str] = []
    for _, suite in names.group_by("suite", maintain_order=True):
        places = rng.permutation(len(suite))[:size]
        chosen += suite["item"].gather(np.sort(places)).to_list()
    return items.filter(pl.col("item").is_in(chosen))
