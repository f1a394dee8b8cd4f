// Self-paced reading and Maze: one key per word, timed between the time stamps of key events.
"use strict";

(() => {
  const touch = matchMedia("(hover: none) and (pointer: coarse)").matches;
  const refusal = document.getElementById("no-keyboard");
  if (touch && refusal) {
    refusal.hidden = false;
    for (const part of document.querySelectorAll("main form, main .hint")) part.hidden = true;
    return;
  }
  // Without a script the form stays hidden: nobody consents to a study that they cannot do.
  const consent = document.querySelector("form[action='/consent']");
  if (consent) {
    consent.elements.namedItem("script").value = "1";
    consent.hidden = false;
  }
  const reading = document.getElementById("reading");
  const maze = document.getElementById("maze");
  const box = reading || maze;
  if (!box) return;
  const timedForm = box.closest("form");
  const words = JSON.parse(box.dataset.words);
  const rows = [];
  const clockStep = measureClock();
  const gaps = [];
  let lastFrame = 0;
  let meter = 0;
  let last = 0;
  let at = -1;

  // The smallest step of the browser's clock; some browsers round it, against fingerprinting.
  function measureClock() {
    let before = performance.now();
    const end = before + 4;
    let least = Infinity;
    for (let now = before; now < end; now = performance.now()) {
      if (now > before) { least = Math.min(least, now - before); before = now; }
    }
    return Number.isFinite(least) ? least : performance.now() - before;
  }

  // How regularly the screen is redrawn while words are read.
  function countFrame(time) {
    if (lastFrame) gaps.push(time - lastFrame);
    lastFrame = time;
    meter = requestAnimationFrame(countFrame);
  }

  function describeFrames() {
    cancelAnimationFrame(meter);
    const sorted = [...gaps].sort((one, other) => one - other);
    const usual = sorted[Math.floor(sorted.length / 2)] || 0;
    const dropped = gaps.reduce((sum, gap) => sum + Math.max(0, Math.round(gap / usual) - 1), 0);
    const rounded = (value, places) => Number(value.toFixed(places));
    return JSON.stringify({
      frames: gaps.length,
      hz: usual ? rounded(1000 / usual, 2) : null,
      dropped: usual ? dropped : null,
      longest_ms: gaps.length ? rounded(sorted[sorted.length - 1], 2) : null,
      clock_ms: rounded(clockStep, 4),
    });
  }

  function begin() {
    document.addEventListener("visibilitychange", () => { lastFrame = 0; });
    meter = requestAnimationFrame(countFrame);
  }

  function finish() {
    timedForm.elements.namedItem("frames").value = describeFrames();
    timedForm.elements.namedItem("times").value = JSON.stringify(rows);
    timedForm.elements.namedItem("rt").value = rows.reduce((sum, row) => sum + row.ms, 0).toFixed(1);
    timedForm.requestSubmit();
  }

  function note(event, correct) { rows.push({ ms: Math.round(100 * (event.timeStamp - last)) / 100, correct }); }

  function showWindow() {
    if (box.dataset.display === "centred") {
      box.replaceChildren(at < 0 ? cell("+", "centred cross") : cell(words[at], "centred"));
      return;
    }
    const shown = words.map((word, place) => (place === at ? word : "–".repeat([...word].length)));
    // The cross is where the first word will be, as wide as the word, so that nothing moves.
    if (at < 0) shown[0] = "\u00a0".repeat([...words[0]].length - 1);
    box.textContent = shown.join(" ");
    if (at < 0) box.prepend(cell("+", "cross"));
  }

  function onSpace(event) {
    if (event.code !== "Space" || event.repeat || at >= words.length) return;
    event.preventDefault();
    if (at >= 0) note(event, true);
    else begin();
    last = event.timeStamp;
    at += 1;
    if (at === words.length) finish();
    else showWindow();
  }

  function cell(text, kind) {
    const part = document.createElement("span");
    part.className = kind;
    part.textContent = text;
    return part;
  }

  if (reading) {
    showWindow();
    document.addEventListener("keydown", onSpace);
    box.focus();
    return;
  }

  const foils = JSON.parse(box.dataset.foils);
  const left = JSON.parse(box.dataset.left);
  let missed = false;

  function showPair(message) {
    const pair = left[at] ? [words[at], foils[at]] : [foils[at], words[at]];
    const parts = pair.map((word) => cell(word, "word"));
    if (message) parts.push(cell(message, "wide wrong"));
    box.replaceChildren(...parts);
  }

  function onChoice(event) {
    if (event.repeat || at >= words.length) return;
    if (at < 0) {
      if (event.code !== "Space") return;
      event.preventDefault();
      begin();
      at = 0;
      last = event.timeStamp;
      showPair("");
      return;
    }
    const side = { KeyE: true, ArrowLeft: true, KeyI: false, ArrowRight: false }[event.code];
    if (side === undefined) return;
    event.preventDefault();
    const right = side === left[at];
    if (!missed) note(event, right);
    if (!right) {
      missed = true;
      if (box.dataset.onError === "stop") { at = words.length; box.replaceChildren(cell(box.dataset.wrong, "wide wrong")); setTimeout(finish, 700); }
      else showPair(box.dataset.wrong);
      return;
    }
    missed = false;
    last = event.timeStamp;
    at += 1;
    if (at === words.length) finish();
    else showPair("");
  }

  box.replaceChildren(cell("+", "wide cross"), cell(box.dataset.start, "wide"));
  document.addEventListener("keydown", onChoice);
  box.focus();
})();
