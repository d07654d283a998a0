"use strict";
// Headings become buttons here, and not in the markup: without scripts there is nothing to press.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  const words = new Intl.Collator(undefined, { numeric: true });
  headings.forEach((heading, column) => {
    const byWords = "words" in heading.dataset;
    const key = (row) => {
      const cell = row.cells[column];
      if (byWords) return cell.textContent;
      return cell.dataset.value === "" ? null : Number(cell.dataset.value);
    };
    const sort = () => {
      const now = heading.getAttribute("aria-sort");
      const other = { ascending: "descending", descending: "ascending" };
      const order = now ? other[now] : heading.dataset.first;
      const sign = order === "ascending" ? 1 : -1;
      const keyed = [...body.rows].map((row) => [key(row), row]);
      keyed.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null); // missing ones last
        return sign * (byWords ? words.compare(a, b) : a < b ? -1 : a > b ? 1 : 0);
      });
      for (const each of headings) each.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", order);
      body.append(...keyed.map(([, row]) => row));
    };
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", sort);
    heading.append(button);
  });
}
// On paper nothing unfolds.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});
