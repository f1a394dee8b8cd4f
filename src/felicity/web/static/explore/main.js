// The page: reads the address, asks for what the view shows, puts it on the page; keys and the bar on top.
import { choose, copyText, el, named, notice, toggle } from "./dom.js";
import { showCompare, showSuites } from "./compare.js";
import { showContexts, showRatings, showRegions } from "./curves.js";
import { showItem } from "./item.js";
import { showItems } from "./items.js";
import { showLive } from "./live.js";
import { showWords } from "./words.js";
import { makeOfflineSource } from "./offline.js";
import { makeServerSource } from "./server.js";
import { go, link, readState } from "./state.js";

const SHOW = { items: showItems, item: showItem, compare: showCompare, suites: showSuites, regions: showRegions, contexts: showContexts, ratings: showRatings, words: showWords, live: showLive };
const NAMES = { items: "Items", compare: "Compare", suites: "Suites", regions: "Regions", contexts: "Contexts", ratings: "Ratings", words: "Words", live: "Live" };
const KEPT = ["data", "a", "b", "measure", "unit", "level"];

const data = document.getElementById("felicity-data");
const source = data ? makeOfflineSource(JSON.parse(data.textContent)) : makeServerSource();
const main = document.querySelector("main");
const bar = document.getElementById("bar");
let about = null;
let turn = 0;
let last = null;

function readPage() {
  const { view: asked, params } = readState();
  const collection = about.collections.find((each) => each.name === params.get("data")) || about.collections.find((each) => each.views.includes(asked)) || about.collections[0];
  // Texts that were read have words and no items.
  const texts = collection.views.includes("words");
  const view = asked === "live" || (asked && texts === (asked === "words")) ? asked : collection.views[0];
  if (about.collections.length > 1) params.set("data", collection.name);
  const models = collection.models.map((model) => model.name);
  const place = (name, fallback) => Math.max(0, models.includes(params.get(name)) ? models.indexOf(params.get(name)) : fallback);
  return {
    source, view, texts, params, about: collection, models, live: about.live,
    a: place("a", 0), b: place("b", Math.min(1, models.length - 1)),
    measure: params.get("measure") || collection.measures[0],
    unit: ["nats", "bits"].includes(params.get("unit")) ? params.get("unit") : texts ? "bits" : collection.units[collection.measures[0]] || "nats",
    level: params.get("level") === "word" ? "word" : "token",
    unitOf: (measure) => collection.units[measure] || (measure === "surprisal_bits" ? "bits" : measure === "lp" ? "nats" : ""),
  };
}

// A link of a report names runs by their folders, as seen from the page; here they become data and models.
function resolveRuns() {
  const { view, params } = readState();
  if (!params.has("run")) return;
  const names = {};
  for (const [name, run] of [["a", params.get("run")], ["b", params.get("run_b")]]) {
    const home = run && about.collections.find((each) => each.models.some((model) => model.run === run));
    if (run && !home) throw new Error(`This page has no run '${run}'; open its folder with felicity explore.`);
    if (!home) continue;
    if (about.collections.length > 1) names.data = home.name;
    if (home.models.length > 1) names[name] = home.models.find((model) => model.run === run).name;
  }
  history.replaceState(null, "", link(view, { run: null, run_b: null, ...names }));
}

function only(names) {
  const kept = new URLSearchParams();
  const { params } = readState();
  for (const name of names) for (const value of params.getAll(name)) kept.append(name, value);
  return kept;
}

function buildBar(page) {
  const views = [...page.about.views, ...(source.offline ? [] : ["live"])];
  const filters = [...KEPT, ...page.about.facets, "q", "low", "high", "low_b", "high_b", "pick", "sort", "desc"];
  const links = views.map((view) => el("a", { href: link(view, {}, only(["items", "compare"].includes(view) ? filters : view === "words" ? [...KEPT, "text", "model", "way", "show"] : KEPT)), id: `view-${view}`,
    "aria-current": view === page.view || (view === "items" && page.view === "item") ? "page" : null }, NAMES[view]));
  const change = (name) => (value) => go(page.view === "item" && name === "data" ? "items" : page.view, name === "data" ? Object.fromEntries([...page.params.keys()].map((key) => [key, null]).concat([["data", value]])) : { [name]: value, page: null });
  const names = page.models.map((model) => [model, model]);
  bar.replaceChildren(el("nav", { "aria-label": "Views" }, links), el("div", { class: "settings" },
    about.collections.length > 1 ? choose("data", "Data", about.collections.map((each) => [each.name, each.name]), page.about.name, change("data")) : null,
    page.models.length > 1 && !page.texts ? [choose("a", "A", names, page.models[page.a], change("a")), choose("b", "B", names, page.models[page.b], change("b"))] : null,
    page.about.measures.length > 1 ? choose("measure", "Measure", page.about.measures.map((name) => [name, named(name)]), page.measure, change("measure")) : null,
    ["item", "live"].includes(page.view) ? null : toggle("unit", "Unit", [["nats", "nats"], ["bits", "bits"]], page.unit, (value) => go(page.view, { unit: value }, { replace: true })),
    el("button", { type: "button", id: "copy-address", class: "small", onclick: (event) => copyText(location.href, event.currentTarget) }, "Copy address"),
    el("button", { type: "button", id: "help-button", class: "small", "aria-label": "Keys", onclick: () => document.getElementById("help").showModal() }, "?")));
}

// Where the rows of an item are wider than the page, begin at the words in which its sentences differ.
function showCritical(overlay) {
  const critical = overlay.querySelector(".critical");
  if (!critical || overlay.scrollWidth <= overlay.clientWidth) return;
  const before = critical.previousElementSibling || critical;
  const [first, labels] = [before, overlay.querySelector(".labels")].map((node) => node.getBoundingClientRect());
  overlay.scrollLeft += overlay.dir === "rtl" ? first.right - labels.left : first.left - labels.right;
}

async function render() {
  turn += 1;
  const mine = turn;
  main.setAttribute("aria-busy", "true");
  let parts;
  let page = null;
  try {
    about = about || await source.about();
    resolveRuns();
    page = readPage();
    parts = await SHOW[page.view](page);
  } catch (error) { parts = [el("h1", { tabindex: "-1" }, "That cannot be shown"), notice(error.message, "error")]; }
  if (mine !== turn) return;
  const focused = document.activeElement && document.activeElement.id;
  const caret = document.activeElement && "selectionStart" in document.activeElement ? document.activeElement.selectionStart : null;
  if (page) buildBar(page);
  const typed = document.activeElement && ["INPUT", "TEXTAREA"].includes(document.activeElement.tagName) ? document.activeElement.value : null;
  main.replaceChildren(...parts.flat(Infinity).filter(Boolean));
  main.querySelectorAll(".overlay").forEach(showCritical);
  const again = focused && document.getElementById(focused);
  if (again) {
    again.focus({ preventScroll: true });
    if (typed !== null && again.type !== "checkbox" && again.type !== "number" && again.value !== typed) again.value = typed;
    try { if (caret !== null) again.setSelectionRange(caret, caret); } catch (error) { /* not a field of text */ }
  } else if (last && page && last !== `${page.view} ${page.params.get("key")}`) {
    const heading = main.querySelector("h1");
    if (heading) heading.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  last = page && `${page.view} ${page.params.get("key")}`;
  if (page) document.title = `${NAMES[page.view] || page.params.get("key") || "Item"} · ${page.about.dataset} · felicity`;
  main.setAttribute("aria-busy", "false");
  main.dataset.shown = location.hash;
}

function move(by) {
  const links = [...document.querySelectorAll("a.open")];
  const place = links.indexOf(document.activeElement);
  const next = links[Math.min(links.length - 1, Math.max(0, place < 0 ? (by > 0 ? 0 : links.length - 1) : place + by))];
  if (next) next.focus();
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !about) return;
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select, dialog[open]");
  if (typing) {
    if (event.key === "Escape" && event.target.matches("input, textarea")) event.target.blur();
    return;
  }
  const page = readPage();
  const follow = (selector) => document.querySelector(selector)?.click();
  const keys = {
    "/": () => document.getElementById("search")?.focus(), j: () => move(1), k: () => move(-1),
    n: () => follow("#after, a[rel=next]"), p: () => follow("#before, a[rel=prev]"),
    u: () => go(page.view, { unit: page.unit === "nats" ? "bits" : "nats" }, { replace: true }),
    t: () => ["item", "live"].includes(page.view) && go(page.view, { level: page.level === "token" ? "word" : null }, { replace: true }),
    i: () => follow("#view-items"), c: () => follow("#view-compare"), s: () => follow("#view-suites"), l: () => follow("#view-live"),
    "?": () => document.getElementById("help").showModal(),
  };
  if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
}

addEventListener("hashchange", render);
document.addEventListener("keydown", press);
render();
