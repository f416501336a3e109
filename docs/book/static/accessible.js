/* What the theme and pandas leave without a name. */
addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("summary")) {
    if (!summary.textContent.trim()) summary.setAttribute("aria-label", "Pages below");
  }
  for (const head of document.querySelectorAll("th")) {
    if (head.textContent.trim()) continue;
    const corner = document.createElement("td");
    corner.colSpan = head.colSpan;
    head.replaceWith(corner);
  }
  for (const side of document.querySelectorAll(".bd-sidebar-primary")) {
    side.setAttribute("role", "region");
    side.setAttribute("aria-label", "Contents");
  }
});
