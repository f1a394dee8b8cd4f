// Elements, numbers and the notices of a page. Text always becomes a text node, never markup.
const SVG = "http://www.w3.org/2000/svg";
const NATS_PER_BIT = Math.LN2;

// What a reader must know who compares these figures with those of `felicity surprisal`.
export const UNCORRECTED = "Word boundaries are not corrected for trailing white space, as `felicity surprisal` does, so its figures may differ.";
export const OF_REGIONS = "The surprisal of a region is the one that the run was judged by; the run's report says whether it is corrected for trailing white space.";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "data") for (const [key, text] of Object.entries(value)) node.dataset[key] = text;
    else if (name === "style") for (const [key, text] of Object.entries(value)) node.style.setProperty(key, text);
    else if (name === "value" || name === "checked" || name === "open") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

export function decimal(value, places = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const text = value.toFixed(places);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

export function signed(value, places = 2) {
  const text = decimal(value, places);
  return value > 0 && Number(value.toFixed(places)) ? `+${text}` : text;
}

export const percent = (share) => decimal(share === null || share === undefined ? share : 100 * share, 1);
export const interval = (low, high, show = decimal) => (low === null || low === undefined || high === null || high === undefined ? "–" : `[${show(low)}, ${show(high)}]`);
export const count = (number) => number.toLocaleString("en");
// As the report writes it.
export const sayP = (p) => (p < 0.001 ? "p < .001" : p > 0.9995 ? "p > .999" : `p = ${p.toFixed(3).replace(/^0/, "")}`);
// The dataset's own words for verdicts and conditions; the address keeps their plain names.
export const sayWord = (about, verdict) => ({ right: about.verdicts[0], wrong: about.verdicts[1] }[verdict] || verdict);
export const sayCondition = (about, condition) => about.sentences[condition] || condition;
export const named = (name) => String(name).replaceAll("_", " ");
// A kind of context, whose sentences are called as the dataset calls them.
export const sayKind = (about, kind) => named(kind).replace(/\b(un)?acceptable$/, (word) => about.sentences[word === "acceptable" ? "good" : "bad"] || word);

// A number in the unit that the page shows: `from` is what it is in, or empty for what has no unit.
export function inUnit(value, from, to) {
  if (value === null || value === undefined || !from || from === to) return value;
  return to === "bits" ? value / NATS_PER_BIT : value * NATS_PER_BIT;
}

export function option(value, text, chosen) {
  const made = el("option", { value }, text);
  made.selected = value === chosen;
  return made;
}

export function choose(id, label, values, chosen, onchange) {
  return el("label", { class: "field", for: id }, el("span", null, label),
    el("select", { id, onchange: (event) => onchange(event.target.value) },
      values.map(([value, text]) => option(value, text, chosen))));
}

export function toggle(id, label, values, chosen, onchange) {
  return el("div", { class: "toggle", role: "group", "aria-label": label },
    values.map(([value, text]) => el("button", {
      type: "button", id: `${id}-${value}`, "aria-pressed": String(value === chosen), onclick: () => onchange(value),
    }, text)));
}

export function table(columns, rows, { caption, numbers = [] } = {}) {
  const side = (place) => (numbers.includes(place) ? "n" : null);
  return el("div", { class: "table" }, el("table", null,
    caption ? el("caption", null, caption) : null,
    el("thead", null, el("tr", null, columns.map((name, place) => el("th", { scope: "col", class: side(place) }, name)))),
    el("tbody", null, rows.map((row) => el("tr", null, row.map((cell, place) =>
      place === 0 ? el("th", { scope: "row" }, cell) : el("td", { class: side(place) }, cell)))))));
}

export function notice(text, kind = "hint") {
  return el("p", { class: kind, role: kind === "error" ? "alert" : null }, text);
}

// Into the clipboard; where a page may not write there, into a window to copy from.
export async function copyText(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  } catch (error) { prompt("Copy with Ctrl-C:", text); }
}

export function download(text, name) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

export function writeCsv(columns, rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => `${row.map(cell).join(",")}\n`).join("");
}

// How many steps of colour a surprisal in nats gets: none for a certain token, all from 16 nats on.
export const tint = (nats) => `tint-${Math.min(8, Math.max(0, Math.ceil(nats / 2)))}`;

export function lean(margin) {
  const steps = Math.min(4, Math.ceil(Math.abs(margin) / 2));
  return Math.abs(margin) < 0.005 ? "even" : `${margin > 0 ? "plus" : "minus"}-${Math.max(1, steps)}`;
}

// Whether a text is written from right to left: by the script of its first letter.
export const isReversed = (text) => /^\P{L}*[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(text);
