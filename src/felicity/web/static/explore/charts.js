// Line charts and scatter plots as SVG; colours and fonts come from the style sheet.
import { count, decimal, el, svg } from "./dom.js";

const WIDTH = 720;
export const MARK = ["circle", "square", "diamond", "triangle", "cross", "circle"];

export function ticks(low, high, wanted = 5) {
  const raw = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step) found.push(Math.abs(value) < step / 1e6 ? 0 : value);
  return { values: found, places: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

export function scale(low, high, from, to) {
  const spread = high - low || 1;
  return (value) => from + ((value - low) / spread) * (to - from);
}

export function extent(values, { zero = false, pad = 0.05 } = {}) {
  let low = zero ? 0 : Infinity;
  let high = zero ? 0 : -Infinity;
  for (const value of values) {
    if (value === null || value === undefined) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (!Number.isFinite(low)) return [0, 1];
  const room = (high - low || 1) * pad;
  return [low - room, high + room];
}

export function shape(kind, x, y, size, attributes) {
  const paths = {
    square: `M${x - size} ${y - size}h${2 * size}v${2 * size}h${-2 * size}z`,
    diamond: `M${x} ${y - 1.3 * size}l${1.3 * size} ${1.3 * size}l${-1.3 * size} ${1.3 * size}l${-1.3 * size} ${-1.3 * size}z`,
    triangle: `M${x} ${y - 1.2 * size}l${1.2 * size} ${2.2 * size}h${-2.4 * size}z`,
    cross: `M${x - size} ${y - size}l${2 * size} ${2 * size}M${x + size} ${y - size}l${-2 * size} ${2 * size}`,
  };
  return kind === "circle" ? svg("circle", { cx: x, cy: y, r: size, ...attributes }) : svg("path", { d: paths[kind], ...attributes });
}

// start: the look of the first series.
export function buildKey(names, start = 0) {
  return el("ul", { class: "series-key" }, names.map((name, number) => [name, number + start]).map(([name, place]) => el("li", null,
    svg("svg", { viewBox: "0 0 24 12", width: 24, height: 12, "aria-hidden": "true" },
      svg("line", { x1: 0, x2: 24, y1: 6, y2: 6, class: `line series-${place % 6}` }), shape(MARK[place % 6], 12, 6, 3.5, { class: `dot series-${place % 6}` })), name)));
}

function frame(height, title, describe) {
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "chart", role: "img", "aria-label": `${title}. ${describe}` });
}

function yAxis(chart, y, [low, high], bounds, title) {
  const { values, places } = ticks(low, high);
  for (const value of values) {
    chart.append(svg("line", { class: value === 0 ? "zero" : "grid", x1: bounds.left, x2: bounds.right, y1: y(value), y2: y(value) }),
      svg("text", { class: "tick", x: bounds.left - 6, y: y(value) + 4, "text-anchor": "end" }, decimal(value, places)));
  }
  chart.append(svg("text", { class: "title", x: 4, y: 18 }, title));
}

// series: {name, points: [{x, y, low, high, mark}]}; x are places of `labels`, or numbers if there are none.
export function drawLines(series, { labels = null, zero = false, title = "", xTitle = "", height: asked = 300, cut = false } = {}) {
  const turned = labels && labels.some((label) => label.length > 4 && labels.length > 7);
  // On a phone the chart is shrunk and its letters are larger.
  const narrow = matchMedia("(max-width: 640px)").matches;
  const longest = labels ? Math.min(16, Math.max(...labels.map((label) => label.length))) : 0;
  const below = turned ? 34 + longest * (narrow ? 8 : 5) : narrow ? 56 : 40;
  const height = asked + (turned ? below - 84 : 0);
  const bounds = { left: narrow ? 84 : 48, right: WIDTH - 14, top: narrow ? 40 : 26, bottom: height - below };
  // An interval over few items may be many times wider than what it is about; with `cut` it ends at the edge.
  const [least, most] = extent(series.flatMap((own) => own.points.map((point) => point.y)), { zero, pad: 0.6 });
  const inside = (value) => (!cut || value === null || value === undefined ? value : Math.min(most, Math.max(least, value)));
  const all = series.flatMap((own) => own.points.flatMap((point) => [point.y, inside(point.low), inside(point.high)]));
  const [low, high] = extent(all, { zero });
  const places = series.flatMap((own) => own.points.map((point) => point.x));
  const [first, last] = labels ? [0, labels.length - 1] : extent(places, { pad: 0 });
  const x = scale(first, last, bounds.left + 16, bounds.right - 16);
  const y = scale(low, high, bounds.bottom, bounds.top);
  const chart = frame(height, title, series.map((own) => `${own.name}: ${own.points.map((point) => decimal(point.y, 2)).join(", ")}`).join("; "));
  yAxis(chart, y, [low, high], bounds, title);
  const named = labels ? labels.map((label, place) => [place, label]) : [...new Set(places)].sort((one, other) => one - other).map((value) => [value, String(value)]);
  for (const [place, label] of named) {
    const at = { class: "tick", x: x(place), y: bounds.bottom + (narrow ? 26 : 18), "text-anchor": turned ? "end" : "middle", transform: turned ? `rotate(-40 ${x(place)} ${bounds.bottom + 14})` : null };
    chart.append(svg("text", at, label.length > 16 ? `${label.slice(0, 15)}…` : label));
  }
  if (xTitle) chart.append(svg("text", { class: "title", x: bounds.right, y: height - 4, "text-anchor": "end" }, xTitle));
  series.forEach((own, number) => {
    const look = `series-${number % 6}`;
    const drawn = own.points.filter((point) => point.y !== null && point.y !== undefined);
    for (const point of drawn) if (point.low !== undefined && point.low !== null && point.high !== null) chart.append(svg("line", { class: `whisker ${look}`, x1: x(point.x), x2: x(point.x), y1: y(inside(point.low)), y2: y(inside(point.high)) }));
    chart.append(svg("path", { class: `line ${look}`, d: drawn.map((point, place) => `${place ? "L" : "M"}${x(point.x).toFixed(1)} ${y(point.y).toFixed(1)}`).join("") }));
    for (const point of drawn) {
      if (point.mark) chart.append(svg("circle", { class: `ring ${look}`, cx: x(point.x), cy: y(point.y), r: 8 }));
      chart.append(shape(MARK[number % 6], x(point.x), y(point.y), 3.5, { class: `dot ${look}` }, ));
      chart.lastChild.append(svg("title", null, `${own.name}, ${labels ? labels[point.x] : point.x}: ${decimal(point.y, 2)}`));
    }
  });
  return [chart, series.length > 1 ? buildKey(series.map((own) => own.name)) : null];
}

// points: {x, y, title, look, onclick}; cells: [x, y, n] squares of `step`. onselect gets a rectangle that was drawn.
export function drawScatter({ points = [], cells = null, step = null }, { xTitle, yTitle, zero = true, diagonal = false, onselect = null, label = "" }) {
  const size = 520;
  const bounds = { left: 56, right: WIDTH - 14, top: 26, bottom: size - 44 };
  const xs = cells ? cells.flatMap((cell) => [cell[0], cell[0] + step[0]]) : points.map((point) => point.x);
  const ys = cells ? cells.flatMap((cell) => [cell[1], cell[1] + step[1]]) : points.map((point) => point.y);
  const [xRange, yRange] = [extent(xs, { zero }), extent(ys, { zero })];
  const x = scale(...xRange, bounds.left, bounds.right);
  const y = scale(...yRange, bounds.bottom, bounds.top);
  const chart = frame(size, label || `${yTitle} against ${xTitle}`, `${count(cells ? cells.reduce((sum, cell) => sum + cell[2], 0) : points.length)} items`);
  yAxis(chart, y, yRange, bounds, yTitle);
  const { values, places } = ticks(...xRange, 7);
  for (const value of values) {
    chart.append(svg("line", { class: value === 0 ? "zero" : "grid", x1: x(value), x2: x(value), y1: bounds.top, y2: bounds.bottom }),
      svg("text", { class: "tick", x: x(value), y: bounds.bottom + 18, "text-anchor": "middle" }, decimal(value, places)));
  }
  chart.append(svg("text", { class: "title", x: bounds.right, y: size - 6, "text-anchor": "end" }, xTitle));
  if (diagonal) {
    const [low, high] = [Math.max(xRange[0], yRange[0]), Math.min(xRange[1], yRange[1])];
    chart.append(svg("line", { class: "diagonal", x1: x(low), x2: x(high), y1: y(low), y2: y(high) }));
  }
  if (cells) {
    const most = Math.max(...cells.map((cell) => cell[2]));
    for (const [left, low, number] of cells) {
      const strength = 1 + Math.min(7, Math.floor((8 * Math.log1p(number)) / Math.log1p(most)));
      chart.append(svg("rect", { class: `bin-${strength}`, x: x(left), y: y(low + step[1]), width: Math.max(1, x(left + step[0]) - x(left)), height: Math.max(1, y(low) - y(low + step[1])) }, svg("title", null, `${count(number)} items`)));
    }
  }
  for (const point of points) {
    const dot = svg("circle", { class: `point ${point.look || ""}`, cx: x(point.x).toFixed(1), cy: y(point.y).toFixed(1), r: 4, onclick: point.onclick }, svg("title", null, point.title));
    chart.append(dot);
  }
  if (onselect) allowSelection(chart, bounds, x, y, xRange, yRange, onselect);
  return chart;
}

function allowSelection(chart, bounds, x, y, xRange, yRange, onselect) {
  const box = svg("rect", { class: "brush", hidden: true });
  chart.append(box);
  let start = null;
  const at = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
    return [Math.min(bounds.right, Math.max(bounds.left, point.x)), Math.min(bounds.bottom, Math.max(bounds.top, point.y))];
  };
  const back = (value, [low, high], from, to) => low + ((value - from) / (to - from)) * (high - low);
  const corners = (event) => {
    const now = at(event);
    return [Math.min(start[0], now[0]), Math.max(start[0], now[0]), Math.min(start[1], now[1]), Math.max(start[1], now[1])];
  };
  chart.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse" && event.button === 0) start = at(event); });
  chart.addEventListener("pointermove", (event) => {
    if (!start) return;
    const [left, right, top, bottom] = corners(event);
    if (right - left < 6 && bottom - top < 6) return;
    box.removeAttribute("hidden");
    for (const [name, value] of Object.entries({ x: left, y: top, width: right - left, height: bottom - top })) box.setAttribute(name, value);
  });
  addEventListener("pointerup", (event) => {
    if (!start || !chart.isConnected) { start = null; return; }
    const [left, right, top, bottom] = corners(event);
    start = null;
    box.setAttribute("hidden", "");
    if (right - left < 6 || bottom - top < 6) return;
    onselect([back(left, xRange, bounds.left, bounds.right), back(right, xRange, bounds.left, bounds.right)],
      [back(bottom, yRange, bounds.bottom, bounds.top), back(top, yRange, bounds.bottom, bounds.top)]);
  });
}
