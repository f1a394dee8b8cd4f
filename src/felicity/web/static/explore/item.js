// One item: its sentences over one another by character, surprisal by token or word, the running margin.
import { choose, decimal, el, inUnit, isReversed, lean, named, notice, OF_REGIONS, percent, sayCondition, sayKind, signed, table, tint, toggle, UNCORRECTED } from "./dom.js";
import { drawLines } from "./charts.js";
import { sayVerdict } from "./items.js";
import { go, later, link } from "./state.js";

function pieces(page, sentence, model) {
  const cells = sentence.cells[model];
  if (page.level === "token") return cells;
  const words = new Map();
  for (const [column, , , , value, place] of cells) {
    const found = words.get(column) || [column, 0, Math.max(1, sentence.words[column].length), sentence.words[column], null, place];
    if (value !== null) found[4] = (found[4] || 0) + value;
    words.set(column, found);
  }
  for (const found of words.values()) if (!found[3]) found[3] = cells.find((cell) => cell[0] === found[0])[3];
  return [...words.values()];
}

function cellNode(page, cell, at, ask) {
  const [, begin, span, text, value] = cell;
  const shown = value === null ? "·" : decimal(inUnit(-value, "nats", page.unit), 1);
  const place = { "grid-row": String(at.line), "grid-column": `${begin + 1} / span ${span}` };
  const told = `${text}: ${value === null ? "not scored" : `${decimal(inUnit(-value, "nats", page.unit), 3)} ${page.unit}`}`;
  const inside = [el("span", { class: "piece", dir: "auto" }, text), el("span", { class: "value" }, shown)];
  const shared = { class: `cell ${value === null ? "unscored" : tint(-value)}`, style: place, title: told, data: { nats: value === null ? "" : String(-value), sentence: String(at.number), model: String(at.model) } };
  return ask && value !== null ? el("button", { type: "button", ...shared, onclick: () => ask(cell) }, inside) : el("span", shared, inside);
}

// Rows of the overlay: each sentence under each model, then the running margin of each model.
export function buildOverlay(page, item, { models, running = [], ask = null, name = "Sentences over one another" }) {
  // The sentences of one model stand under one another, then their margin; the next model follows.
  const lines = models.flatMap((model) => [...item.sentences.map((sentence, number) => ({ sentence, number, model })),
    ...running.filter((own) => own.model === model).map((own) => ({ own, model }))]);
  const say = ({ sentence, model }) => {
    const what = sentence ? sayCondition(page.about, sentence.condition) : "margin so far";
    return models.length > 1 ? `${what} · ${item.modelNames[model]}` : what;
  };
  const label = el("div", { class: "column labels", "aria-hidden": "true" },
    lines.map((line, place) => el("span", { class: "label-cell", style: { "grid-row": String(place + 1) } }, say(line))));
  const columns = item.widths.map((width, column) => el("div", { class: `column${isCritical(item, column) ? " critical" : ""}`, style: { "--characters": String(width) } },
    lines.map(({ sentence, number, model, own }, place) => (sentence
      ? pieces(page, sentence, model).filter((cell) => cell[0] === column)
        .map((cell) => cellNode(page, cell, { line: place + 1, number, model }, ask && ((chosen) => ask(number, model, chosen))))
      : el("span", {
        class: `so-far ${lean(own.margins[column])}${own.decided === column ? " decided" : ""}`,
        title: `margin up to here: ${signed(inUnit(own.margins[column], "nats", page.unit), 3)} ${page.unit}${own.decided === column ? "; from here on its sign does not change" : ""}`,
        style: { "grid-row": String(place + 1), "grid-column": `1 / span ${width}` },
      }, signed(inUnit(own.margins[column], "nats", page.unit), 1))))));
  // On a phone the rows scroll under their labels. Words of Hebrew or Arabic follow one another from right to left.
  const dir = isReversed(item.sentences[0].text) ? "rtl" : "ltr";
  return el("div", { class: "overlay", dir, tabindex: "0", role: "region", "aria-label": name, style: { "--lines": String(lines.length) } }, label, columns);
}

// Words in which the sentences differ.
function isCritical(item, column) {
  return item.sentences.length > 1 && new Set(item.sentences.map((sentence) => sentence.words[column])).size > 1;
}

export function turnRunning(item, first, second, models) {
  return item.running.filter((own) => models.includes(own.model)).flatMap((own) => {
    if (own.first === first && own.second === second) return [own];
    if (own.first === second && own.second === first) return [{ ...own, margins: own.margins.map((value) => -value) }];
    return [];
  });
}

export function buildLegend(page) {
  const steps = [...Array(9).keys()].map((step) => el("span", { class: `swatch tint-${step}` }, decimal(inUnit(2 * step, "nats", page.unit), 0)));
  return [el("p", { class: "legend hint" }, `Surprisal in ${page.unit}: `, steps, " and more. Underlined: where the sentences differ."),
    page.level === "token" ? null : el("p", { class: "hint" }, `The surprisal of a word is the sum of its tokens. ${UNCORRECTED}`)];
}

export function buildTokenTable(page, item, models) {
  return el("details", null, el("summary", null, "As a table"), item.sentences.map((sentence) => models.map((model) =>
    table([page.level === "token" ? "Token" : "Word", `Surprisal in ${page.unit}`],
      pieces(page, sentence, model).map((cell) => [cell[3], cell[4] === null ? "not scored" : decimal(inUnit(-cell[4], "nats", page.unit), 3)]),
      { caption: `${sayCondition(page.about, sentence.condition)}, ${item.modelNames[model]}`, numbers: [1] }))));
}

export function buildRunningChart(page, item, running) {
  if (!running.length) return null;
  const first = item.sentences[running[0].first];
  const series = running.map((own) => ({
    name: item.modelNames[own.model],
    points: own.margins.map((value, column) => ({ x: column, y: inUnit(value, "nats", page.unit), mark: own.decided === column })),
  }));
  const words = item.widths.map((_, column) => first.words[column] || "·");
  return el("figure", null, drawLines(series, { labels: words, zero: true, title: `Running margin in ${page.unit}`}),
    el("figcaption", { class: "hint" }, "The sum so far of the first sentence minus that of the second. A ring marks where the decision falls: from there on the sign stays the same."));
}

export function buildControls(page) {
  return [toggle("unit", "Unit", [["nats", "nats"], ["bits", "bits"]], page.unit, (value) => go(page.view, { unit: value }, { replace: true })),
    toggle("level", "Surprisal by", [["token", "tokens"], ["word", "words"]], page.level, (value) => go(page.view, { level: value === "token" ? null : value }, { replace: true }))];
}

// Asks what the model expected instead of a token. change(number, text) gets a sentence with one of them in it;
// `places` are the sentences that can be changed, if not all.
export function askAlternatives(page, item, panel, change, places = null) {
  return async (number, model, cell) => {
    const sentence = item.sentences[number];
    panel.replaceChildren(notice("Asking the model …"));
    panel.scrollIntoView({ block: "nearest" });
    const lm = page.live.includes(item.modelNames[model]) ? item.modelNames[model] : page.live[0];
    try {
      const found = await page.source.alternatives({ model: lm, text: sentence.text, place: cell[5], context: sentence.context || item.context || "", k: 10 });
      panel.replaceChildren(el("h3", null, `Instead of “${cell[3]}”, ${lm} expects`),
        table(["Token", "Probability", `Surprisal in ${page.unit}`], found.map((row) => [
          (!places || places.includes(number)) && row.sentence && !row.own ? el("button", { type: "button", class: "small", title: row.sentence, onclick: () => change(number, row.sentence) }, row.token.replace(/^[Ġ▁]/, "␣"))
            : el("span", { class: row.own ? "own" : null }, row.token.replace(/^[Ġ▁]/, "␣"), row.own ? " (this one)" : ""),
          `${percent(Math.exp(row.logprob))}%`, decimal(inUnit(-row.logprob, "nats", page.unit))]), { numbers: [1, 2] }));
    } catch (error) { panel.replaceChildren(notice(error.message, "error")); }
  };
}

// The sentences of the item to change, and what becomes of the margin; e0 and e1 are changed texts.
async function buildWhatIf(page, item, places) {
  const texts = places.map((place) => item.sentences[place].text);
  const changed = places.map((_, number) => page.params.get(`e${number}`) ?? texts[number]);
  const write = later(() => go("item", Object.fromEntries(places.map((_, number) => {
    const { value } = document.getElementById(`what-${number}`);
    return [`e${number}`, value.trim() === texts[number] ? null : value];
  })), { replace: true }), 350);
  const fields = places.map((place, number) => el("label", { class: "field wide", for: `what-${number}` }, el("span", null, sayCondition(page.about, item.sentences[place].condition)),
    el("textarea", { id: `what-${number}`, rows: "1", dir: "auto", spellcheck: "false", value: changed[number], oninput: write })));
  const back = changed.some((text, number) => text.trim() !== texts[number]) ? el("p", null, el("a", { href: link("item", { e0: null, e1: null }), id: "what-back" }, "Back to the item's own sentences")) : null;
  const head = [el("h2", null, "What if?"), notice("Change a word of a sentence, or choose a token above and then an alternative."), fields, back];
  if (!back) return el("section", { id: "what-if" }, head);
  if (changed.some((text) => !text.trim())) return el("section", { id: "what-if" }, head, notice("A sentence is empty; write one.", "error"));
  let answer;
  const contexts = [...places, ...places].map((place) => item.sentences[place].context || "");
  try { answer = await page.source.live({ texts: [...texts, ...changed], contexts }); } catch (error) { return el("section", { id: "what-if" }, head, notice(error.message, "error")); }
  const two = places.length > 1;
  const value = (model, start) => inUnit(answer.sentences[start].lp[model] - (two ? answer.sentences[start + 1].lp[model] : 0), "nats", page.unit);
  const rows = answer.models.map((name, model) => {
    const [before, after] = [value(model, 0), value(model, places.length)];
    return [name, signed(before), el("span", { class: "after" }, signed(after)), el("strong", { class: "moved", data: { moved: String(after - before) } }, signed(after - before))];
  });
  const shown = { ...answer, modelNames: answer.models, sentences: answer.sentences.slice(places.length).map((sentence, number) => ({ ...sentence, condition: item.sentences[places[number]].condition })) };
  const models = answer.models.map((_, model) => model);
  const running = two ? turnRunning(answer, 2, 3, models) : [];
  return el("section", { id: "what-if" }, head,
    table(["Model", "As it is", "Changed", "Moved by"], rows, { caption: `${two ? "Margin: log-probability of the first minus that of the second sentence" : "Log-probability of the sentence"}, in ${page.unit}`, numbers: [1, 2, 3] }),
    buildOverlay(page, shown, { models, running, name: "Changed sentences over one another" }));
}

function buildScores(page, item) {
  const measures = [...new Set(item.sentences.flatMap((sentence) => sentence.scores.flatMap((own) => Object.keys(own))))];
  const rows = item.sentences.flatMap((sentence) => page.models.map((name, model) => [
    sayCondition(page.about, sentence.condition), name, ...measures.map((measure) => {
      const value = sentence.scores[model][measure];
      return el("span", { data: { measure, model: name, request: sentence.request, value: String(value) } }, decimal(inUnit(value, page.unitOf(measure), page.unitOf(measure) ? page.unit : ""), 3));
    })]));
  const heads = measures.map((measure) => (page.unitOf(measure) ? `${measure === "surprisal_bits" ? "surprisal" : measure} (${page.unit})` : measure));
  return [el("h2", null, "Scores"), table(["Condition", "Model", ...heads], rows, { numbers: measures.map((_, place) => place + 2) })];
}

function buildFurther(page, item) {
  const parts = [];
  const regions = item.tables.map((own) => own.regions || []);
  if (regions.some((own) => own.length)) {
    parts.push(el("h2", null, "Regions"), el("p", { class: "hint" }, OF_REGIONS));
    regions.forEach((own, model) => {
      const names = [...new Map(own.map((row) => [row.region, row.name])).entries()];
      const conditions = [...new Set(own.map((row) => row.condition))];
      const value = (condition, region) => own.find((row) => row.condition === condition && row.region === region);
      if (own.length) parts.push(table(["Condition", ...names.map(([region, name]) => `${region} ${named(name)}`)], conditions.map((condition) => [condition,
        ...names.map(([region]) => (value(condition, region) ? decimal(inUnit(value(condition, region).surprisal_bits, "bits", page.unit), 1) : ""))]),
      { caption: `Surprisal in ${page.unit}, ${page.models[model]}`, numbers: names.map((_, place) => place + 1) }));
    });
  }
  const predictions = item.tables.map((own) => own.predictions || []);
  if (predictions.some((own) => own.length)) {
    parts.push(el("h2", null, "Predictions"), table(["Prediction", "Model", "Holds", `Margin in ${page.unit}`], predictions.flatMap((own, model) => own.map((row) =>
      [row.rule, page.models[model], row.passed === 1 ? "yes" : row.passed === 0 ? "no" : percent(row.passed), row.margin === null ? "–" : signed(inUnit(row.margin, "bits", page.unit))])), { numbers: [3] }));
  }
  const fillers = item.tables.map((own) => own.fillers || []);
  if (fillers.some((own) => own.length)) {
    parts.push(el("h2", null, "Words for the blank"), table(["Frame", "Model", "Target", "Rank", "Most probable"], fillers.flatMap((own, model) => own.map((row) =>
      [row.frame, page.models[model], row.target, row.rank === null ? "–" : row.rank, row.predictions.join(", ")])), { numbers: [3] }));
  }
  return parts;
}

function buildAround(item) {
  const { around } = item;
  const step = (key, text, id) => (key ? el("a", { class: "button", id, href: link("item", { key, e0: null, e1: null }) }, text) : el("span", { class: "button off", "aria-hidden": "true" }, text));
  return el("nav", { class: "pager", "aria-label": "Items of the selection" }, step(around.before, "← Previous", "before"),
    el("span", null, around.place ? `${around.place} of ${around.of}` : "outside the selection"), step(around.after, "Next →", "after"),
    el("a", { href: link("items", { key: null, first: null, second: null, e0: null, e1: null }) }, "All items"));
}

export async function showItem(page) {
  const item = await page.source.item(page.params);
  item.modelNames = page.models;
  const models = page.models.map((_, place) => place).filter((place) => item.sentences.some((sentence) => sentence.cells[place].length));
  const first = Number(page.params.get("first") || 0);
  const second = Number(page.params.get("second") || 1);
  const running = item.sentences.length > 1 ? turnRunning(item, first, second, models) : [];
  const panel = el("div", { class: "alternatives", "aria-live": "polite" });
  const places = item.sentences.length > 1 ? [first, second] : item.sentences.map((_, place) => place);
  const change = (number, text) => go("item", { [`e${places.indexOf(number)}`]: text }, { replace: true });
  const ask = page.live.length ? askAlternatives(page, item, panel, change, places) : null;
  const contexts = [...new Set(item.sentences.map((sentence) => sentence.context).filter(Boolean))];
  const conditions = item.sentences.map((sentence, place) => [String(place), sayCondition(page.about, sentence.condition)]);
  return [
    el("p", { class: "eyebrow" }, named(item.phenomenon) === named(item.suite) ? named(item.suite) : `${named(item.phenomenon)} · ${named(item.suite)}`),
    el("h1", { tabindex: "-1" }, item.item),
    buildAround(item),
    el("ul", { class: "verdicts" }, page.models.map((name, place) => el("li", null, el("strong", null, name), " ", sayVerdict(page, item, place)))),
    "kind" in item && item.kind !== "none" ? el("p", { class: "hint" }, `Context: ${sayKind(page.about, item.kind)}, length ${item.length}.`) : null,
    contexts.map((text) => el("details", { class: "context" }, el("summary", null, `Context (${text.length} characters)`), el("p", { dir: "auto" }, text))),
    el("div", { class: "bar" }, buildControls(page),
      item.sentences.length > 2 ? [choose("first", "Margin of", conditions, String(first), (value) => go("item", { first: value }, { replace: true })),
        choose("second", "minus", conditions, String(second), (value) => go("item", { second: value }, { replace: true }))] : null),
    item.sentences.length && models.length ? [buildOverlay(page, item, { models, running, ask }), buildLegend(page)] : notice("This run kept no tokens, so there are only its scores."),
    ask ? notice("Choose a token or word to see what the model expected instead.") : notice(page.source.offline ? "Alternatives to a token need the program: felicity explore RUN --live." : "To see alternatives to a token, start with --live."),
    panel, page.live.length && places.length ? await buildWhatIf(page, item, places) : null, buildRunningChart(page, item, running), buildTokenTable(page, item, models), buildScores(page, item), buildFurther(page, item),
  ];
}

