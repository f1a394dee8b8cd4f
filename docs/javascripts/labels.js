// Names and keys that the theme does not give: its search, its copy buttons, tables and outputs that scroll sideways.
"use strict";

let codes = 0;
let tables = 0;
let outputs = 0;

function nameParts() {
  for (const dialog of document.querySelectorAll(".md-search[role=dialog]")) dialog.setAttribute("aria-label", "Search");
  for (const nav of document.querySelectorAll(".md-code__nav:not([aria-label])")) nav.setAttribute("aria-label", `Code ${++codes}`);
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
    wrap.tabIndex = 0;
    wrap.setAttribute("role", "region");
    wrap.setAttribute("aria-label", `Table ${++tables}`);
  }
  for (const wrap of document.querySelectorAll("div[style*='overflow-x']:not([tabindex])")) {
    wrap.tabIndex = 0;
    wrap.setAttribute("role", "region");
    wrap.setAttribute("aria-label", `Output ${++outputs}`);
  }
  // Parts of a table of contents are no landmarks of their own; their names may repeat.
  for (const part of document.querySelectorAll(".md-nav--secondary .md-nav[aria-label]")) {
    part.removeAttribute("aria-label");
    part.setAttribute("role", "none");
  }
  // A corner without a heading is a plain cell.
  for (const head of document.querySelectorAll("th:empty")) head.replaceWith(document.createElement("td"));
}

nameParts();
new MutationObserver(nameParts).observe(document.body, { childList: true, subtree: true });
