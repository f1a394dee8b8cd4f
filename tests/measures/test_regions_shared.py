import polars as pl
import pytest

from felicity.core.schemas import TOKENS
from felicity.core.units import NATS_PER_BIT
from felicity.data.suites import Suite, build_suite_items
from felicity.design.requests import build_requests
from felicity.measures.sentence import score_shared
from felicity.measures.words import score_regions


def tokens(rows: dict[str, list[tuple[str, int, int, float | None]]]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "request": list(rows),
            "tokens": [[piece[0] for piece in row] for row in rows.values()],
            "start": [[piece[1] for piece in row] for row in rows.values()],
            "end": [[piece[2] for piece in row] for row in rows.values()],
            "logprob": [[piece[3] for piece in row] for row in rows.values()],
        },
        schema=TOKENS,
    )


def regions(metric: str, contents: list[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    suite = Suite(
        name="s",
        metric=metric,
        regions=tuple((str(n + 1), f"r{n + 1}") for n in range(len(contents))),
        predictions=("(1;%c%) < 1",),
        items={"1": {"c": contents}},
        lines={},
    )
    items = build_suite_items(suite)
    return items, build_requests(items)[0]


# "The cats annoy, Tim": tokens hold the space before them, or the one behind, or cross a boundary.
PIECES = [
    ("The", 0, 3, None),
    (" cat", 3, 7, -2 * NATS_PER_BIT),
    ("s", 7, 8, -1 * NATS_PER_BIT),
    (" annoy,", 8, 15, -4 * NATS_PER_BIT),
    (" Tim", 15, 19, -3 * NATS_PER_BIT),
]


@pytest.mark.parametrize(
    ("metric", "second"),
    [("sum", 3.0), ("mean", 1.5), ("median", 1.5), ("max", 2.0), ("min", 1.0), ("range", 1.0)],
)
def test_tokens_are_put_into_regions_by_character(metric: str, second: float) -> None:
    items, requests = regions(metric, ["The", "cats", "", "annoy", ",", "Tim"])
    found = score_regions(items, requests, tokens({"s/1/c": PIECES}))
    # An unscored token counts nowhere; the comma's own token began in the word before it.
    assert found["n_tokens"].to_list() == [0, 2, 0, 1, 0, 1]
    last = 0.0 if metric == "range" else 3.0
    middle = 0.0 if metric == "range" else 4.0
    assert found["surprisal_bits"].to_list() == pytest.approx([0.0, second, 0.0, middle, 0.0, last], abs=1e-6)


def test_a_repeated_word_is_not_taken_for_its_twin() -> None:
    items, requests = regions("sum", ["the cat", "saw", "the cat"])
    pieces = [
        ("the", 0, 3, -1.0),
        (" cat", 3, 7, -2.0),
        (" saw", 7, 11, -4.0),
        (" the", 11, 15, -8.0),
        (" cat", 15, 19, -16.0),
    ]
    found = score_regions(items, requests, tokens({"s/1/c": pieces}))
    assert (found["surprisal_bits"] * NATS_PER_BIT).to_list() == pytest.approx([3.0, 4.0, 24.0])


def test_shared_tokens_are_summed_in_each_sentence() -> None:
    requests = pl.DataFrame({"request": ["1/good", "1/bad"], "item": ["1", "1"]})
    table = tokens(
        {
            "1/good": [("The", 0, 0, -1.0), ("poor", 0, 0, -5.0), ("are", 0, 0, -2.0), ("loud", 0, 0, -3.0)],
            "1/bad": [
                ("The", 0, 0, -1.0),
                ("ri", 0, 0, -7.0),
                ("ch", 0, 0, -7.0),
                ("are", 0, 0, -4.0),
                ("loud", 0, 0, -3.5),
            ],
        }
    )
    errors = {"1/good": 0.1, "1/bad": 0.2}
    scores = score_shared(requests, table, errors=errors)
    assert scores.select("request", "value", "error").rows() == [("1/good", -6.0, 0.1), ("1/bad", -8.5, 0.2)]
