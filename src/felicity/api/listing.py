"""What there is to work with: datasets, models and measures, each as a frame; and a model itself."""

import polars as pl

from felicity.core.registry import BrokenPlugin
from felicity.data import list_datasets
from felicity.engines.sources import list_models
from felicity.measures import MEASURES
from felicity.run import open_model

model = open_model


def datasets() -> pl.DataFrame:
    """The named datasets: columns name, title, licence, rules, home.

    >>> import felicity as fe
    >>> "starter" in fe.datasets()["name"]
    True
    """
    return pl.DataFrame(list_datasets())


def models() -> pl.DataFrame:
    """The built-in model and those in the cache: columns name, origin, source, megabytes, folder.

    The folder is null for a model that is not downloaded yet.

    >>> import felicity as fe
    >>> fe.models()["name"][0]
    'smollm2'
    """
    rows = [
        {
            "name": entry.spec,
            "origin": entry.origin,
            "source": entry.source,
            "megabytes": round(entry.size / 1e6),
            "folder": str(entry.folder) if entry.folder else None,
        }
        for entry in list_models()
    ]
    return pl.DataFrame(rows, schema_overrides={"folder": pl.String})


def measures() -> pl.DataFrame:
    """The acceptability measures: columns name, needs, meaning.

    >>> import felicity as fe
    >>> fe.measures()["name"].to_list()[:3]
    ['lp', 'mean_lp', 'pen_lp']
    """
    rows = []
    for name in MEASURES:
        try:
            measure = MEASURES[name]
            wanted = [("--unigram", measure.unigram), ("--ratings", measure.rated)]
            needs = " ".join(option for option, needed in wanted if needed)
            meaning = measure.meaning
        except BrokenPlugin as error:
            needs, meaning = "", str(error)
        rows.append({"name": name, "needs": needs, "meaning": meaning})
    return pl.DataFrame(rows)
