// Two models beside each other: a scatter of margins with selections, and suites by models with paired tests.
import { count, el, inUnit, named, notice, percent, sayP, sayWord, signed } from "./dom.js";
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
          drawn.cells ? "Darker squares hold more items. " : "A point is an item; choose it to open it. ", "Draw a rectangle to select margins.",
          ranged ? [" ", el("a", { href: link("compare", { low: null, high: null, low_b: null, high_b: null }) }, "Clear the rectangle")] : null)),
        el("p", { id: "total", role: "status" }, el("strong", null, count(answer.total)), ` of ${count(answer.all)} judgements`),
        answer.rows.length ? buildRows(page, answer) : null, buildPager(page, answer), buildExport(page, answer.total))),
  ];
}

function heat(share) {
  return share === null || share === undefined ? "hint" : `heat-${Math.min(8, Math.max(0, Math.round(8 * share)))}`;
}

export async function showSuites(page) {
  const answer = await page.source.suites(page.params);
  const two = page.models.length > 1 && page.a !== page.b;
  const [a, b] = [page.models[page.a], page.models[page.b]];
  const groups = new Map();
  for (const row of answer.rows) groups.set(row.phenomenon, [...(groups.get(row.phenomenon) || []), row]);
  const cell = (share, suite) => el("td", { class: `n heat ${heat(share)}` }, suite ? el("a", { href: link("items", { suite }) }, percent(share)) : percent(share));
  const test = (own) => (!two ? [] : own ? [
    el("td", { class: "n" }, signed(100 * own.difference, 1)), el("td", { class: "n" }, `${own.only_a} : ${own.only_b}`),
    el("td", { class: "n" }, own.p_holm !== undefined ? sayP(own.p_holm) : sayP(own.p), (own.p_holm ?? own.p) < 0.05 ? " *" : "")] : [el("td"), el("td"), el("td")]);
  const overall = answer.overall;
  return [
    el("h1", { tabindex: "-1" }, `${page.about.headline} by suite`),
    el("p", { class: "hint" }, two ? `Per cent, by ${page.measure}. Each suite: ${a} minus ${b} in points, items for which only one of them passes (${page.about.verdicts[0]}), and a paired test (${answer.rows.find((row) => row.test)?.test.test || "score test over items"}), p adjusted over suites (Holm). All suites: ${overall.test ? overall.test.test : ""}.` : `Per cent, by ${page.measure}.`, page.about.graded ? null : ` ${page.about.meaning}`),
    el("div", { class: "table" }, el("table", { class: "suites" }, el("caption", { class: "away" }, `${page.about.headline} of each model on each suite`),
      el("thead", null, el("tr", null, el("th", { scope: "col" }, "Suite"), el("th", { scope: "col", class: "n" }, "n"), page.models.map((name) => el("th", { scope: "col", class: "n" }, name)),
        two ? ["Difference", "Only one", "p (Holm)"].map((text) => el("th", { scope: "col", class: "n" }, text)) : null)),
      el("tbody", null, el("tr", { class: "whole" }, el("th", { scope: "row" }, "All suites"), el("td", { class: "n" }, count(answer.rows.reduce((sum, row) => sum + row.n, 0))), overall.accuracy.map((share) => cell(share, null)), test(overall.test))),
      [...groups].map(([phenomenon, rows]) => el("tbody", null,
        groups.size < answer.rows.length ? el("tr", { class: "group" }, el("th", { scope: "rowgroup", colspan: String(2 + page.models.length + (two ? 3 : 0)) }, named(phenomenon))) : null,
        rows.map((row) => el("tr", { data: { suite: row.suite } }, el("th", { scope: "row" }, named(row.suite)), el("td", { class: "n" }, count(row.n)), row.accuracy.map((share) => cell(share, row.suite)), test(row.test))))))),
  ];
}
