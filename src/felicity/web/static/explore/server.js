// Answers from the server. The key of the page's address goes into a header, which no other origin may send.
export function makeServerSource() {
  const key = new URLSearchParams(location.search).get("key") || "";

  async function ask(path, params, body) {
    const query = params ? `?${params}` : "";
    const answer = await fetch(`/api/${path}${query}`, {
      method: body ? "POST" : "GET",
      headers: { "x-felicity-key": key, ...(body ? { "content-type": "application/json" } : {}) },
      body: body ? JSON.stringify(body) : undefined,
      credentials: "omit",
    });
    const text = await answer.text();
    if (answer.ok) return path.endsWith(".csv") ? text : JSON.parse(text);
    let told = "The server does not answer as it should; start `felicity explore` again.";
    try { told = JSON.parse(text).error || told; } catch (error) { /* not ours */ }
    throw new Error(told);
  }

  return {
    offline: false,
    about: () => ask("about"),
    items: (params) => ask("items", params),
    item: (params) => ask("item", params),
    compare: (params) => ask("compare", params),
    suites: (params) => ask("suites", params),
    regions: (params) => ask("regions", params),
    contexts: (params) => ask("contexts", params),
    ratings: (params) => ask("ratings", params),
    words: (params) => ask("words", params),
    selection: (params) => ask("selection.csv", params),
    stimuli: (params) => ask("stimuli.csv", params),
    live: (body) => ask("live", null, body),
    alternatives: (body) => ask("alternatives", null, body),
    pairs: (body) => ask("pairs.csv", null, body),
  };
}
