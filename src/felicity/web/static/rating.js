// What a page of the rating site does beyond its form: number keys, answer times, and patience when offline.
"use strict";

const KEPT = "felicity-unsent";
const BEAT_MS = 60000;
const LONGEST_WAIT_MS = 15000;

const form = document.querySelector("form[data-answer]");
const banner = document.getElementById("offline");
let shownAt = performance.now();
let sending = false;

requestAnimationFrame(() => requestAnimationFrame((time) => { shownAt = time; }));

function field(name) { return form.elements.namedItem(name); }

function ready() {
  field("script").value = "1";
  document.addEventListener("visibilitychange", () => { if (document.hidden) field("away").value = "1"; });
  document.addEventListener("keydown", chooseByKey);
  // The page says itself what is missing: the browser's own check moves the focus to the first option, which
  // looks like an answer.
  form.noValidate = true;
  form.addEventListener("submit", submitted);
  form.addEventListener("input", () => tell(""));
  for (const text of form.querySelectorAll("[data-text]")) watchTyping(text);
  const slider = form.querySelector("[data-slider]");
  if (slider) makeSlider(slider);
  const first = form.querySelector("[data-text], input.short");
  if (first) first.focus();
  pointDown();
  setInterval(beat, BEAT_MS);
  sendKept();
}

// Number keys choose where options show their numbers; Enter sends.
function chooseByKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const typing = event.target.matches("textarea, input:not([type=radio]):not([type=checkbox])");
  const radios = [...form.querySelectorAll("[data-keys] input[type=radio]")];
  if (!typing && radios.length && /^[0-9]$/.test(event.key)) {
    const place = event.key === "0" ? 9 : Number(event.key) - 1;
    if (radios[place]) {
      radios[place].checked = true;
      radios[place].focus();
      tell("");
      event.preventDefault();
    }
  } else if (event.key === "Enter" && event.target === document.body) {
    form.requestSubmit();
  }
}

function isMissing(input) {
  if (input.type === "radio") return !form.querySelector(`[name="${input.name}"]:checked`);
  return !input.value.trim();
}

// What is missing, above the button; nothing is chosen and the focus stays.
function tell(message) {
  for (const old of form.querySelectorAll(".error")) old.remove();
  if (!message) return;
  const box = document.createElement("p");
  box.className = "error";
  box.setAttribute("role", "alert");
  box.textContent = message;
  form.querySelector(".buttons").before(box);
  box.scrollIntoView({ block: "nearest" });
}

// On a small screen the answers may be below the edge; say so until they have been seen.
function pointDown() {
  const sign = form.querySelector(".scroll-down");
  const lowest = [...form.querySelectorAll(".point, .option, .slider, textarea, .gap, input.short")].pop();
  if (!sign || !lowest) return;
  new IntersectionObserver(([seen], observer) => {
    sign.hidden = seen.isIntersecting || seen.boundingClientRect.top < 0;
    if (seen.isIntersecting) observer.disconnect();
  }, { threshold: 0.9 }).observe(lowest);
}

function hide(name, value) {
  let input = field(name);
  if (!input) {
    input = document.createElement("input");
    input.type = "hidden";
    input.name = name;
    form.append(input);
  }
  input.value = value;
}

function watchTyping(text) {
  let typed = 0;
  hide("typed", "0");
  text.addEventListener("input", (event) => {
    if (event.inputType === "insertFromPaste" || event.inputType === "insertFromDrop") hide("pasted", "1");
    else if (event.inputType && event.inputType.startsWith("insert")) typed += Math.max(1, (event.data || "").length);
    hide("typed", String(typed));
  });
  text.addEventListener("paste", () => hide("pasted", "1"));
}

// A slider without a start position: the handle appears where the line is first touched.
function makeSlider(box) {
  const number = box.querySelector("input[type=number]");
  const range = document.createElement("input");
  range.type = "range";
  range.min = number.min;
  range.max = number.max;
  range.step = "any";
  range.className = number.value ? "" : "untouched";
  if (number.value) range.value = number.value;
  range.setAttribute("aria-labelledby", "q");
  range.setAttribute("aria-describedby", "low high");
  const low = Number(range.min), high = Number(range.max);
  let digits = "";
  const take = () => {
    range.classList.remove("untouched");
    number.value = String(Math.round(Number(range.value) * 100) / 100);
  };
  range.addEventListener("input", () => { digits = ""; take(); });
  range.addEventListener("pointerup", take);
  range.addEventListener("keydown", (event) => {
    const step = (high - low) / 100;
    const moves = { ArrowRight: step, ArrowUp: step, ArrowLeft: -step, ArrowDown: -step, PageUp: 10 * step, PageDown: -10 * step };
    const flip = document.documentElement.dir === "rtl" && /^Arrow(Left|Right)$/.test(event.key) ? -1 : 1;
    if (/^[0-9]$/.test(event.key)) {
      const longer = digits + event.key;
      digits = Number(longer) <= high ? longer : event.key;
      range.value = digits;
    } else if (event.key in moves) {
      digits = "";
      range.value = String(Number(range.value) + flip * moves[event.key]);
    } else if (event.key === "Enter") {
      event.preventDefault();
      form.requestSubmit();
      return;
    } else if (event.key === "Home" || event.key === "End") {
      range.value = event.key === "Home" ? range.min : range.max;
    } else return;
    event.preventDefault();
    take();
  });
  number.closest("label").hidden = true;
  box.querySelector(".ends").after(range);
  box.querySelector(".slider-hint").hidden = false;
  document.addEventListener("keydown", (event) => { if (event.target === document.body && /^[0-9]$/.test(event.key)) { range.focus(); range.dispatchEvent(new KeyboardEvent("keydown", { key: event.key })); } });
}

async function submitted(event) {
  event.preventDefault();
  if (sending) return;
  if ([...form.querySelectorAll("[required]")].some(isMissing)) {
    tell(form.dataset.missing);
    return;
  }
  sending = true;
  if (!field("rt").value) field("rt").value = (event.timeStamp - shownAt).toFixed(1);
  const body = new URLSearchParams(new FormData(form)).toString();
  for (const button of form.querySelectorAll("button")) button.disabled = true;
  try { sessionStorage.setItem(KEPT, JSON.stringify([form.action, body])); } catch (error) { /* private mode */ }
  await deliver(form.action, body, () => HTMLFormElement.prototype.submit.call(form));
}

// Try until the server has stored the answer. A page that asks again is shown by sending the form plainly.
async function deliver(address, body, plainly) {
  for (let wait = 1000; ; wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
    let status = 0;
    try {
      const headers = { "Content-Type": "application/x-www-form-urlencoded" };
      const answer = await fetch(address, { method: "POST", headers, body, redirect: "manual", credentials: "same-origin" });
      status = answer.type === "opaqueredirect" ? 303 : answer.status;
    } catch (error) { status = 0; }
    if (status === 303) {
      forgetKept();
      location.replace("/study");
      return;
    }
    if (status !== 0 && status !== 429 && status < 500) {
      forgetKept();
      plainly();
      return;
    }
    banner.textContent = banner.dataset.text;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

function forgetKept() { try { sessionStorage.removeItem(KEPT); } catch (error) { /* private mode */ } }

// An answer that could not be sent before the page was reloaded is sent now.
function sendKept() {
  let kept = null;
  try { kept = JSON.parse(sessionStorage.getItem(KEPT)); } catch (error) { return; }
  if (kept) deliver(kept[0], kept[1], () => location.reload());
}

function beat() {
  const body = new URLSearchParams({ token: field("token").value });
  fetch("/alive", { method: "POST", body, credentials: "same-origin" }).catch(() => {});
}

if (form) ready();
