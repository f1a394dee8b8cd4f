// Two models beside each other: a scatter of margins with selections, and suites by models with paired tests.
import { count, el, interval, inUnit, named, notice, percent, sayP, sayWord, signed } from "./dom.js";
import { drawScatter } from "./charts.js";
import { buildExport, buildFacets, buildPager, buildRows } from "./items.js";
import { go, link } from "./state.js";

const PICK_TITLES = { disagree: "Disagree", both_right: "Both {right}", both_wrong: "Both {wrong}", only_a: "Only {a} {right}", only_b: "Only {b} {right}", unstable: "Unstable", unequal: "Unequal length" };

function look(first, second) {
  if (first === "right" && second === "right") return "both";
  if (first === "right") return "only-a";
  return second === "right" ? "only-b" : "neither";
}

function buildPicks(page, counts) {
  const now = page.params.get("pick") || "";
  const title = (pick) => PICK_TITLES[pick].replace("{a}", page.models[page.a]).replace("{b}", page.models[page.b])
    .replace("{right}", sayWord(page.about, "right")).replace("{wrong}", sayWord(page.about, "wrong"));
  return el("ul", { class: "picks" }, [["", "All", counts.all], ...Object.keys(PICK_TITLES).map((pick) => [pick, title(pick), counts[pick]])].map(([pick, text, number]) =>
    el("li", null, el("a", { href: link("compare", { pick: pick || null, page: null }), "aria-current": pick === now ? "true" : null, data: { pick } }, text, " ", el("span", { class: "tally" }, count(number))))));
}

export async function showCompare(page) {
  const [drawn, answer] = await Promise.all([page.source.compare(page.params), page.source.items(page.params)]);
  const [a, b] = [page.models[page.a], page.models[page.b]];
  const unit = page.unitOf(page.measure);
  const inShown = (value) => inUnit(value, unit, unit ? page.unit : "");
  const points = (drawn.points || []).map(([key, x, y, first, second]) => ({
    x: inShown(x), y: inShown(y), look: look(first, second), title: `${key}: ${signed(inShown(x))}, ${signed(inShown(y))}`,
    onclick: () => go("item", { key, page: null }),
  }));
  const factor = inShown(1);
  const cells = drawn.cells ? drawn.cells.map(([x, y, n]) => [x * factor, y * factor, n]) : null;
  const said = unit ? ` (${page.unit})` : "";
  const onselect = ([left, right], [low, high]) => go("compare", {
    low: (left / factor).toFixed(4), high: (right / factor).toFixed(4), low_b: (low / factor).toFixed(4), high_b: (high / factor).toFixed(4), page: null });
  const ranged = ["low", "high", "low_b", "high_b"].some((name) => page.params.has(name));
  const chart = drawn.n ? drawScatter({ points, cells, step: drawn.step ? drawn.step.map((value) => value * factor) : null },
    { xTitle: `margin of ${a}${said}`, yTitle: `margin of ${b}${said}`, diagonal: true, onselect }) : notice("Nothing has all of these properties.");
  return [
    el("h1", { tabindex: "-1" }, page.models.length > 1 ? `${a} and ${b}` : a),
    page.models.length < 2 ? notice("There is one model here; name a second run to compare two: felicity explore RUN RUN.") : null,
    el("div", { class: "columns" }, buildFacets(page, answer.facets),
      el("section", { class: "results", "aria-label": "Comparison" }, buildPicks(page, drawn.counts),
        el("figure", { class: "scatter" }, chart, el("figcaption", { class: "hint" },
          drawn.cells ? "Squares of a stronger colour hold more items. " : "A point is an item; choose it to open it. ", "Draw a rectangle to select margins.",
          ranged ? [" ", el("a", { href: link("compare", { low: null, high: null, low_b: null, high_b: null }) }, "Clear the rectangle")] : null)),
        el("p", { id: "total", role: "status" }, el("strong", null, count(answer.total)), ` of ${count(answer.all)} judgements`),
        answer.rows.length ? buildRows(page, answer) : null, buildPager(page, answer), buildExport(page, answer.total))),
  ];
}

function heat(share) {
  return share === null || share === undefined ? "hint" : `heat-${Math.min(8, Math.max(0, Math.round(8 * share)))}`;
}

// Rows in the order of a column: `by` is suite, n, difference, p, or a model; worst first unless turned.
function orderSuites(page, rows, by) {
  const model = page.models.indexOf(by);
  const value = {
    suite: (row) => named(row.suite), n: (row) => row.n, difference: (row) => row.test?.difference, p: (row) => row.test?.p_holm ?? row.test?.p,
  }[by] || ((row) => row.accuracy[model]);
  const down = page.params.get("turned") === "1" ? -1 : 1;
  const known = (row) => value(row) !== null && value(row) !== undefined;
  return [...rows].sort((one, other) => known(other) - known(one) || down * (value(one) < value(other) ? -1 : value(one) > value(other) ? 1 : 0));
}

function suiteHead(page, by, text) {
  const now = page.params.get("by") === by;
  const turned = page.params.get("turned") === "1";
  const next = now && !turned ? { by, turned: "1" } : now ? { by: null, turned: null } : { by, turned: null };
  return el("th", { scope: "col", class: by === "suite" ? null : "n", "aria-sort": now ? (turned ? "descending" : "ascending") : null },
    el("a", { href: link("suites", next) }, text, now ? (turned ? " ↓" : " ↑") : ""));
}

export async function showSuites(page) {
  const answer = await page.source.suites(page.params);
  const two = page.models.length > 1 && page.a !== page.b;
  const [a, b] = [page.models[page.a], page.models[page.b]];
  const by = ["suite", "n", ...page.models, ...(two ? ["difference", "p"] : [])].includes(page.params.get("by")) ? page.params.get("by") : null;
  const groups = new Map();
  for (const row of by ? orderSuites(page, answer.rows, by) : answer.rows) {
    const home = by ? "" : row.phenomenon;
    groups.set(home, [...(groups.get(home) || []), row]);
  }
  const drawn = answer.rows.some((row) => row.interval.some(Boolean));
  const cell = (share, span, suite) => el("td", { class: `n heat ${heat(share)}` }, suite ? el("a", { href: link("items", { suite }) }, percent(share)) : percent(share),
    span ? el("span", { class: "span" }, ` ${interval(...span, percent)}`) : null);
  const cells = (own, suite) => own.accuracy.map((share, place) => cell(share, own.interval[place], suite));
  const test = (own) => (!two ? [] : own ? [
    el("td", { class: "n" }, signed(100 * own.difference, 1)), el("td", { class: "n" }, `${own.only_a} : ${own.only_b}`),
    el("td", { class: "n" }, own.p_holm !== undefined ? sayP(own.p_holm) : sayP(own.p), (own.p_holm ?? own.p) < 0.05 ? " *" : "")] : [el("td"), el("td"), el("td")]);
  const overall = answer.overall;
  return [
    el("h1", { tabindex: "-1" }, `${page.about.headline} by suite`),
    el("p", { class: "hint" }, two ? `Per cent, by ${page.measure}. Each suite: ${a} minus ${b} in points, items for which only one of them passes (${page.about.verdicts[0]}), and a paired test (${answer.rows.find((row) => row.test)?.test.test || "score test over items"}), p adjusted over suites (Holm). All suites: ${overall.test ? overall.test.test : ""}.` : `Per cent, by ${page.measure}.`, drawn ? " In brackets: 95% intervals, as in the runs' reports." : null, page.about.graded ? null : ` ${page.about.meaning}`),
    el("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Suites" }, el("table", { class: "suites" }, el("caption", { class: "away" }, `${page.about.headline} of each model on each suite`),
      el("thead", null, el("tr", null, suiteHead(page, "suite", "Suite"), suiteHead(page, "n", "n"), page.models.map((name) => suiteHead(page, name, name)),
        two ? [suiteHead(page, "difference", "Difference"), el("th", { scope: "col", class: "n" }, "Only one"), suiteHead(page, "p", "p (Holm)")] : null)),
      el("tbody", null, el("tr", { class: "whole" }, el("th", { scope: "row" }, "All suites"), el("td", { class: "n" }, count(answer.rows.reduce((sum, row) => sum + row.n, 0))), cells(overall, null), test(overall.test))),
      [...groups].map(([phenomenon, rows]) => el("tbody", null,
        !by && groups.size < answer.rows.length ? el("tr", { class: "group" }, el("th", { scope: "rowgroup", colspan: String(2 + page.models.length + (two ? 3 : 0)) }, named(phenomenon))) : null,
        rows.map((row) => el("tr", { data: { suite: row.suite } }, el("th", { scope: "row" }, named(row.suite)), el("td", { class: "n" }, count(row.n)), cells(row, row.suite), test(row.test))))))),
  ];
}
