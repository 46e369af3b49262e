// Tables: they are sorted by a click on a heading, and a note says if one continues beyond the screen.

/** The key by which a cell is sorted: its number, else its text. Cells without a number come last. */
function sortKey(cell) {
  const text = cell.textContent.trim();
  const number = parseFloat(text.replace(/[,−]/g, (sign) => (sign === "," ? "" : "-")));
  if (!Number.isNaN(number)) return { number, text };
  return { number: text === "infinite" ? Infinity : NaN, text };
}

function compareKeys(one, other) {
  if (Number.isNaN(one.number) || Number.isNaN(other.number)) {
    return Number.isNaN(one.number) - Number.isNaN(other.number) || one.text.localeCompare(other.text, undefined, { numeric: true });
  }
  return one.number - other.number;
}

function sortBy(table, column, falling) {
  for (const body of table.tBodies) {
    const rows = [...body.rows].map((row) => ({ row, key: sortKey(row.cells[column]) }));
    rows.sort((one, other) => (falling ? compareKeys(other.key, one.key) : compareKeys(one.key, other.key)));
    body.append(...rows.map(({ row }) => row));
  }
  [...table.tHead.rows[0].cells].forEach((cell, place) => {
    if (place === column) cell.setAttribute("aria-sort", falling ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  });
}

function setUpSorting() {
  for (const table of all("table.sortable")) {
    if (table.tBodies[0].rows.length < 2) continue;
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
      const button = element("button", { type: "button", className: "sort" }, ...cell.childNodes);
      button.addEventListener("click", () => sortBy(table, column, cell.getAttribute("aria-sort") === "ascending"));
      cell.append(button);
    });
  }
}

function setUpScrolling() {
  const observer = new ResizeObserver((entries) => entries.forEach(({ target }) => mark(target)));
  const mark = (box) => box.classList.toggle("wider", box.scrollWidth > box.clientWidth + 1);
  all(".scroll").forEach((box) => observer.observe(box));
}
