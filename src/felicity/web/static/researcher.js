// Keep the researcher's page up to date without losing its place.
"use strict";

setInterval(async () => {
  if (document.hidden) return;
  try {
    const answer = await fetch("/researcher", { credentials: "same-origin" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.querySelector("main").replaceWith(page.querySelector("main"));
  } catch (error) { /* the server is away; the next try will tell */ }
}, 10000);
