"""The page about context: its sections come and go with the tables, and it prints what they say."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from felicity.report import Provenance, write_page
from felicity.studies.context.report.accuracy import build_change, build_models, draw_change
from felicity.studies.context.report.coefficients import build_correlations, build_regression, build_unrelated
from felicity.studies.context.report.context_page import build_page, build_sections
from felicity.studies.context.report.context_tables import STYLES_OF_KINDS, ContextTables
from felicity.studies.context.report.suites import build_matrices, build_suite_changes
from tests.studies.context.context_tables import build_estimates, build_regressions, build_study

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


def swap(study: ContextTables, **tables: pl.DataFrame) -> ContextTables:
    """The same study with some tables changed."""
    return replace(study, tables={**study.tables, **tables})


@pytest.fixture(scope="module")
def study() -> ContextTables:
    return build_study(("smollm2", "org/opt"), phenomena=PHENOMENA, suites=SUITES)


@pytest.fixture(scope="module")
def bare() -> ContextTables:
    return ContextTables(dataset="mine", tables={"estimates": build_estimates(["m"], [("overall", "all")])})


def test_a_study_with_everything_has_every_section(study: ContextTables) -> None:
    names = [section.name for section in build_sections(study)]
    assert names == [
        *("change", "phenomena", "models", "ratio", "regression", "unrelated"),
        "correlation-baseline-and-longest-context",
        "correlation-perturbation-similarity-and-change",
        "correlation-token-F1-and-change",
        *("margins", "suite_changes", "perturbations", "matrices", "regions", "numbers", "design"),
    ]


def test_what_a_study_has_not_is_not_on_the_page(bare: ContextTables) -> None:
    assert [section.name for section in build_sections(bare)] == ["change", "ratio", "margins", "numbers"]


def test_the_only_model_is_not_named_in_every_row(bare: ContextTables, study: ContextTables) -> None:
    assert build_sections(bare)[0].columns[0] == "Context"
    assert build_sections(bare)[0].rows[0][0] == "no context"
    assert build_sections(study)[0].columns[:2] == ("Model", "Context")


def test_estimates_without_any_context_still_make_a_page(bare: ContextTables) -> None:
    page = build_page(swap(bare, estimates=bare.estimates.filter(pl.col("kind") == "none")))
    assert page.hero is None
    assert page.table is not None
    assert [row[0] for row in page.table.rows] == ["no context"]


def test_the_same_study_gives_the_same_bytes(bare: ContextTables, tmp_path: Path) -> None:
    pages = [
        write_page(build_page(bare), Provenance(), tmp_path / name / "report.html", eyebrow="context")
        for name in ("one", "two")
    ]
    assert pages[0].read_bytes() == pages[1].read_bytes()


def fix_changes(bare: ContextTables, **changes: tuple[float, float, float]) -> ContextTables:
    """The same study with these changes and their intervals in the longest contexts; all others are 0."""
    estimates = bare.estimates.with_columns(delta=0.0, delta_low=-0.01, delta_high=0.01)
    for kind, values in changes.items():
        where = (pl.col("kind") == kind) & (pl.col("length") == 900)
        estimates = estimates.with_columns(
            *(
                pl.when(where).then(pl.lit(value)).otherwise(name).alias(name)
                for name, value in zip(("delta", "delta_low", "delta_high"), values, strict=True)
            ),
            pl.when(where).then(pl.lit(0.78 + values[0])).otherwise("accuracy").alias("accuracy"),
        )
    return swap(bare, estimates=estimates)


def test_the_page_answers_with_the_largest_change_that_is_detected(bare: ContextTables) -> None:
    changed = fix_changes(
        bare,
        matched_acceptable=(0.1, 0.04, 0.16),
        matched_unacceptable=(-0.25, -0.3, -0.2),
        unrelated=(0.4, -0.1, 0.9),
    )
    page = build_page(changed)
    assert page.question == "Does a preceding context change accuracy?"
    assert page.answer == (
        "Yes: matched unacceptable contexts of 900 tokens lower the accuracy of m most, from 78.0% without a "
        "context to 53.0% (−25.0 [−30.0, −20.0] points)."
    )
    assert "it rises in matched acceptable (+10.0 [+4.0, +16.0]) contexts" in page.findings[0]
    assert "no detectable difference in mismatched acceptable (0.0 [−1.0, +1.0])" in page.findings[0]
    assert "unrelated (+40.0 [−10.0, +90.0]) contexts" in page.findings[0]
    assert page.hero is not None
    assert page.hero.name == "change_m"


def test_a_change_that_is_not_significant_reads_no_detectable_difference(bare: ContextTables) -> None:
    page = build_page(fix_changes(bare))
    assert page.answer == (
        "No detectable difference: no kind of context, at its longest, changes accuracy detectably."
    )
    assert "rises" not in page.findings[0]


def test_a_matrix_alone_is_answered_by_suites_and_shown_by_its_cells(study: ContextTables) -> None:
    estimates = study.estimates.filter(level="overall", length=900, perturbation="none", model="smollm2")
    sources = estimates.filter(kind="matched_acceptable").with_columns(
        kind=pl.lit("from_acceptable"), source=pl.lit("wh_island"), delta=0.2, delta_low=0.1, delta_high=0.3
    )
    base = study.estimates.filter(level="overall", kind="none", model="smollm2")
    page = build_page(swap(study, estimates=pl.concat([base, sources], how="vertical_relaxed")))
    assert page.answer.startswith("Yes: acceptable contexts of 900 tokens from wh island raise")
    assert page.hero is not None
    assert page.hero.name == "matrix_from_acceptable_smollm2"
    names = [figure.name for figure in page.figures]
    assert names.count(page.hero.name) == 1
    assert page.summary == "numbers"


def test_the_interaction_is_a_finding_in_words(study: ContextTables) -> None:
    findings = build_page(study).findings
    # The first two are the models' changes; the three-way term has p = 0.0004 * 4**7.
    assert findings[2] == (
        "smollm2: no detectable interaction of log(length) × matched × acceptable (mixed logistic model, "
        "log-odds −0.46, p > .999)."
    )


def test_how_sure_says_over_what_and_how_many(bare: ContextTables) -> None:
    sure = build_page(bare).sure
    assert sure[0].startswith("95% intervals are over suites, since the items of one suite are not")
    assert sure[1].startswith("3,350 items in 67 suites")
    fewer = bare.estimates.with_columns(n=pl.when(kind="unrelated", length=900).then(70).otherwise("n"))
    assert "unrelated 70 of 3,350" in build_page(swap(bare, estimates=fewer)).sure[2]
    assert sure[2:] == (
        "Ties, which count one half: 138 judgements.",
        "Margins no larger than the possible rounding error: 552 judgements.",
    )


def test_the_answer_says_if_only_some_items_reach_its_length(bare: ContextTables) -> None:
    changed = fix_changes(bare, matched_acceptable=(0.1, 0.04, 0.16))
    assert build_page(changed).answer.endswith("points).")
    fewer = changed.estimates.with_columns(n=pl.when(length=900).then(96).otherwise("n"))
    said = build_page(swap(changed, estimates=fewer)).answer
    assert said.endswith("points), on the 96 items that reach this length.")


def test_the_table_gives_the_longest_context_in_points() -> None:
    estimates = build_estimates(["m"], [("overall", "all")], lengths=(100, 900)).with_columns(
        delta=pl.when(kind="matched_unacceptable", length=900).then(-0.2345).otherwise("delta"),
        delta_low=pl.when(kind="matched_unacceptable", length=900).then(-0.3).otherwise("delta_low"),
        delta_high=pl.when(kind="matched_unacceptable", length=900).then(-0.2).otherwise("delta_high"),
    )
    change = build_change(ContextTables(dataset="d", tables={"estimates": estimates}))
    assert change is not None
    row = next(row for row in change.rows if row[1] == "matched, unacceptable")
    # -0.2345 in points to one decimal: -23.4 (half to even in binary: 23.45 is below the half).
    assert row[2] == "900"
    assert row[5:] == (f"−{23.45:.1f}", "[−30.0, −20.0]")
    assert change.rows[0][1] == "no context"


def test_every_curve_starts_at_the_baseline_and_ends_at_its_delta(bare: ContextTables) -> None:
    steps = draw_change(bare)[0].chart.args[0]  # type: ignore[attr-defined]
    last = bare.estimates.filter(pl.col("length") == 900)
    for kind, delta in last.select("kind", "delta").iter_rows():
        own = [step for step in steps if step.series == kind.replace("_", ", ")]
        assert own[0][2:6] == (0, 0.0, 0.0, 0.0)
        assert own[-1].y == pytest.approx(100 * delta)
        assert len(own) == 10


def test_perturbed_contexts_do_not_mix_with_those_as_they_stand(study: ContextTables) -> None:
    steps = draw_change(study)[0].chart.args[0]  # type: ignore[attr-defined]
    assert len(steps) == 5 * 10  # five kinds, nine lengths and the start


def test_kinds_are_told_by_colour_and_line() -> None:
    assert len(set(STYLES_OF_KINDS.values())) == len(STYLES_OF_KINDS) == 5


def test_models_that_share_a_file_name_keep_their_own_figures() -> None:
    estimates = build_estimates(["org/opt", "org opt"], [("overall", "all")])
    change = build_change(ContextTables(dataset="d", tables={"estimates": estimates}))
    assert change is not None
    assert [figure.name for figure in change.figures] == ["change_org-opt", "change_org-opt-2"]


def test_many_models_are_compared_a_few_at_a_time() -> None:
    estimates = build_estimates([f"m{place}" for place in range(12)], [("overall", "all")], lengths=(100,))
    study = ContextTables(dataset="d", tables={"estimates": estimates})
    models = build_models(study)
    assert models is not None
    assert [figure.name for figure in models.figures] == ["kinds_1", "kinds_2"]
    hero = build_page(study).hero
    assert hero is not None
    assert hero.name == "models"


def test_the_regression_is_printed_as_in_a_paper(study: ContextTables) -> None:
    terms = build_regressions(["m"]).with_columns(
        estimate=pl.lit(-1.23456),
        se=pl.lit(0.05),
        z=pl.lit(-24.69),
        p=pl.lit(1e-9),
        low=pl.lit(-1.3326),
        high=pl.lit(-1.1366),
    )
    section = build_regression(swap(study, regressions=terms))
    assert section is not None
    assert section.columns == ("Term", "Estimate", "SE", "z", "p", "95% interval")
    last = section.rows[-1]
    assert last == (
        "log(length) × matched × acceptable",
        "−1.235",
        "0.050",
        "−24.69",
        "< .001",
        "[−1.333, −1.137]",
    )
    assert section.notes == (
        "accuracy ~ log(length) * matched * acceptable + (1 | phenomenon); 120,600 judgements; "
        "phenomenon 12 (SD 0.61).",
    )


def test_a_model_that_could_not_be_fitted_says_why(study: ContextTables) -> None:
    terms = build_regressions(["m"]).filter(pl.col("analysis") == "unrelated")
    failed = terms.with_columns(
        term=pl.lit(None, dtype=pl.String()), note=pl.lit("Not fitted: one suite only.")
    )
    section = build_unrelated(swap(study, regressions=failed))
    assert section is not None
    assert section.rows == ()
    assert "Not fitted: one suite only." in section.notes[0]


def test_each_model_and_each_perturbation_has_its_own_terms(study: ContextTables) -> None:
    more = build_regressions(["smollm2"]).with_columns(
        pl.format("{} (quotation)", "analysis").alias("analysis")
    )
    both = pl.concat([build_regressions(["smollm2", "org/opt"]), more])
    section = build_regression(swap(study, regressions=both))
    assert section is not None
    assert section.columns[:3] == ("Model", "Analysis", "Term")
    assert len(section.rows) == 24
    assert len(section.notes) == 3


def test_r_stands_in_the_corner_of_its_panel(study: ContextTables) -> None:
    figure = build_correlations(study)[0].figures[0]
    corners = figure.chart.keywords["corners"]  # type: ignore[attr-defined]
    found = study.table("correlations").filter(
        pl.col("model") == "smollm2", pl.col("variables").str.starts_with("baseline")
    )
    r = dict(found.select("kind", "r").iter_rows())
    assert corners["unrelated"] == f"r = {r['unrelated']:.2f}".replace("0.", ".").replace("-", "−")
    assert len(corners) == 5


def test_judgements_right_or_wrong_are_correlated_but_not_drawn(study: ContextTables) -> None:
    variables = "token F1 and correctness"
    points = pl.DataFrame(
        [("smollm2", variables, "unrelated", str(x), x, y) for x, y in ((0.1, 0.0), (0.2, 1.0), (0.4, 1.0))],
        schema=study.table("points").schema,
        orient="row",
    )
    found = study.table("correlations").head(1)
    found = found.with_columns(variables=pl.lit(variables), method=pl.lit("point_biserial"))
    section = build_correlations(swap(study, points=points, correlations=found))[0]
    assert section.figures == ()
    assert section.rows[0][2] == "point biserial"


def test_suites_that_rise_and_suites_that_fall_are_listed_apart(bare: ContextTables) -> None:
    changes = pl.DataFrame(
        [
            ("m", "unrelated", f"s{place}", mean, 0.01, mean - 0.2, mean + 0.2, 3)
            for place, mean in enumerate((0.3, -0.1, 0.0, 0.05, -0.4))
        ],
        schema=("model", "kind", "suite", "mean", "sd", "low", "high", "n"),
        orient="row",
    )
    section = build_suite_changes(swap(bare, suite_changes=changes))
    assert section is not None
    assert [row[2:] for row in section.rows] == [
        ("rises", "s0", "+30.0", "1.0", "[+10.0, +50.0]", "3"),
        ("rises", "s3", "+5.0", "1.0", "[−15.0, +25.0]", "3"),
        ("falls", "s4", "−40.0", "1.0", "[−60.0, −20.0]", "3"),
        ("falls", "s1", "−10.0", "1.0", "[−30.0, +10.0]", "3"),
    ]


def test_matrices_are_drawn_for_each_model_and_likeness_once(study: ContextTables) -> None:
    section = build_matrices(study)
    assert section is not None
    names = [figure.name for figure in section.figures]
    assert len([name for name in names if "f1" not in name]) == 4  # two models, two kinds
    assert len([name for name in names if "f1" in name]) == 4  # two kinds, two likenesses
    without = build_matrices(
        swap(study, matrix=study.table("matrix").with_columns(dependency_f1=pl.lit(None)))
    )
    assert without is not None
    assert not [figure for figure in without.figures if "dependency" in figure.name]


def test_names_from_outside_cannot_write_markup(bare: ContextTables, tmp_path: Path) -> None:
    page = build_page(replace(bare, dataset="<b>x</b>", facts=[("a", "<i>")]))
    about = Provenance(notes=("<script>no</script>",))
    text = write_page(page, about, tmp_path / "report.html", eyebrow="context").read_text(encoding="utf-8")
    assert "<b>x</b>" not in text
    assert "<script>no" not in text
    assert "&lt;i&gt;" in text


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs chromium or chrome on the path")
def test_the_page_and_its_files_stand_in_a_browser(study: ContextTables, tmp_path: Path) -> None:
    page = write_page(build_page(study), Provenance(), tmp_path / "report.html", eyebrow="context")
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
