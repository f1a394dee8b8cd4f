// Every state of the page is an address: the view and its parameters stand behind the # sign.
export const VIEWS = ["items", "item", "compare", "suites", "regions", "contexts", "ratings", "words", "live"];

export function readState(hash = location.hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const view = VIEWS.includes(path) ? path : "";
  return { view, params: new URLSearchParams(query || "") };
}

// The address of a view: the present parameters with changes; null and empty values leave, lists repeat.
export function link(view, changes = {}, params = readState().params) {
  const next = new URLSearchParams(params);
  for (const [name, value] of Object.entries(changes)) {
    next.delete(name);
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== null && each !== undefined && each !== "") next.append(name, each);
    }
  }
  const query = next.toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

export function go(view, changes = {}, { replace = false } = {}) {
  const address = link(view, changes);
  if (replace) {
    history.replaceState(null, "", address);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = address;
}

// The address alone, for what the page shows already.
export function keep(view, changes) {
  history.replaceState(null, "", link(view, changes));
  document.querySelector("main").dataset.shown = location.hash;
}

export function later(action, wait) {
  let timer = null;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), wait);
  };
}
