// The pages of a study in a frame, one after the other; what a rater would send only leads to the next page.
"use strict";

(() => {
  const study = JSON.parse(document.getElementById("study").textContent);
  const frame = document.getElementById("page");
  let place = 0;

  // Inside the frame: the page's own scripts run, but nothing is sent.
  function keepHere() {
    const next = () => parent.postMessage("felicity-next", "*");
    window.fetch = async () => ({ type: "basic", status: 204 });
    HTMLFormElement.prototype.submit = next;
    document.addEventListener("submit", (event) => {
      if (event.target.matches("[data-answer]")) return;
      event.preventDefault();
      next();
    });
    document.addEventListener("click", (event) => { if (event.target.closest("a[href]")) event.preventDefault(); });
  }

  function show(wanted) {
    place = Math.min(Math.max(wanted, 0), study.pages.length - 1);
    document.getElementById("place").textContent = String(place + 1);
    document.getElementById("previous").disabled = place === 0;
    document.getElementById("next").disabled = place === study.pages.length - 1;
    const run = (text) => `<script>${text.replaceAll("</", "<\\/")}</${"script"}>`;
    frame.srcdoc = `<!doctype html><html lang="${study.lang}" dir="${study.direction}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>${place + 1}</title><style>${study.style}</style></head>${study.pages[place].replace("</body>", "")}${run(`(${keepHere})();`)}${run(study.script)}</body></html>`;
  }

  addEventListener("message", (event) => { if (event.data === "felicity-next" && event.source === frame.contentWindow) show(place + 1); });
  // Keys go to the page once somebody has begun; before that, a page around this one keeps them.
  frame.addEventListener("load", () => { if (place > 0) frame.contentWindow.focus(); });
  document.getElementById("previous").addEventListener("click", () => show(place - 1));
  document.getElementById("next").addEventListener("click", () => show(place + 1));
  document.getElementById("again").addEventListener("click", () => show(0));
  show(0);
})();
