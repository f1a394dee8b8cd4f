(() => {
  "use strict";
  document.documentElement.classList.add("scripted");

  /* What a column is sorted by: the first number of a cell in a column of numbers (none is below every number), else its text. */
  const value = (row, column, numeric) => {
    const text = row.cells[column].textContent.trim();
    if (!numeric) return text.toLowerCase();
    const number = text.replaceAll(",", "").replace("−", "-").match(/-?\d*\.?\d+/);
    return number ? Number(number[0]) : -Infinity;
  };
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const numeric = head.classList.contains("num") || head.classList.contains("bar");
        const now = head.getAttribute("aria-sort");
        const next = now ? (now === "ascending" ? "descending" : "ascending") : numeric ? "descending" : "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", next);
        const sign = next === "ascending" ? 1 : -1;
        const body = table.tBodies[0];
        const rows = [...body.rows].sort((a, b) => sign * compare(value(a, column, numeric), value(b, column, numeric)));
        body.append(...rows);
      });
    });
  }

  const tip = document.getElementById("tip");
  const show = (token) => {
    tip.textContent = token.dataset.tip;
    tip.hidden = false;
    const at = token.getBoundingClientRect();
    const edge = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const above = at.top - tip.offsetHeight - 6;
    tip.style.left = `${Math.max(8, Math.min(at.left, edge)) + window.scrollX}px`;
    tip.style.top = `${(above > 4 ? above : at.bottom + 6) + window.scrollY}px`;
  };
  const hide = () => { tip.hidden = true; };
  for (const sentence of document.querySelectorAll(".sentence")) {
    const tokens = [...sentence.querySelectorAll(".t")];
    tokens.forEach((token, place) => {
      token.dataset.tip = token.title;
      token.removeAttribute("title");
      token.tabIndex = place ? -1 : 0;
    });
    sentence.addEventListener("keydown", (event) => {
      const place = tokens.indexOf(document.activeElement);
      const forward = getComputedStyle(sentence).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
      const back = forward === "ArrowRight" ? "ArrowLeft" : "ArrowRight";
      if (event.key === "Escape") return hide();
      const next = { [forward]: place + 1, [back]: place - 1, Home: 0, End: tokens.length - 1 }[event.key];
      if (place < 0 || next === undefined || !tokens[next]) return;
      event.preventDefault();
      tokens[place].tabIndex = -1;
      tokens[next].tabIndex = 0;
      tokens[next].focus();
    });
    const found = (event) => event.target.closest(".t");
    sentence.addEventListener("pointerover", (event) => { const token = found(event); if (token) show(token); });
    sentence.addEventListener("pointerleave", hide);
    sentence.addEventListener("focusin", (event) => { const token = found(event); if (token) show(token); });
    sentence.addEventListener("focusout", hide);
  }

  /* A button that copies what `give` returns; where the clipboard is closed, as on some file pages, it is shown. */
  const copier = (name, give) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", async () => {
      const text = give();
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = name; }, 1500);
      } catch { window.prompt("Copy this:", text); }
    });
    return button;
  };
  const written = (cell) => cell.textContent.replace(/\s+/g, " ").trim();
  const rowsOf = (table) => [...table.rows].map((row) => [...row.cells].map(written));
  const asCsv = (table) => rowsOf(table).map((row) => row.map((text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(",")).join("\n") + "\n";
  const LATEX = { "\\": "\\textbackslash{}", "&": "\\&", "%": "\\%", "$": "\\$", "#": "\\#", "_": "\\_", "{": "\\{", "}": "\\}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "–": "--", "−": "$-$", "<": "$<$", ">": "$>$" };
  const latex = (text) => text.replace(/[\\&%$#_{}~^–−<>]/g, (found) => LATEX[found]);
  const asLatex = (table) => {
    const [head, ...body] = rowsOf(table);
    const kinds = [...table.rows[0].cells].map((cell) => (cell.classList.contains("num") ? "r" : "l")).join("");
    const line = (row) => `${row.map(latex).join(" & ")} \\\\`;
    return ["\\begin{tabular}{" + kinds + "}", "\\toprule", line(head), "\\midrule", ...body.map(line), "\\bottomrule", "\\end{tabular}", ""].join("\n");
  };
  /* An item as a numbered example in the style of gb4e, with the surprisal of every token under it. */
  const asExample = (item) => {
    const sides = [...item.querySelectorAll(".side")].map((side) => {
      const tokens = [...side.querySelectorAll(".t")].map((token) => `${latex(token.querySelector(".w").textContent.trim())}$_{${token.querySelector(".n").textContent.trim().replace("–", "")}}$`);
      return `\\ex[${side.classList.contains("bad") ? "*" : ""}]{${tokens.join(" ")}}`;
    });
    return ["\\begin{exe}", "\\ex\\begin{xlist}", ...sides, "\\end{xlist}", "\\end{exe}", ""].join("\n");
  };
  const offer = (after, ...buttons) => {
    const line = document.createElement("p");
    line.className = "copy";
    line.append("Copy as ", ...buttons);
    after.after(line);
  };
  for (const box of document.querySelectorAll("div.scroll")) {
    const table = box.querySelector("table");
    if (table) offer(box, copier("CSV", () => asCsv(table)), copier("LaTeX", () => asLatex(table)));
  }
  for (const item of document.querySelectorAll(".case")) offer(item.lastElementChild, copier("LaTeX example", () => asExample(item)));
  for (const sentence of document.querySelectorAll(".finding")) {
    const text = written(sentence);
    sentence.append(copier("Copy", () => text));
  }
  for (const box of document.querySelectorAll(".command")) {
    const code = box.querySelector("code");
    box.append(copier("Copy", () => code.textContent));
  }
})();
