// Sentences that are typed: tokens, surprisals and a verdict at once; pairs are kept in a list and saved.
import { count, download, el, inUnit, notice, signed } from "./dom.js";
import { askAlternatives, buildControls, buildLegend, buildOverlay, buildRunningChart, buildTokenTable, turnRunning } from "./item.js";
import { go, later } from "./state.js";

const LIST = "felicity-pairs";

function readList() {
  try { return JSON.parse(sessionStorage.getItem(LIST) || "[]"); } catch (error) { return []; }
}

function keepList(pairs) {
  try { sessionStorage.setItem(LIST, JSON.stringify(pairs)); } catch (error) { /* the list lasts as long as the page */ }
}

function sayVerdicts(page, answer) {
  return el("ul", { class: "verdicts", id: "verdicts" }, answer.verdicts.map((verdict, place) => {
    const margin = `${signed(inUnit(verdict.margin, "nats", page.unit))} ${page.unit}`;
    const better = answer.sentences[verdict.better];
    const told = verdict.same ? "Both are the same tokens to this model." : verdict.better === null ? "Both are equally acceptable." : `“${better.text}” is more acceptable, margin ${margin}${verdict.stable ? "" : ", within numerical noise"}.`;
    return el("li", null, el("strong", null, answer.models[place]), " ", told);
  }));
}

function buildList(page, holder) {
  const pairs = readList();
  const drop = (place) => { keepList(pairs.filter((_, each) => each !== place)); buildList(page, holder); };
  const save = async () => download(await page.source.pairs({ pairs }), "pairs.csv");
  holder.replaceChildren(...(pairs.length ? [
    el("h2", null, `${count(pairs.length)} kept ${pairs.length === 1 ? "pair" : "pairs"}`),
    el("div", { class: "table" }, el("table", null, el("thead", null, el("tr", null, ["Acceptable", "Not", "Context", ""].map((text) => (text ? el("th", { scope: "col" }, text) : el("td"))))),
      el("tbody", null, pairs.map((pair, place) => el("tr", null, el("td", null, pair.good), el("td", null, pair.bad), el("td", null, pair.context),
        el("td", null, el("button", { type: "button", class: "small", "aria-label": `Remove pair ${place + 1}`, onclick: () => drop(place) }, "Remove"))))))),
    el("div", { class: "buttons" }, el("button", { type: "button", id: "save-pairs", onclick: save }, "Save as pairs.csv")),
    el("p", { class: "hint" }, "Score the file with ", el("code", null, "felicity run pairs.csv"), ".")] : []));
}

export async function showLive(page) {
  const given = page.params.get("text") || "";
  const context = page.params.get("context") || "";
  const texts = given.split("\n").map((line) => line.trim()).filter(Boolean);
  const write = later(() => go("live", { text: document.getElementById("sentences").value, context: document.getElementById("context").value }, { replace: true }), 350);
  const list = el("section", { id: "list", "aria-label": "Kept pairs" });
  const panel = el("div", { class: "alternatives", "aria-live": "polite" });
  const parts = [
    el("h1", { tabindex: "-1" }, "Your own sentences"),
    el("form", { class: "live", onsubmit: (event) => event.preventDefault() },
      el("label", { class: "field wide", for: "sentences" }, el("span", null, "Sentences, one per line; the first two are compared"),
        el("textarea", { id: "sentences", rows: "4", dir: "auto", value: given, oninput: write, spellcheck: "false" })),
      el("label", { class: "field wide", for: "context" }, el("span", null, "Context before each of them, if any; it is not scored"),
        el("textarea", { id: "context", rows: "2", dir: "auto", value: context, oninput: write, spellcheck: "false" }))),
  ];
  if (!page.live.length) return [parts[0], notice("Start the program with --live to score sentences here: felicity explore RUN --live -m smollm2.")];
  if (texts.length) {
    try {
      const answer = await page.source.live({ texts, context });
      answer.modelNames = answer.models;
      const models = answer.models.map((_, place) => place);
      const running = answer.sentences.length > 1 ? turnRunning(answer, 0, 1, models) : [];
      const change = (number, text) => go("live", { text: texts.map((own, place) => (place === number ? text : own)).join("\n") }, { replace: true });
      const keep = () => { keepList([...readList(), { good: texts[0], bad: texts[1], context }]); buildList(page, list); };
      parts.push(el("div", { class: "bar" }, buildControls(page), texts.length > 1 ? el("button", { type: "button", id: "keep", onclick: keep }, "Add the first two to the list") : null),
        answer.verdicts.length ? sayVerdicts(page, answer) : null,
        buildOverlay(page, answer, { models, running, ask: askAlternatives(page, answer, panel, change) }), buildLegend(page), panel,
        buildRunningChart(page, answer, running), buildTokenTable(page, answer, models));
    } catch (error) { parts.push(notice(error.message, "error")); }
  } else parts.push(notice("Try: The cats annoy Tim. and, on the next line, The cats annoys Tim."));
  buildList(page, list);
  return [...parts, list];
}
