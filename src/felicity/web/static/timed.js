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
  const reading = document.getElementById("reading");
  const maze = document.getElementById("maze");
  const box = reading || maze;
  if (!box) return;
  const timedForm = box.closest("form");
  const words = JSON.parse(box.dataset.words);
  const rows = [];
  let last = 0;
  let at = -1;

  function finish() {
    timedForm.elements.namedItem("times").value = JSON.stringify(rows);
    timedForm.elements.namedItem("rt").value = rows.reduce((sum, row) => sum + row.ms, 0).toFixed(1);
    timedForm.requestSubmit();
  }

  function note(event, correct) { rows.push({ ms: Math.round(100 * (event.timeStamp - last)) / 100, correct }); }

  function showWindow() {
    if (box.dataset.display === "centred") {
      const span = document.createElement("span");
      span.className = "centred";
      span.textContent = at < 0 ? "+" : words[at];
      box.replaceChildren(span);
      return;
    }
    box.textContent = words.map((word, place) => (place === at ? word : "–".repeat([...word].length))).join(" ");
  }

  function onSpace(event) {
    if (event.code !== "Space" || event.repeat || at >= words.length) return;
    event.preventDefault();
    if (at >= 0) note(event, true);
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

  box.replaceChildren(cell(box.dataset.start, "wide"));
  document.addEventListener("keydown", onChoice);
  box.focus();
})();
