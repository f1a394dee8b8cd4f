// Keys of the review queue; every one of them presses a button that is on the page.
"use strict";
(() => {
  const form = (id) => document.getElementById(id);
  const submit = (id, button) => {
    const found = form(id);
    if (!found || found.dataset.sent) return;
    found.dataset.sent = "1";
    found.requestSubmit(button || undefined);
  };
  const reject = (place) => {
    const buttons = document.querySelectorAll("#reject button");
    if (place >= 1 && place <= buttons.length) submit("reject", buttons[place - 1]);
  };
  const edit = form("edit");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
    if (typing) {
      if (event.key === "Escape" && edit) {
        edit.open = false;
        edit.querySelector("summary").focus();
      }
      return;
    }
    const key = event.key.toLowerCase();
    if (key === "a") submit("accept");
    else if (key === "u") submit("undo");
    else if (key === "r") document.querySelector("#reject button")?.focus();
    else if (key === "e" && edit) {
      edit.open = true;
      form("first").focus();
      event.preventDefault();
    } else if (/^[1-9]$/.test(key)) reject(Number(key));
  });
})();
