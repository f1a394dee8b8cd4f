// Words in lines, as one reads them, with curves above each line: a panel per quantity, a point per word.
import { decimal, el, isReversed, svg } from "./dom.js";
import { extent, MARK, scale, shape, ticks } from "./charts.js";

const GUTTER = 46;
const EDGE = 6;
const PANEL = 78;
const GAP = 24;
const LEAST = 30;
const FONT = 15;

// How many pixels each word needs with the space around it.
function measureWords(words) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `500 ${FONT}px ${getComputedStyle(document.body).fontFamily}`;
  return words.map((word) => Math.max(LEAST, Math.ceil(pen.measureText(word).width) + 14));
}

// Lines of words that fit: [{from, to, left: [x of each word's left edge]}].
export function breakLines(widths, room) {
  const lines = [];
  let line = null;
  let x = 0;
  widths.forEach((width, place) => {
    if (!line || x + width > room) {
      line = { from: place, to: place, left: [] };
      lines.push(line);
      x = 0;
    }
    line.left.push(x);
    line.to = place + 1;
    x += width;
  });
  return lines;
}

// panels: [{title, unit, zero, series: [{name, look, values}]}]; marks: null or a reason per word; starts: words
// that begin a sentence, with the name of a text that begins there, if there are several, or ""; say: what is told about a word;
// reveal: whether the chosen word is scrolled into view.
export function buildPassage({ words, first, panels, marks, starts, say, chosen, reveal, onchoose, onshow }) {
  const holder = el("div", { class: "passage", role: "group", "aria-label": "Words in order; arrow keys move from word to word", onkeydown: press });
  const ends = panels.map((panel) => extent(panel.series.flatMap((own) => own.values), { zero: panel.zero }));
  const widths = measureWords(words);
  const reversed = isReversed(words.join(""));
  let now = chosen;
  let lines = [];
  let fitted = widths;
  let shown = 0;

  function show(place, { focus = false } = {}) {
    holder.querySelector(".word.now")?.classList.remove("now");
    holder.querySelector(".word[tabindex='0']")?.setAttribute("tabindex", "-1");
    holder.querySelector(".band:not([hidden])")?.setAttribute("hidden", "");
    now = place;
    const node = holder.querySelector(`[data-place='${place}']`);
    if (!node) return;
    node.classList.add("now");
    node.setAttribute("tabindex", "0");
    holder.querySelector(`.band[data-of='${place}']`)?.removeAttribute("hidden");
    if (focus) node.focus();
    onshow(place);
  }

  function press(event) {
    const forward = reversed ? -1 : 1;
    const line = lines.findIndex((each) => now >= each.from && now < each.to);
    const beside = (step) => {
      const other = lines[line + step];
      if (!other) return now;
      const at = lines[line].left[now - lines[line].from];
      const near = other.left.map((x) => Math.abs(x - at));
      return other.from + near.indexOf(Math.min(...near));
    };
    const next = { ArrowRight: () => now + forward, ArrowLeft: () => now - forward, ArrowDown: () => beside(1), ArrowUp: () => beside(-1), Home: () => 0, End: () => words.length - 1 }[event.key];
    if (!next || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    show(Math.min(words.length - 1, Math.max(0, next())), { focus: true });
  }

  function drawLine(line, room) {
    const height = panels.length * (PANEL + GAP) + EDGE;
    const middle = (place) => {
      const x = line.left[place - line.from] + fitted[place] / 2;
      return GUTTER + (reversed ? room - x : x);
    };
    const chart = svg("svg", { width: GUTTER + room, height, class: "chart lines", "aria-hidden": "true" });
    for (let place = line.from; place < line.to; place += 1) {
      const x = middle(place) - fitted[place] / 2;
      chart.append(svg("rect", { class: "band", hidden: true, "data-of": place, x, y: 0, width: fitted[place], height }));
      if (starts[place] === undefined) continue;
      const at = reversed ? x + fitted[place] : x;
      chart.append(svg("line", { class: "grid start", x1: at, x2: at, y1: 12, y2: height }));
      if (starts[place]) chart.append(svg("text", { class: "tick", x: at + 3, y: 11 }, starts[place]));
    }
    panels.forEach((panel, number) => {
      const top = number * (PANEL + GAP) + GAP;
      const y = scale(...ends[number], top + PANEL, top);
      const { values, places } = ticks(...ends[number], 3);
      for (const value of values) {
        chart.append(svg("line", { class: value === 0 ? "zero" : "grid", x1: GUTTER, x2: GUTTER + room, y1: y(value), y2: y(value) }),
          svg("text", { class: "tick", x: GUTTER - 6, y: y(value) + 4, "text-anchor": "end" }, decimal(value, places)));
      }
      chart.append(svg("text", { class: "tick unit", x: 0, y: top - 4 }, panel.unit));
      for (const { look, values: own } of panel.series) {
        let path = "";
        let pen = false;
        const dots = [];
        for (let place = line.from; place < line.to; place += 1) {
          const value = own[place];
          if (starts[place]) pen = false;
          if (value === null || value === undefined) { pen = false; continue; }
          path += `${pen ? "L" : "M"}${middle(place).toFixed(1)} ${y(value).toFixed(1)}`;
          pen = true;
          dots.push(shape(MARK[look % 6], middle(place), y(value), 3, { class: `dot series-${look % 6}${marks[place] ? " open" : ""}` }));
        }
        chart.append(svg("path", { class: `line series-${look % 6}`, d: path }), ...dots);
      }
    });
    const nodes = [];
    for (let place = line.from; place < line.to; place += 1) {
      nodes.push(el("button", { type: "button", class: `word${marks[place] ? " left-out" : ""}`, id: `word-${first + place}`, tabindex: "-1", dir: "auto", "aria-label": say(place), style: { width: `${fitted[place]}px` },
        data: { place: String(place) }, onfocus: () => show(place), onclick: () => { show(place); onchoose(place); } }, words[place]));
    }
    const row = el("div", { class: "words-row", dir: reversed ? "rtl" : "ltr", style: { "padding-left": `${GUTTER}px` } }, nodes);
    const whole = el("div", { class: "passage-line" }, chart, row);
    whole.addEventListener("pointermove", (event) => {
      const x = event.clientX - whole.getBoundingClientRect().left;
      const from = reversed ? room - (x - GUTTER) : x - GUTTER;
      const near = line.left.findLastIndex((left) => left <= from);
      if (near >= 0 && line.from + near !== now) show(line.from + near);
    });
    return whole;
  }

  function draw() {
    const room = Math.floor(holder.clientWidth) - GUTTER - EDGE;
    if (room < LEAST || room === shown) return;
    shown = room;
    fitted = widths.map((width) => Math.min(width, room));
    lines = breakLines(fitted, room);
    const focused = holder.contains(document.activeElement);
    holder.replaceChildren(...lines.map((line) => drawLine(line, room)));
    show(now, { focus: focused });
    if (reveal) holder.querySelector(".word.now")?.scrollIntoView({ block: "center" });
    reveal = false;
  }

  new ResizeObserver(draw).observe(holder);
  return holder;
}
