"""Runs at the edge: the page must stand and tell the truth about little, odd or missing content."""

from collections.abc import Callable

import polars as pl

from felicity.core.schemas import TOKENS
from felicity.report import ReportInput, render_report

Run = Callable[..., ReportInput]
MakePair = Callable[..., object]


def test_a_single_pair_has_a_report_without_breakdowns(make_run: Run, make_pair: MakePair) -> None:
    page = render_report(
        make_run([make_pair(item="1", good="The cats annoy Tim.", bad="The cats annoys Tim.")])
    )
    assert "of 1 pair judged right" in page
    assert 'id="suites"' not in page
    assert 'id="phenomena"' not in page


def test_ties_are_counted_and_not_called_wrong(make_run: Run, make_pair: MakePair) -> None:
    pairs = [
        make_pair(
            item=str(place), good="Go on", bad="Go off", good_logprob=[-2.0, -1.0], bad_logprob=[-2.0, -1.0]
        )
        for place in range(5)
    ]
    page = render_report(make_run(pairs))
    assert "No pair was judged wrong." in page
    assert ">50.0<" in page
    assert "5 ties" in page
    assert page.count("tie, within noise") == 5


def test_a_token_without_probability_is_marked_not_scored(make_run: Run, make_pair: MakePair) -> None:
    pair = make_pair(
        item="1", good="Go on", bad="Go off", good_logprob=[None, -1.0], bad_logprob=[None, -2.0]
    )
    page = render_report(make_run([pair]))
    assert page.count("not scored") == 2
    assert 'class="t u"' in page


def test_pairs_of_identical_texts_are_not_called_uncertain(make_run: Run, make_pair: MakePair) -> None:
    page = render_report(
        make_run(
            [
                make_pair(
                    item="1", good="Go on", bad="Go on", good_logprob=[-1.0, -1.0], bad_logprob=[-1.0, -1.0]
                )
            ]
        )
    )
    assert "There is no pair of two different texts" in page


def test_an_empty_audit_is_said_to_be_missing(make_run: Run, make_pair: MakePair) -> None:
    page = render_report(make_run([make_pair(item="1", good="I go", bad="I goes")], audit=False))
    assert "This run has no audit." in page


def test_a_very_long_sentence_is_shown_about_its_difference(make_run: Run, make_pair: MakePair) -> None:
    start = "The cat " + "and the dog " * 400
    page = render_report(make_run([make_pair(item="1", good=start + "sleep.", bad=start + "sleeps.")]))
    assert page.count("tokens before") == 2
    assert ">sleeps</span>" in page
    assert len(page) < 200_000


def test_a_shared_context_is_shown_once_and_shortened(make_run: Run, make_pair: MakePair) -> None:
    context = "First words. " + "Cats are everywhere. " * 50
    page = render_report(make_run([make_pair(item="1", good="I go", bad="I goes", context=context)]))
    assert "Cats are everywhere. Cats are everywhere." in page
    assert page.count('<span class="tag">context</span>') == page.count('<li class="case">')
    assert "First words" not in page


def test_a_run_whose_tokens_are_gone_shows_plain_sentences(make_run: Run, make_pair: MakePair) -> None:
    run = make_run([make_pair(item="1", good="I go", bad="I goes")])
    tables = {name: getattr(run, name) for name in run.__dataclass_fields__}
    page = render_report(ReportInput(**(tables | {"tokens": pl.DataFrame(schema=TOKENS)})))
    assert '<p class="sentence plain" dir="auto">I goes</p>' in page


def test_a_measure_without_unit_is_shown_without_one(make_run: Run, make_pair: MakePair) -> None:
    page = render_report(make_run([make_pair(item="1", good="I go", bad="I goes")], measures=("norm_lp",)))
    assert "margin (nats)" not in page
    assert " bits)</small>" not in page


def test_an_estimate_that_is_not_a_number_is_a_dash_and_stays_out_of_figures(
    make_run: Run, make_pair: MakePair
) -> None:
    names = ("one", "two", "three")
    run = make_run(
        [make_pair(item=name, suite=name, phenomenon=name, good="I go", bad="I goes") for name in names]
    )
    tables = {name: getattr(run, name) for name in run.__dataclass_fields__}
    lost = pl.when(pl.col("name") == "two").then(float("nan"))
    blank = run.estimates.with_columns(
        lost.otherwise(column).alias(column) for column in ("accuracy", "low", "high")
    )
    page = render_report(ReportInput(**(tables | {"estimates": blank})))
    assert '<td class="num short">–</td>' in page
    assert "nan" not in page.partition("</style>")[2].partition("<script>")[0].lower()
    assert "Accuracy by phenomenon: 2 rows" in page


def test_designs_other_than_pairs_have_no_chance_line(make_run: Run, make_pair: MakePair) -> None:
    run = make_run([make_pair(item="1", good="I go", bad="I goes")])
    tables = {name: getattr(run, name) for name in run.__dataclass_fields__}
    renamed = run.items.with_columns(
        condition=pl.col("condition").replace({"good": "match", "bad": "mismatch"})
    )
    page = render_report(ReportInput(**(tables | {"items": renamed})))
    assert "chance" not in page.partition("</style>")[2].partition("<script>")[0]
    assert "of 1 item judged right" in page
