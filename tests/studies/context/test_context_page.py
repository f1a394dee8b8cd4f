"""The page about context: its sections come and go with the tables, and it prints what they say."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput
from felicity.studies.context.report.accuracy import build_change, build_models
from felicity.studies.context.report.contents import STYLES_OF_KINDS
from felicity.studies.context.report.correlations import build_links, build_regression, build_unrelated
from felicity.studies.context.report.page import (
    ContextPage,
    build_sections,
    render_context_page,
    write_context_page,
)
from felicity.studies.context.report.suites import build_gains, build_matrices
from tests.studies.context.context_tables import build_curves, build_study, build_terms

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PHENOMENA = ("binding", "ellipsis", "island_effects")
SUITES = ("principle_A_case_1", "npi_present_1", "wh_island")
FRAME = """<!DOCTYPE html><title>frame</title><p id="found"></p>
<iframe id="page" src="report.html" style="width:{width}px;height:900px;border:0"></iframe>
<script>
document.getElementById("page").addEventListener("load", (event) => {{
  const page = event.target.contentWindow.document;
  for (const details of page.querySelectorAll("details")) details.open = true;
  const wider = page.documentElement.scrollWidth - page.documentElement.clientWidth;
  const shown = (kind) => [...page.querySelectorAll("svg." + kind)].filter((svg) => svg.clientWidth).length;
  const dead = [...page.querySelectorAll("nav a")].filter((a) => !page.querySelector(a.hash));
  document.getElementById("found").textContent =
    `wider by ${{wider}};wide ${{shown("wide")}};narrow ${{shown("narrow")}};dead ${{dead.length}}`;
}});
</script>"""


@pytest.fixture(scope="module")
def study() -> ContextPage:
    return build_study(("smollm2", "org/opt"), phenomena=PHENOMENA, suites=SUITES)


@pytest.fixture(scope="module")
def bare() -> ContextPage:
    return ContextPage(dataset="mine", curves=build_curves(["m"], [("overall", "all")]))


def test_a_study_with_everything_has_every_section(study: ContextPage) -> None:
    names = [extra.name for extra in build_sections(study)]
    assert names == [
        *("change", "phenomena", "models", "ratio", "regression", "unrelated"),
        "link-baseline-and-longest-context",
        "link-perturbation-similarity-and-change",
        "link-token-F1-and-change",
        *("margins", "gains", "perturbations", "matrices", "regions"),
    ]


def test_what_a_study_has_not_is_not_on_the_page(bare: ContextPage) -> None:
    assert [extra.name for extra in build_sections(bare)] == ["change", "ratio", "margins"]
    page = render_context_page(bare)
    for name in ("regression", "matrices", "regions", "gains", "phenomena", "perturbations"):
        assert f'id="{name}"' not in page
    assert "Notes" not in page


def test_the_only_model_is_not_named_in_every_row(bare: ContextPage, study: ContextPage) -> None:
    assert build_sections(bare)[0].columns[0] == "Context"
    assert build_sections(bare)[0].rows[0][0] == "no context"
    assert build_sections(study)[0].columns[:2] == ("Model", "Context")


def test_curves_without_any_context_still_make_a_page(bare: ContextPage) -> None:
    page = render_context_page(replace(bare, curves=bare.curves.filter(pl.col("kind") == "none")))
    assert 'id="change"' not in page
    assert "no context" in page


def test_the_same_study_gives_the_same_bytes(bare: ContextPage) -> None:
    assert render_context_page(bare) == render_context_page(bare)


def test_the_table_gives_the_longest_context_in_points() -> None:
    curves = build_curves(["m"], [("overall", "all")], lengths=(100, 900)).with_columns(
        delta=pl.when(kind="matched_unacceptable", length=900).then(-0.2345).otherwise("delta"),
        delta_low=pl.when(kind="matched_unacceptable", length=900).then(-0.3).otherwise("delta_low"),
        delta_high=pl.when(kind="matched_unacceptable", length=900).then(-0.2).otherwise("delta_high"),
    )
    change = build_change(ContextPage(dataset="d", curves=curves))
    assert change is not None
    row = next(row for row in change.rows if row[1] == "matched, unacceptable")
    # -0.2345 in points to one decimal: -23.4 (half to even in binary: 23.45 is below the half).
    assert row[2] == "900"
    assert row[5:] == (f"−{23.45:.1f}", "−30.0 to −20.0")
    assert change.rows[0][1] == "no context"


def test_every_curve_starts_at_the_baseline_and_ends_at_its_delta(bare: ContextPage) -> None:
    change = build_change(bare)
    assert change is not None
    steps = change.figures[0].chart.args[0]  # type: ignore[attr-defined]
    last = bare.curves.filter(pl.col("length") == 900)
    for kind, delta in last.select("kind", "delta").iter_rows():
        own = [step for step in steps if step.series == kind.replace("_", ", ")]
        assert own[0][2:] == (0, 0.0, 0.0, 0.0)
        assert own[-1].y == pytest.approx(100 * delta)
        assert len(own) == 10


def test_perturbed_contexts_do_not_mix_with_those_as_they_stand(study: ContextPage) -> None:
    change = build_change(study)
    assert change is not None
    steps = change.figures[0].chart.args[0]  # type: ignore[attr-defined]
    assert len(steps) == 5 * 10  # five kinds, nine lengths and the start


def test_kinds_are_told_by_colour_and_line() -> None:
    assert len(set(STYLES_OF_KINDS.values())) == len(STYLES_OF_KINDS) == 5


def test_models_that_share_a_file_name_keep_their_own_figures() -> None:
    curves = build_curves(["org/opt", "org opt"], [("overall", "all")])
    change = build_change(ContextPage(dataset="d", curves=curves))
    assert change is not None
    assert [figure.name for figure in change.figures] == ["change_org-opt", "change_org-opt-2"]


def test_many_models_are_compared_a_few_at_a_time() -> None:
    curves = build_curves([f"m{place}" for place in range(12)], [("overall", "all")], lengths=(100,))
    models = build_models(ContextPage(dataset="d", curves=curves))
    assert models is not None
    assert [figure.name for figure in models.figures] == ["models", "kinds_1", "kinds_2"]


def test_the_regression_is_printed_as_in_a_paper(study: ContextPage) -> None:
    terms = build_terms(["m"]).with_columns(
        estimate=pl.lit(-1.23456),
        se=pl.lit(0.05),
        z=pl.lit(-24.69),
        p=pl.lit(1e-9),
        low=pl.lit(-1.3326),
        high=pl.lit(-1.1366),
    )
    section = build_regression(replace(study, terms=terms))
    assert section is not None
    assert section.columns == ("Term", "Estimate", "SE", "z", "p", "95% interval")
    last = section.rows[-1]
    assert last == (
        "log(length) × matched × acceptable",
        "−1.235",
        "0.050",
        "−24.69",
        "< .001",
        "−1.333 to −1.137",
    )
    assert section.notes == (
        "accuracy ~ log(length) * matched * acceptable + (1 | phenomenon); 120,600 judgements; "
        "phenomenon 12 (SD 0.61).",
    )


def test_a_model_that_could_not_be_fitted_says_why(study: ContextPage) -> None:
    terms = build_terms(["m"]).filter(pl.col("analysis") == "unrelated")
    failed = terms.with_columns(
        term=pl.lit(None, dtype=pl.String()), note=pl.lit("Not fitted: one suite only.")
    )
    section = build_unrelated(replace(study, terms=failed))
    assert section is not None
    assert section.rows == ()
    assert "Not fitted: one suite only." in section.notes[0]


def test_each_model_and_each_perturbation_has_its_own_terms(study: ContextPage) -> None:
    more = build_terms(["smollm2"]).with_columns(pl.format("{} (quotation)", "analysis").alias("analysis"))
    section = build_regression(replace(study, terms=pl.concat([build_terms(["smollm2", "org/opt"]), more])))
    assert section is not None
    assert section.columns[:3] == ("Model", "Analysis", "Term")
    assert len(section.rows) == 24
    assert len(section.notes) == 3


def test_r_stands_in_the_corner_of_its_panel(study: ContextPage) -> None:
    figure = build_links(study)[0].figures[0]
    corners = figure.chart.keywords["corners"]  # type: ignore[attr-defined]
    links = study.table("links").filter(
        pl.col("model") == "smollm2", pl.col("link").str.starts_with("baseline")
    )
    r = dict(links.select("kind", "r").iter_rows())
    assert corners["unrelated"] == f"r = {r['unrelated']:.2f}".replace("0.", ".").replace("-", "−")
    assert len(corners) == 5


def test_judgements_right_or_wrong_are_correlated_but_not_drawn(study: ContextPage) -> None:
    link = "token F1 and correctness"
    points = pl.DataFrame(
        {"model": ["smollm2"] * 3, "link": [link] * 3, "kind": ["unrelated"] * 3, "name": ["1", "2", "3"]}
    ).with_columns(x=pl.Series([0.1, 0.2, 0.4]), y=pl.Series([0.0, 1.0, 1.0]))
    links = study.table("links").head(1).with_columns(link=pl.lit(link), method=pl.lit("point_biserial"))
    section = build_links(replace(study, points=points, links=links))[0]
    assert section.figures == ()
    assert section.rows[0][2] == "point biserial"


def test_gainers_gain_and_losers_lose() -> None:
    gains = pl.DataFrame(
        [
            ("m", "unrelated", f"s{place}", mean, 0.01, mean - 0.2, mean + 0.2, 3)
            for place, mean in enumerate((0.3, -0.1, 0.0, 0.05, -0.4))
        ],
        schema=("model", "kind", "suite", "mean", "sd", "low", "high", "n"),
        orient="row",
    )
    study = ContextPage(dataset="d", curves=build_curves(["m"], [("overall", "all")]), gains=gains)
    section = build_gains(study)
    assert section is not None
    assert [row[2:] for row in section.rows] == [
        ("rises", "s0", "+30.0", "1.0", "+10.0 to +50.0", "3"),
        ("rises", "s3", "+5.0", "1.0", "−15.0 to +25.0", "3"),
        ("falls", "s4", "−40.0", "1.0", "−60.0 to −20.0", "3"),
        ("falls", "s1", "−10.0", "1.0", "−30.0 to +10.0", "3"),
    ]


def test_matrices_are_drawn_for_each_model_and_likeness_once(study: ContextPage) -> None:
    section = build_matrices(study)
    assert section is not None
    names = [figure.name for figure in section.figures]
    assert len([name for name in names if "f1" not in name]) == 4  # two models, two kinds
    assert len([name for name in names if "f1" in name]) == 4  # two kinds, two likenesses
    without = build_matrices(
        replace(study, matrix=study.table("matrix").with_columns(dependency_f1=pl.lit(None)))
    )
    assert without is not None
    assert not [figure for figure in without.figures if "dependency" in figure.name]


def test_a_table_that_lacks_a_column_is_refused(bare: ContextPage) -> None:
    with pytest.raises(BadInput, match="table curves of the study lacks delta_low"):
        ContextPage(dataset="d", curves=bare.curves.drop("delta_low"))


def test_names_from_outside_cannot_write_markup(bare: ContextPage) -> None:
    page = render_context_page(
        replace(bare, dataset="<b>x</b>", notes=["<script>no</script>"], facts=[("a", "<i>")])
    )
    assert "<b>x</b>" not in page
    assert "<script>no" not in page
    assert "&lt;i&gt;" in page


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs chromium or chrome on the path")
def test_the_page_and_its_files_stand_in_a_browser(study: ContextPage, tmp_path: Path) -> None:
    page = write_context_page(study, tmp_path)
    text = page.read_text(encoding="utf-8")
    files = sorted(re.findall(r'href="(figures/[^"]*)"', text))
    assert sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "figures").iterdir()) == files
    figures = len(files) // 3
    for width, drawn in ((1280, f"wide {figures};narrow 0"), (375, f"wide 0;narrow {figures}")):
        frame = tmp_path / "frame.html"
        frame.write_text(FRAME.format(width=width), encoding="utf-8")
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--allow-file-access-from-files",
        ]
        flags += ["--disable-background-networking", "--virtual-time-budget=20000", "--dump-dom"]
        command = [str(BROWSER), *flags, f"--user-data-dir={tmp_path / 'profile'}", frame.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        found = re.search(r'<p id="found">([^<]*)</p>', done.stdout)
        assert found is not None
        assert found[1] == f"wider by 0;{drawn};dead 0"
