// The list of judgements: facets, search, order, pages, export.
import { choose, count, download, el, inUnit, named, notice, sayCondition, sayKind, sayWord, signed } from "./dom.js";
import { go, later, link } from "./state.js";

const TITLES = {
  verdict: "Verdict", stability: "Margin against noise", difference: "Difference in tokens", length: "Length of context",
  kind: "Kind of context", source: "Suite of the context", draw: "Draw", condition: "Condition",
};
const VERDICT = { right: "✓", wrong: "✗", tie: "=" };
// Where neither sentence is right, nothing is ticked.
const PREFERENCE = { right: "▲", wrong: "▼", tie: "=" };
const LONG_FACET = 8;
// Beside the results there is room for open facets; above them, on a phone, there is not.
const isNarrow = () => matchMedia("(max-width: 860px)").matches;

export function sayVerdict(page, row, place) {
  const verdict = row.verdict[place];
  if (verdict === null) return el("span", { class: "hint" }, "not judged");
  const unit = page.unitOf(page.measure);
  const margin = inUnit(row.margin[place], unit, unit ? page.unit : "");
  const words = `${sayWord(page.about, verdict)}${row.stable[place] === false ? ", within numerical noise" : ""}`;
  return el("span", { class: `verdict ${verdict}`, title: words },
    el("span", { "aria-hidden": "true" }, (page.about.graded ? VERDICT : PREFERENCE)[verdict]), el("span", { class: "away" }, words),
    " ", row.margin[place] === null ? "–" : signed(margin), row.stable[place] === false ? "≈" : "");
}

function facetBox(page, facet, values) {
  const chosen = page.params.getAll(facet);
  if (values.length < 2 && !chosen.length) return null;
  const ofModel = ["verdict", "stability", "difference"].includes(facet) && page.models.length > 1;
  const title = `${TITLES[facet] || named(facet)[0].toUpperCase() + named(facet).slice(1)}${ofModel ? ` of ${page.models[page.a]}` : ""}`;
  const change = (value, on) => {
    const next = on ? [...chosen, value] : chosen.filter((each) => each !== value);
    go(page.view, { [facet]: next, page: null });
  };
  const boxes = values.map(([value, number], place) => el("label", { class: number ? "choice" : "choice none", for: `${facet}-${place}` },
    el("input", { type: "checkbox", id: `${facet}-${place}`, value, checked: chosen.includes(value), onchange: (event) => change(value, event.target.checked) }),
    el("span", { class: "name" }, facet === "difference" ? sayDifference(page, value) : facet === "verdict" ? sayWord(page.about, value) : facet === "kind" ? sayKind(page.about, value) : named(facet === "condition" ? sayCondition(page.about, value) : value)), el("span", { class: "tally" }, count(number))));
  return el("details", { class: "facet", open: chosen.length > 0 || (!isNarrow() && (values.length <= LONG_FACET || facet === "phenomenon")), data: { facet } },
    el("summary", null, title, chosen.length ? el("span", { class: "badge" }, chosen.length) : null),
    el("fieldset", null, el("legend", { class: "away" }, title), boxes));
}

function sayDifference(page, value) {
  const edge = Number(value) === page.about.largest_difference ? " or more" : Number(value) === -page.about.largest_difference ? " or less" : "";
  return `${signed(Number(value), 0)}${edge}`;
}

function marginBox(page) {
  const field = (name, label) => el("label", { class: "field", for: name }, el("span", null, label),
    el("input", { id: name, type: "number", step: "any", value: page.params.get(name) || "", onchange: (event) => go(page.view, { [name]: event.target.value, page: null }) }));
  const who = page.models.length > 1 ? ` of ${page.models[page.a]}` : "";
  return el("details", { class: "facet", open: !isNarrow() || page.params.has("low") || page.params.has("high") },
    el("summary", null, `Margin${who}`),
    el("div", { class: "pair" }, field("low", "from"), field("high", "to")));
}

export function buildFacets(page, facets) {
  const used = page.about.facets.some((facet) => page.params.has(facet)) || ["q", "low", "high", "low_b", "high_b", "pick"].some((name) => page.params.has(name));
  const wipe = Object.fromEntries([...page.about.facets, "q", "low", "high", "low_b", "high_b", "pick", "page"].map((name) => [name, null]));
  const conditions = facets.condition || [];
  const same = conditions.length && conditions.every(([, number]) => number === conditions[0][1]) && !page.params.has("condition") && page.about.kind === "accuracy" && conditions.length < 3;
  const shown = page.about.facets.filter((facet) => !(facet === "condition" && same));
  const search = later((value) => go(page.view, { q: value, page: null }, { replace: true }), 250);
  return el("aside", { class: "facets", "aria-label": "Selection" },
    el("label", { class: "field wide", for: "search" }, el("span", null, "Search"),
      el("input", { id: "search", type: "search", value: page.params.get("q") || "", placeholder: "words, or \"a phrase\"", oninput: (event) => search(event.target.value) })),
    used ? el("p", null, el("a", { href: link(page.view, wipe), class: "reset" }, "Clear the selection")) : null,
    page.params.get("pick") ? el("p", { class: "hint" }, `Only where ${page.about.picks[page.params.get("pick")]}.`) : null,
    shown.map((facet) => facetBox(page, facet, facets[facet] || [])), marginBox(page));
}

function sortHead(page, name, text, attributes = {}) {
  const now = (page.params.get("sort") || "row") === name;
  const down = page.params.get("desc") === "1";
  const next = now && !down ? { sort: name, desc: "1" } : now ? { sort: null, desc: null } : { sort: name, desc: null };
  return el("th", { scope: "col", "aria-sort": now ? (down ? "descending" : "ascending") : null, ...attributes },
    el("a", { href: link(page.view, { ...next, page: null }) }, text, now ? (down ? " ↓" : " ↑") : ""));
}

// What ends a word: a space, or a character of a script that has none between its words, or of its punctuation.
const BOUNDARY = /[\s\u3000-\u303f\uff00-\uff0f\uff1a-\uff1f\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

function markDifference(texts, place) {
  if (texts.length < 2) return [texts[place]];
  const other = texts[place ? 0 : 1];
  const own = texts[place];
  let head = 0;
  while (head < own.length && own[head] === other[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(own.length, other.length) - head && own[own.length - 1 - tail] === other[other.length - 1 - tail]) tail += 1;
  while (head > 0 && !BOUNDARY.test(own[head - 1])) head -= 1;
  while (tail > 0 && !BOUNDARY.test(own[own.length - tail])) tail -= 1;
  const middle = own.slice(head, own.length - tail);
  return middle ? [own.slice(0, head), el("b", null, middle), own.slice(own.length - tail)] : [own];
}

// Names of items may be broken after a slash or an underscore, and nowhere else.
function breakable(name) {
  return name.split(/(?<=[_/])/).flatMap((part) => [part, el("wbr")]);
}

export function buildRows(page, answer) {
  const two = page.models.length > 1;
  const shownModels = two ? [...new Set([page.a, page.b])] : [0];
  const factors = ["kind", "length"].filter((name) => answer.rows.length && name in answer.rows[0]);
  return el("div", { class: "table" }, el("table", { class: "items" },
    el("caption", { class: "away" }, "Selected judgements"),
    el("thead", null, el("tr", null, sortHead(page, "item", "Item"), el("th", { scope: "col" }, "Sentences"),
      factors.map((name) => el("th", { scope: "col" }, TITLES[name])),
      shownModels.map((place) => sortHead(page, place === page.a ? "margin" : "margin_b", two ? page.models[place] : "Margin", { class: "n" })),
      sortHead(page, "difference", "Tokens ±", { class: "n", title: "Difference in number of tokens" }))),
    el("tbody", null, answer.rows.map((row) => el("tr", { data: { key: row.key } },
      el("th", { scope: "row" }, el("a", { class: "open", href: link("item", { key: row.key, page: null }) }, breakable(row.item)),
        el("span", { class: "hint" }, named(row.phenomenon) === named(row.suite) ? named(row.suite) : `${named(row.phenomenon)} · ${named(row.suite)}`)),
      el("td", { class: "sentences" }, row.text.slice(0, 4).map((text, place) => el("p", { lang: "" },
        row.text.length > 1 || row.condition[place] ? el("span", { class: "condition" }, sayCondition(page.about, row.condition[place])) : null, " ",
        el("span", { dir: "auto" }, markDifference(row.text, place)))),
        row.text.length > 4 ? el("p", { class: "hint" }, `and ${row.text.length - 4} more`) : null),
      factors.map((name) => el("td", { data: { label: TITLES[name] } }, name === "kind" ? sayKind(page.about, row[name]) : named(row[name]))),
      shownModels.map((place) => el("td", { class: "n", data: { label: page.models[place] } }, sayVerdict(page, row, place))),
      el("td", { class: "n", data: { label: "Tokens ±" } }, row.difference[page.a] === null ? "–" : signed(row.difference[page.a], 0)))))));
}

export function buildPager(page, answer) {
  const pages = Math.max(1, Math.ceil(answer.total / answer.size));
  const now = Math.min(pages, Math.max(1, Number(page.params.get("page")) || 1));
  if (pages === 1) return null;
  const step = (to, text, rel) => (to < 1 || to > pages ? el("span", { class: "hint" }, text) : el("a", { class: "button", rel, href: link(page.view, { page: to === 1 ? null : to }) }, text));
  return el("nav", { class: "pager", "aria-label": "Pages" }, step(now - 1, "← Previous", "prev"),
    el("span", null, `page ${count(now)} of ${count(pages)}`), step(now + 1, "Next →", "next"));
}

export function buildExport(page, total) {
  const save = (kind, name) => async () => download(await page.source[kind](page.params), name);
  return el("details", { class: "export" }, el("summary", null, "Export"),
    el("div", { class: "buttons" },
      el("button", { type: "button", id: "save-selection", onclick: save("selection", "selection.csv") }, `${count(total)} judgements as CSV`),
      el("button", { type: "button", id: "save-stimuli", onclick: save("stimuli", "stimuli.csv") }, "Their sentences as stimuli")),
    el("p", { class: "hint" }, "To ask people about these sentences: ", el("code", null, "felicity rate new my-study --from stimuli.csv"),
      ", or with ", el("code", null, "--task choice"), " to compare the two sentences of each item."));
}

export async function showItems(page) {
  const answer = await page.source.items(page.params);
  const unit = page.unitOf(page.measure);
  const rated = page.about.kind === "concordance";
  const order = choose("sort", "Order", [["row", "of the dataset"], ["margin", "margin, smallest first"], ["closeness", "closest to a tie"],
    ...(page.models.length > 1 ? [["apart", "models furthest apart"]] : []), ["difference", "difference in tokens"], ["item", "name"], ["suite", "suite"]],
  page.params.get("sort") || "row", (value) => go("items", { sort: value === "row" ? null : value, desc: value === "apart" ? "1" : null, page: null }));
  const measured = `${page.measure}${unit ? `, in ${page.unit}` : ""}`;
  const lead = rated ? `A margin is the share of other sentences that ${page.measure} orders as the ratings do, minus one half.` : `Margins by ${measured}: above zero: ${page.about.verdicts[0]}.`;
  return [
    el("h1", { tabindex: "-1" }, page.about.dataset),
    el("div", { class: "columns" }, buildFacets(page, answer.facets),
      el("section", { class: "results", "aria-label": "Judgements" },
        el("div", { class: "bar" }, el("p", { id: "total", role: "status" }, el("strong", null, count(answer.total)), answer.total === answer.all ? " judgements" : ` of ${count(answer.all)} judgements`), order),
        el("p", { class: "hint" }, lead, page.about.graded ? null : ` ${page.about.meaning}`, ` ${page.about.policies}`),
        answer.rows.length ? buildRows(page, answer) : notice("Nothing has all of these properties."),
        buildPager(page, answer), buildExport(page, answer.total))),
  ];
}

