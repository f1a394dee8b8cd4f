"""The page: complete, closed in itself, true to the tables it was given."""

import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput, FelicityError
from felicity.report import ReportInput, render_report, write_report

VOID = {"meta", "link", "br", "hr", "img", "input"}
MANY_BYTES = 2_000_000


class Reader(HTMLParser):
    """Reads a page strictly: every element closed in order; keeps attributes, texts and ids."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.texts_in: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open:
            self.texts_in.setdefault(self.open[-1], []).append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def starter_page(starter_run: ReportInput) -> str:
    return render_report(starter_run)


def test_the_page_is_well_formed_and_says_whose_accuracy_it_shows(starter_page: str) -> None:
    reader = read(starter_page)
    assert "smollm2 on starter" in reader.texts_in["title"][0]
    ids = [value for _, name, value in reader.attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_every_link_leads_to_a_place_in_the_page_or_to_a_figure_beside_it(
    starter_run: ReportInput, starter_page: str, tmp_path: Path
) -> None:
    write_report(starter_run, tmp_path)
    reader = read(starter_page)
    ids = {value for _, name, value in reader.attributes if name == "id"}
    links = [value for _, name, value in reader.attributes if name in ("href", "src", "xlink:href")]
    assert links
    places = [link[1:] for link in links if link.startswith("#")]
    files = [link for link in links if not link.startswith("#")]
    assert places
    assert set(places) <= ids
    assert files
    assert all((tmp_path / link).is_file() for link in files)


def test_the_page_asks_the_network_for_nothing(starter_page: str) -> None:
    for way in ("http:", "https:", "//", "@import", "url(", "<link", "<iframe", "fetch(", "import("):
        assert way not in starter_page


def test_headline_shows_the_estimate_it_was_given(starter_run: ReportInput) -> None:
    row = pl.lit("overall") == pl.col("level")
    chosen = starter_run.estimates.with_columns(
        accuracy=pl.when(row).then(0.61234).otherwise("accuracy"),
        low=pl.when(row).then(0.5987).otherwise("low"),
        high=pl.when(row).then(0.62551).otherwise("high"),
        ties=pl.when(row).then(31).otherwise("ties").cast(pl.Int64),
        unstable=pl.when(row).then(17).otherwise("unstable").cast(pl.Int64),
    )
    text = read(render_report(with_tables(starter_run, estimates=chosen))).text
    assert "61.2% of 600 pairs judged right" in text
    assert "95% interval [59.9, 62.6] (Wilson over suites)" in text
    assert "Ties31" in text
    assert "Within noise17" in text


def test_every_phenomenon_suite_and_measure_is_shown_with_its_numbers(
    starter_run: ReportInput, starter_page: str
) -> None:
    text = read(starter_page).text
    for row in starter_run.estimates.filter(pl.col("measure") == "lp").iter_rows(named=True):
        assert f"{100 * row['accuracy']:.1f}" in text
        assert f"[{100 * row['low']:.1f}, {100 * row['high']:.1f}]" in text
        if row["level"] in ("phenomenon", "suite"):
            assert row["name"].replace("_", " ") in text
    assert "mean_lp" in text


def test_the_measure_asked_for_first_leads(starter_run: ReportInput) -> None:
    turned = dict(starter_run.manifest) | {"measures": ["mean_lp", "lp"]}
    text = read(render_report(with_tables(starter_run, manifest=turned))).text
    assert "The rest of this page uses mean_lp" in text


def test_items_most_wrong_come_worst_first_and_uncertain_nearest_zero_first(
    make_run: Callable[..., ReportInput], make_pair: Callable[..., object]
) -> None:
    margins = {"a": -1.0, "b": -9.0, "c": 0.25, "d": -4.0, "e": 7.0}
    pairs = [
        make_pair(item=name, good="Go on", bad="Go off", good_logprob=[-9.5, margin], bad_logprob=[-9.5, 0.0])
        for name, margin in margins.items()
    ]
    page = render_report(make_run(pairs))
    wrong, uncertain = page.split('id="uncertain"')
    order = re.compile(r"<code>([a-e])</code></span></h4>")
    assert order.findall(wrong) == ["b", "d", "a"]
    assert order.findall(uncertain) == ["c", "a", "d", "e", "b"]
    assert "−9.00</b> nats <small>(−12.98 bits)" in wrong  # 9 / ln 2 = 12.984


def test_texts_and_names_are_escaped(
    make_run: Callable[..., ReportInput], make_pair: Callable[..., object]
) -> None:
    nasty = '</script><img src=x onerror="alert(1)"> & \'"'
    pair = make_pair(item=nasty, suite=nasty, phenomenon=nasty, good=f"He {nasty}", bad=f"They {nasty}")
    other = make_pair(item="other", suite="other", phenomenon="other", good="I go", bad="I goes")
    manifest = {"model": {"name": nasty}, "dataset": nasty, "command": ["felicity", nasty]}
    page = render_report(make_run([pair, other], manifest=manifest))
    reader = read(page)
    assert not any(tag == "img" or name.startswith("on") for tag, name, _ in reader.attributes)
    assert page.count("</script>") == 1
    assert nasty in "".join(reader.texts_in["h1"] + reader.texts_in["span"])


def test_right_to_left_text_sets_its_own_direction(
    make_run: Callable[..., ReportInput], make_pair: Callable[..., object]
) -> None:
    page = render_report(make_run([make_pair(item="1", good="القطط تزعج", bad="القطط يزعج")]))
    assert '<p class="sentence" dir="auto">' in page


def test_a_large_run_stays_under_two_megabytes(large_run: ReportInput) -> None:
    page = render_report(large_run)
    assert len(page.encode()) < MANY_BYTES
    assert page.count('<li class="case">') == 24
    assert "67 suites of 12 phenomena" in read(page).text


def test_the_same_tables_give_the_same_bytes(starter_run: ReportInput, tmp_path: Path) -> None:
    first, second = (write_report(starter_run, tmp_path / name) for name in ("one", "two"))
    # The renderer writes the time into a PDF.
    one, two = (
        {path.relative_to(page.parent): path.read_bytes() for path in page.parent.rglob("*.*")}
        for page in (first, second)
    )
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name] and name.suffix != ".pdf"] == []
    assert first.read_text(encoding="utf-8") == render_report(starter_run)


def test_figures_are_written_beside_the_page(starter_run: ReportInput, tmp_path: Path) -> None:
    page = write_report(starter_run, tmp_path / "run")
    assert page == tmp_path / "run" / "report.html"
    names = {"accuracy_by_phenomenon", "accuracy_by_suite", "accuracy_by_measure", "margins"}
    found = {path.name for path in (tmp_path / "run" / "figures").iterdir()}
    assert found == {f"{name}.{kind}" for name in names for kind in ("svg", "png", "pdf")}
    for name in names:
        assert (page.parent / "figures" / f"{name}.svg").read_text(encoding="utf-8").startswith("<svg ")
        assert (page.parent / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_an_unwritable_place_is_one_sentence(starter_run: ReportInput, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    with pytest.raises(FelicityError, match=r"Cannot write .*taken"):
        write_report(starter_run, tmp_path / "taken")


def test_a_manifest_that_says_nothing_is_no_obstacle(starter_run: ReportInput) -> None:
    text = read(render_report(with_tables(starter_run, manifest={}))).text
    assert "unnamed model on unnamed dataset" in text


def test_what_could_not_be_checked_was_not_found_and_a_sample_is_called_one(starter_run: ReportInput) -> None:
    row = {"check": "not checked", "count": 1, "of": 1, "meaning": "no tokenizer", "examples": ""}
    audit = pl.DataFrame([row], schema=starter_run.audit.schema)
    manifest = dict(starter_run.manifest) | {"options": {"sample": 2}}
    page = render_report(with_tables(starter_run, audit=audit, manifest=manifest))
    assert "<dt>Audit</dt><dd>0<small> of 1</small>" in page
    assert "a sample of at most 2 items per suite" in page
    assert "a sample of" not in render_report(with_tables(starter_run, manifest={}))


def test_a_run_without_estimates_is_refused(starter_run: ReportInput) -> None:
    with pytest.raises(BadInput, match="'estimates' has no row of level 'overall'"):
        with_tables(starter_run, estimates=starter_run.estimates.clear())


def test_importing_the_room_loads_no_drawing_library() -> None:
    code = (
        "import sys, felicity.report; print(*sorted({'altair', 'vl_convert', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def with_tables(report: ReportInput, **changes: object) -> ReportInput:
    tables = {name: getattr(report, name) for name in report.__dataclass_fields__}
    return ReportInput(**(tables | changes))
