// Answers from the data that the page brings along: the same as the server's, computed here.
import { writeCsv } from "./dom.js";

const PAGE_SIZE = 50;
const FACTORS = ["kind", "length", "perturbation", "source", "draw"];

function choices(collection, params) {
  const models = collection.about.models.map((model) => model.name);
  const at = (name, fallback) => {
    if (params.get(name) && !models.includes(params.get(name))) throw new Error(`There is no model '${params.get(name)}'; known: ${models.join(", ")}`);
    return params.get(name) ? models.indexOf(params.get(name)) : fallback;
  };
  return {
    measure: params.get("measure") || collection.about.measures[0],
    a: at("a", 0),
    b: at("b", Math.min(1, models.length - 1)),
    words: splitSearch((params.get("q") || "").trim().toLowerCase()),
  };
}

// Words and quoted phrases, as the server divides them.
function splitSearch(text) {
  return [...text.matchAll(/"([^"]+)"|(\S+)/g)].map(([, quoted, word]) => (quoted || word).replace(/^"+|"+$/g, "")).filter((part) => part.trim());
}

function facetValues(row, facet, model, largest) {
  const of = (value) => (value === null || value === undefined ? [] : [String(value)]);
  if (facet === "verdict") return of(row.verdict[model]);
  if (facet === "stability") return row.stable[model] === null ? [] : [row.stable[model] ? "stable" : "unstable"];
  if (facet === "condition") return row.condition;
  if (facet !== "difference") return of(row[facet]);
  const value = row.difference[model];
  return value === null ? [] : [String(Math.max(-largest, Math.min(largest, value)))];
}

function picked(pick, row, a, b) {
  const [first, second] = [row.verdict[a] === "right", row.verdict[b] === "right"];
  const known = row.verdict[a] !== null && row.verdict[b] !== null;
  if (!known) return false;
  return {
    unstable: !(row.stable[a] && row.stable[b]), unequal: Boolean(row.difference[a]) || Boolean(row.difference[b]),
    disagree: first !== second, both_right: first && second, both_wrong: !first && !second,
    only_a: first && !second, only_b: !first && second,
  }[pick];
}

function buildTests(collection, params) {
  const { a, b, words } = choices(collection, params);
  const tests = {};
  for (const facet of collection.about.facets) {
    const chosen = params.getAll(facet);
    if (chosen.length) {
      tests[facet] = (row) => facetValues(row, facet, a, collection.about.largest_difference).some((value) => chosen.includes(value));
    }
  }
  for (const name of ["low", "high", "low_b", "high_b"]) {
    if (!params.get(name)) continue;
    const limit = Number(params.get(name));
    const model = name.endsWith("_b") ? b : a;
    tests[name] = (row) => row.margin[model] !== null && (name.startsWith("low") ? row.margin[model] >= limit : row.margin[model] <= limit);
  }
  words.forEach((word, number) => { tests[`search ${number}`] = (row) => row.search.includes(word); });
  if (params.get("pick")) tests.pick = (row) => picked(params.get("pick"), row, a, b);
  return tests;
}

function orderRows(rows, collection, params) {
  const { a, b } = choices(collection, params);
  const sort = params.get("sort") || "row";
  const down = params.get("desc") === "1" ? -1 : 1;
  const apart = (row) => (row.margin[a] === null || row.margin[b] === null ? null : Math.abs(row.margin[a] - row.margin[b]));
  const value = {
    row: (row) => row.row, item: (row) => row.item, suite: (row) => row.suite, margin: (row) => row.margin[a],
    margin_b: (row) => row.margin[b], closeness: (row) => (row.margin[a] === null ? null : Math.abs(row.margin[a])),
    difference: (row) => row.difference[a], apart,
  }[sort];
  return [...rows].sort((one, other) => {
    const [first, second] = [value(one), value(other)];
    if (first === null || second === null) return (first === null) - (second === null) || one.row - other.row;
    if (first !== second) return (first < second ? -1 : 1) * down;
    return one.row - other.row;
  });
}

function take(collection, params, without = "") {
  const { measure } = choices(collection, params);
  const tests = Object.entries(buildTests(collection, params)).filter(([name]) => name !== without).map(([, test]) => test);
  return collection.items.filter((row) => row.measure === measure && tests.every((test) => test(row)));
}

function countFacet(collection, params, facet) {
  const { measure, a } = choices(collection, params);
  const values = (row) => facetValues(row, facet, a, collection.about.largest_difference);
  const counts = new Map();
  for (const row of collection.items) if (row.measure === measure) for (const value of values(row)) counts.set(value, 0);
  for (const row of take(collection, params, facet)) for (const value of values(row)) counts.set(value, counts.get(value) + 1);
  const listed = [...counts];
  if (["difference", "length", "draw"].includes(facet)) listed.sort((one, other) => Number(one[0]) - Number(other[0]));
  return listed;
}

function writeSelection(collection, rows) {
  const conditions = [...new Set(rows.flatMap((row) => row.condition))];
  const factors = FACTORS.filter((name) => rows.length && name in rows[0]);
  const labels = ["item", "suite", "phenomenon", "measure", "rule", ...factors];
  if (rows.length && "rating" in rows[0]) labels.push("rating");
  const fields = ["verdict", "margin", "stable", "difference"];
  const models = collection.about.models.flatMap((model) => fields.map((field) => `${field} ${model.name}`));
  return writeCsv([...labels, ...models, ...conditions.map((name) => `text_${name}`)], rows.map((row) => [
    ...labels.map((name) => row[name]),
    ...collection.about.models.flatMap((_, place) => fields.map((field) => row[field][place])),
    ...conditions.map((name) => row.text[row.condition.indexOf(name)]),
  ]));
}

function writeStimuli(collection, rows) {
  const columns = collection.stimuli;
  const seen = new Set();
  const lines = [];
  for (const row of rows) {
    for (const sentence of row.sentences) {
      const item = collection.about.views.includes("contexts") ? row.key.split("~").slice(0, 2).join("~") : row.item;
      const name = JSON.stringify([item, sentence.condition, sentence.context]);
      if (seen.has(name)) continue;
      seen.add(name);
      const all = { item, condition: sentence.condition, text: sentence.text, context: sentence.context, suite: row.suite, phenomenon: row.phenomenon };
      lines.push(columns.map((column) => all[column]));
    }
  }
  return writeCsv(columns, lines);
}

export function makeOfflineSource(data) {
  const collections = new Map(data.collections.map((collection) => [collection.about.name, collection]));
  for (const collection of collections.values()) {
    for (const row of collection.items || []) row.search = `${row.item} ${row.text.join(" ")}`.toLowerCase();
  }
  const find = (params) => collections.get(params.get("data")) || [...collections.values()][0];

  function items(params) {
    const collection = find(params);
    const { measure } = choices(collection, params);
    const rows = orderRows(take(collection, params), collection, params);
    const offset = PAGE_SIZE * (Math.max(1, Number(params.get("page")) || 1) - 1);
    return {
      rows: rows.slice(offset, offset + PAGE_SIZE), total: rows.length, size: PAGE_SIZE,
      all: collection.items.filter((row) => row.measure === measure).length,
      facets: Object.fromEntries(collection.about.facets.map((facet) => [facet, countFacet(collection, params, facet)])),
    };
  }

  function item(params) {
    const collection = find(params);
    const { measure } = choices(collection, params);
    const found = collection.items.find((row) => row.measure === measure && row.key === params.get("key"));
    if (!found) throw new Error("There is no such item; open the list of items and choose one.");
    const keys = orderRows(take(collection, params), collection, params).map((row) => row.key);
    const place = keys.indexOf(found.key);
    const around = { place: place < 0 ? null : place + 1, of: keys.length, before: keys[place - 1] || null, after: keys[place + 1] || null };
    return { ...found, around };
  }

  function compare(params) {
    const collection = find(params);
    const { a, b } = choices(collection, params);
    const free = take(collection, params, "pick");
    const counts = { all: free.length };
    for (const pick of Object.keys(collection.about.picks)) counts[pick] = free.filter((row) => picked(pick, row, a, b)).length;
    const drawn = orderRows(take(collection, params), collection, params).filter((row) => row.margin[a] !== null && row.margin[b] !== null);
    const points = drawn.map((row) => [row.key, row.margin[a], row.margin[b], row.verdict[a], row.verdict[b]]);
    return { counts, n: points.length, points };
  }

  function suites(params) {
    const collection = find(params);
    const { measure, a, b } = choices(collection, params);
    const direct = collection.suites[`${measure} ${a} ${b}`];
    if (direct) return direct;
    const other = collection.suites[`${measure} ${b} ${a}`] || Object.values(collection.suites)[0];
    const turn = (test) => test && a !== b ? { ...test, difference: -test.difference, only_a: test.only_b, only_b: test.only_a } : undefined;
    return { rows: other.rows.map((row) => ({ ...row, test: turn(row.test) })), overall: { ...other.overall, test: turn(other.overall.test) } };
  }

  const pick = (make) => async (params) => make(params);
  return {
    offline: true,
    about: async () => ({ collections: data.collections.map((collection) => collection.about), live: [] }),
    items: pick(items),
    item: pick(item),
    compare: pick(compare),
    suites: pick(suites),
    regions: pick((params) => find(params).regions[params.get("region_suite") || find(params).about.suites[0]]),
    contexts: pick((params) => find(params).contexts),
    ratings: pick((params) => {
      const { measure, a } = choices(find(params), params);
      return find(params).ratings[`${measure} ${a}`];
    }),
    words: pick((params) => {
      const { about, passages } = find(params);
      const text = params.get("text");
      const place = text ? about.passages.findIndex((each) => each.texts.includes(text)) : 0;
      if (place < 0) throw new Error(`There is no text '${text}'; choose one from the list.`);
      return passages[place];
    }),
    selection: pick((params) => writeSelection(find(params), orderRows(take(find(params), params), find(params), params))),
    stimuli: pick((params) => writeStimuli(find(params), orderRows(take(find(params), params), find(params), params))),
  };
}
