// Curves of regions and contexts, and ratings against scores.
import { choose, decimal, el, interval, inUnit, named, notice, OF_REGIONS, sayKind, percent, sayP, table } from "./dom.js";
import { drawLines, drawScatter } from "./charts.js";
import { go } from "./state.js";

export async function showRegions(page) {
  const answer = await page.source.regions(page.params);
  const suites = page.about.suites.map((suite) => [suite, named(suite)]);
  const names = answer.regions.map(([region]) => region);
  const charts = page.models.flatMap((model) => {
    const own = answer.curves.filter((curve) => curve.model === model);
    if (!own.length) return [];
    const series = own.map((curve) => ({ name: named(curve.condition), points: curve.points.map(([region, mean, low, high]) => ({
      x: names.indexOf(region), y: inUnit(mean, "bits", page.unit), low: inUnit(low, "bits", page.unit), high: inUnit(high, "bits", page.unit) })) }));
    for (const each of series) each.points.sort((one, other) => one.x - other.x);
    return [el("h2", null, model), el("figure", null, drawLines(series, { labels: answer.regions.map(([, name]) => named(name)), title: `Surprisal in ${page.unit}`, zero: true, height: 340, cut: true }))];
  });
  const rows = answer.curves.flatMap((curve) => curve.points.map(([region, mean, low, high, n]) => [named(curve.condition), curve.model, region, decimal(inUnit(mean, "bits", page.unit)),
    interval(inUnit(low, "bits", page.unit), inUnit(high, "bits", page.unit)), String(n)]));
  return [
    el("h1", { tabindex: "-1" }, "Surprisal by region"),
    el("div", { class: "bar" }, choose("region_suite", "Suite", suites, answer.suite, (value) => go("regions", { region_suite: value }))),
    el("p", { class: "hint" }, "Means over the items of the suite; bars are 95% intervals (Student's t), cut off at the edge where they are very wide."),
    el("p", { class: "hint" }, OF_REGIONS),
    charts, el("details", null, el("summary", null, "As a table"), table(["Condition", "Model", "Region", `Mean in ${page.unit}`, "95% interval", "Items"], rows, { numbers: [3, 4, 5] })),
  ];
}

export async function showContexts(page) {
  const answer = await page.source.contexts(page.params);
  const levels = [...new Set(answer.rows.map((row) => (row.level === "overall" ? "" : `${row.level}: ${row.name}`)))];
  const chosen = page.params.get("part") || "";
  const own = answer.rows.filter((row) => (row.level === "overall" ? "" : `${row.level}: ${row.name}`) === chosen);
  const models = [...new Set(own.map((row) => row.model))];
  const charts = models.map((model) => {
    const rows = own.filter((row) => row.model === model);
    const base = rows.filter((row) => row.kind === "none");
    const say = (row) => `${sayKind(page.about, row.kind)}${row.source ? ` from ${named(row.source)}` : ""}${row.perturbation && row.perturbation !== "none" ? `, ${named(row.perturbation)}` : ""}`;
    const kinds = [...new Set(rows.filter((row) => row.kind !== "none").map(say))];
    const point = (row) => ({ x: row.length, y: 100 * row.accuracy, low: 100 * row.low, high: 100 * row.high });
    const series = kinds.map((kind) => ({ name: kind, points: [...base, ...rows.filter((row) => row.kind !== "none" && say(row) === kind)].map(point) }));
    return [el("h2", null, model), el("figure", null, drawLines(series, { title: `${page.about.headline} (%)`, xTitle: `${answer.unit} of context`, height: 340 }))];
  });
  return [
    el("h1", { tabindex: "-1" }, `${page.about.headline} after contexts`),
    levels.length > 1 ? el("div", { class: "bar" }, choose("part", "Part", levels.map((level) => [level, level ? named(level) : "all items"]), chosen, (value) => go("contexts", { part: value }))) : null,
    el("p", { class: "hint" }, "Length 0 is the same items without context; bars are 95% intervals, as in the study's report."),
    charts, el("details", null, el("summary", null, "As a table"), table(["Kind", "Model", "Length", page.about.headline, "95% interval", "n"],
      own.map((row) => [sayKind(page.about, row.kind), row.model, String(row.length), decimal(100 * row.accuracy, 1), interval(row.low, row.high, percent), String(row.n)]), { numbers: [2, 3, 4, 5] })),
  ];
}

export async function showRatings(page) {
  const answer = await page.source.ratings(page.params);
  const unit = page.unitOf(page.measure);
  const factor = unit ? inUnit(1, unit, page.unit) : 1;
  const rows = answer.correlations.map((row) => [named(row.condition), row.method, row.r === null ? "–" : decimal(row.r, 3),
    interval(row.low, row.high, (value) => decimal(value, 3)), row.p === null ? "–" : sayP(row.p), String(row.n)]);
  return [
    el("h1", { tabindex: "-1" }, "Ratings and scores"),
    el("p", { class: "hint" }, `Mean ratings of people against ${page.measure} of ${page.models[page.a]}.`),
    rows.length ? table(["Condition", "Correlation", "r", "95% interval", "p", "n"], rows, { numbers: [2, 3, 4, 5] }) : notice("No correlation was computed."),
    answer.panels.map((panel) => [el("h2", null, named(panel.condition)), el("figure", { class: "scatter" }, drawScatter({
      points: (panel.points || []).map(([key, rating, value]) => ({ x: rating, y: value * factor, title: `${key}: ${decimal(rating)}, ${decimal(value * factor)}`, onclick: () => key && go("item", { key }) })),
      cells: panel.cells ? panel.cells.map(([x, y, n]) => [x, y * factor, n]) : null, step: panel.step ? [panel.step[0], panel.step[1] * factor] : null,
    }, { xTitle: "mean rating", yTitle: `${page.measure}${unit ? ` (${page.unit})` : ""}`, zero: false }))]),
  ];
}
