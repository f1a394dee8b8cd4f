// Keep the researcher's page up to date without losing its place; copy the link to share.
"use strict";

setInterval(async () => {
  // Whoever is reading a field of the page is not interrupted.
  if (document.hidden || document.activeElement.closest(".share")) return;
  try {
    const answer = await fetch(location.pathname, { credentials: "same-origin" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.querySelector("main").replaceWith(page.querySelector("main"));
  } catch (error) { /* the server is away; the next try will tell */ }
}, 10000);

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const field = document.getElementById(button.dataset.copy);
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    button.textContent = "Copied";
  } catch (error) { /* the text is selected, to be copied by hand */ }
});
