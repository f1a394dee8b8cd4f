// Texts that people read: times and surprisals as curves over the words.
import { choose, count, decimal, download, el, inUnit, named, notice, signed, table, toggle, writeCsv } from "./dom.js";
import { buildKey } from "./charts.js";
import { buildPassage } from "./passage.js";
import { go, keep, link } from "./state.js";

const WORDS_SHOWN = 200;
const MOST_WHOLE = 300;
const MOST_MODELS = 3;
const WAYS = { corrected: "corrected for trailing white space", plain: "plain sum of tokens", given: "as given" };

// The word of the address that was last scrolled to, so that other choices do not move the page.
let revealed = "";

function chooseModels(page) {
  const asked = page.params.getAll("model");
  const unknown = asked.find((name) => !page.models.includes(name));
  if (unknown) throw new Error(`There is no model '${unknown}'; known: ${page.models.join(", ")}`);
  const scored = page.models.filter((name) => page.about.ways[name][0] !== "given");
  return asked.length ? page.models.filter((name) => asked.includes(name)) : (scored.length ? scored : page.models).slice(0, MOST_MODELS);
}

// The words that are shown, counted from 1: those asked for, or the part that a chosen word is in.
function chooseRange(page, total, marked) {
  const number = (name) => Math.round(Number(page.params.get(name))) || 0;
  const word = Math.min(total, number("word") || marked);
  if (!page.params.has("from") && total <= MOST_WHOLE) return [1, total, word];
  const from = Math.min(total, Math.max(1, number("from") || WORDS_SHOWN * Math.floor((Math.max(1, word) - 1) / WORDS_SHOWN) + 1));
  const to = Math.min(total, Math.max(from, number("to") || from + WORDS_SHOWN - 1));
  return [from, to, word];
}

function buildParts(page, passage, [from, to], total) {
  const { passages } = page.about;
  const size = Math.min(WORDS_SHOWN, to - from + 1);
  const whole = from === 1 && to === total && !page.params.has("from");
  const at = (place) => ({ text: passages[place].texts[0], from: null, to: null, word: null });
  const before = from > 1 ? { from: Math.max(1, from - size), to: from - 1, word: null } : passage > 0 ? at(passage - 1) : null;
  const after = to < total ? { from: to + 1, to: Math.min(total, to + size), word: null } : passage + 1 < passages.length ? at(passage + 1) : null;
  const step = (changes, text, rel) => (changes ? el("a", { class: "button", rel, href: link("words", changes) }, text) : el("span", { class: "button off", "aria-hidden": "true" }, text));
  const field = (name, label, value) => el("label", { class: "field", for: name }, el("span", null, label),
    el("input", { id: name, type: "number", min: "1", max: String(total), value: String(value), onchange: (event) => go("words", { from: name === "from" ? event.target.value : from, to: name === "to" ? event.target.value : to, word: null }) }));
  return el("nav", { class: "pager", "aria-label": "Parts of the text" }, step(before, "← Previous", "prev"), step(after, "Next →", "next"),
    field("from", "Words", from), field("to", "to", to), el("span", { class: "tally" }, `of ${count(total)}`),
    whole ? null : el("a", { href: link("words", { from: 1, to: total, word: null }) }, "All words"));
}

function buildModels(page, shown) {
  if (page.models.length < 2) return null;
  const change = (name, on) => go("words", { model: page.models.filter((each) => (each === name ? on : shown.includes(each))) }, { replace: true });
  return el("details", { class: "facet", id: "models", open: page.models.length <= 6 }, el("summary", null, "Models", el("span", { class: "badge" }, String(shown.length))),
    el("fieldset", { class: "across" }, el("legend", { class: "away" }, "Models"), page.models.map((name, place) => el("label", { class: "choice", for: `model-${place}` },
      el("input", { type: "checkbox", id: `model-${place}`, value: name, checked: shown.includes(name), disabled: shown.length === 1 && shown.includes(name), onchange: (event) => change(name, event.target.checked) }), el("span", { class: "name" }, name)))));
}

export async function showWords(page) {
  const answer = await page.source.words(page.params);
  const { about } = page;
  if (page.measure && !about.measures.includes(page.measure)) throw new Error(`There is no measure '${page.measure}'; known: ${about.measures.join(", ")}`);
  const total = answer.word.length;
  const text = page.params.get("text") || answer.text[0];
  const passage = Math.max(0, about.passages.findIndex((each) => each.texts.includes(text)));
  const models = chooseModels(page);
  const both = models.some((name) => about.ways[name].length > 1);
  const lead = about.ways[models.find((name) => about.ways[name].length > 1) || models[0]][0];
  const way = ["corrected", "plain"].includes(page.params.get("way")) ? page.params.get("way") : lead;
  const [from, to, word] = chooseRange(page, total, answer.text.indexOf(text) + 1);
  const unit = page.measure ? about.units[page.measure] : "";
  const rest = page.params.get("show") === "residual" && answer.residual[page.measure];
  const cut = (list) => list.slice(from - 1, to);
  const ofModel = (name) => about.ways[name].includes(way) ? way : about.ways[name][0];
  const looks = new Map(models.map((name, place) => [name, place + 1]));
  const bits = new Map(models.map((name) => [name, cut(answer.surprisal[name][ofModel(name)]).map((value) => inUnit(value, "bits", page.unit))]));
  const observed = page.measure ? cut(answer.measures[page.measure]) : null;
  const residuals = new Map(models.filter((name) => answer.residual[page.measure]?.[name]).map((name) => [name, cut(answer.residual[page.measure][name])]));
  const reasons = cut(answer.left_out[page.measure] || answer.word.map(() => null)).map((place) => (place === null ? null : answer.reasons[place]));
  const words = cut(answer.word);
  const withUnit = (value, places, own) => `${decimal(value, places)}${own ? ` ${own}` : ""}`;
  const numbers = (place) => [
    observed ? [named(page.measure), observed[place] === null ? "no value" : withUnit(observed[place], unit === "ms" ? 1 : 3, unit)] : null,
    ...models.map((name) => [name, bits.get(name)[place] === null ? "no surprisal" : withUnit(bits.get(name)[place], 2, page.unit)]),
    ...models.filter((name) => residuals.get(name) && residuals.get(name)[place] !== null).map((name) => [`residual (${name})`, `${signed(residuals.get(name)[place], unit === "ms" ? 1 : 3)}${unit ? ` ${unit}` : ""}`]),
    reasons[place] ? ["left out", reasons[place]] : null].filter(Boolean);
  const panels = [
    observed ? { title: named(page.measure), unit, zero: Boolean(rest) || unit !== "ms", series: rest ? models.filter((name) => residuals.has(name)).map((name) => ({ name, look: looks.get(name), values: residuals.get(name) })) : [{ name: named(page.measure), look: 0, values: observed }] } : null,
    { title: "surprisal", unit: page.unit, zero: true, series: models.map((name) => ({ name, look: looks.get(name), values: bits.get(name) })) }].filter(Boolean);
  const several = about.passages[passage].texts.length > 1;
  const starts = {};
  words.forEach((_, place) => {
    const at = place + from - 1;
    const fresh = at === 0 || answer.text[at] !== answer.text[at - 1];
    if (fresh || answer.sentence[at] !== answer.sentence[at - 1]) starts[place] = fresh && several ? answer.text[at] : "";
  });
  const panel = el("p", { id: "word", class: "word-panel" });
  const asked = page.params.has("word") ? `${text} ${word}` : "";
  const reveal = Boolean(asked) && asked !== revealed;
  revealed = asked;
  const place = Math.min(to, Math.max(from, word)) - from;
  const show = (at) => {
    const full = at + from - 1;
    panel.replaceChildren(el("strong", { dir: "auto" }, words[at]), el("span", { class: "tally" }, `word ${from + at}, ${several ? `text ${answer.text[full]}, ` : ""}sentence ${answer.sentence[full]}, position ${answer.position[full]}`),
      ...numbers(at).map(([name, value]) => el("span", { data: { name } }, `${name} `, el("b", null, value))));
  };
  const counts = new Map();
  for (const reason of reasons) if (reason) counts.set(reason, (counts.get(reason) || 0) + 1);
  const columns = ["Word", "Sentence", "Position", ...(observed ? [`${named(page.measure)}${unit ? ` (${unit})` : ""}`] : []), ...models.map((name) => `${name} (${page.unit})`), ...[...residuals.keys()].map((name) => `residual, ${name}`), "left out"];
  const rows = (say) => words.map((own, at) => [own, answer.sentence[at + from - 1], String(answer.position[at + from - 1]), ...(observed ? [say(observed[at], 3)] : []), ...models.map((name) => say(bits.get(name)[at], 3)), ...[...residuals.values()].map((list) => say(list[at], 3)), reasons[at] || ""]);
  const key = [...(observed && !rest ? [`${named(page.measure)}${unit ? `, ${unit}` : ""}`] : []), ...models.map((name) => `${rest ? "residual and surprisal" : "surprisal"}, ${name}`)];
  return [
    el("h1", { tabindex: "-1" }, `Words of ${named(about.dataset)}`),
    el("div", { class: "bar" },
      choose("text", "Text", about.passages.map((each) => [each.texts[0], `${each.label}: ${each.opening} … (${count(each.words)} words)`]), about.passages[passage].texts[0], (value) => go("words", { text: value, from: null, to: null, word: null })),
      both ? toggle("way", "Surprisal of words", [["corrected", "corrected"], ["plain", "plain"]], way, (value) => go("words", { way: value }, { replace: true })) : null,
      answer.residual[page.measure] ? toggle("show", "Curve of the measure", [["observed", "observed"], ["residual", "residual"]], rest ? "residual" : "observed", (value) => go("words", { show: value === "observed" ? null : value }, { replace: true })) : null),
    buildModels(page, models),
    el("p", { class: "hint" }, rest ? `Upper curves: what the regression of ${named(page.measure)} with the surprisal of each model does not predict, ${unit || "in its own units"}. Lower: surprisal in ${page.unit}.`
      : observed ? `Upper curve: ${named(page.measure)}, mean over readers${unit ? `, in ${unit}` : ""}. Lower: surprisal in ${page.unit}.` : `Surprisal in ${page.unit}; this study has no measure of single words.`,
    counts.size ? " Struck words with open marks were left out of the regression." : null, both ? ` Surprisal of words: ${WAYS[way]}.` : null),
    buildKey(key, observed && !rest ? 0 : 1),
    buildParts(page, passage, [from, to], total),
    buildPassage({ words, first: from, panels, marks: reasons, starts, chosen: place, reveal, onshow: show, onchoose: (at) => {
      revealed = `${text} ${at + from}`;
      keep("words", { text, word: at + from });
    },
      say: (at) => `${words[at]}: ${numbers(at).map(([name, value]) => `${name} ${value}`).join("; ")}` }),
    panel,
    counts.size ? el("details", { id: "left-out" }, el("summary", null, `${count([...counts.values()].reduce((sum, each) => sum + each, 0))} of ${count(words.length)} words left out`),
      table(["Reason", "Words"], [...counts].map(([reason, number]) => [reason, count(number)]), { numbers: [1] })) : null,
    el("details", null, el("summary", null, "As a table"), table(columns, rows((value, places) => decimal(value, places)), { numbers: columns.map((_, at) => at).filter((at) => at > 1 && at < columns.length - 1) })),
    el("div", { class: "buttons" }, el("button", { type: "button", id: "save-words", class: "small", onclick: () => download(writeCsv(["text", "word", "sentence", "position", ...columns.slice(3)], rows((value) => value).map((row, at) => [answer.text[at + from - 1], ...row])), "words.csv") }, "Save these words as CSV")),
  ];
}
