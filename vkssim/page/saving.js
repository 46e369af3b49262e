// Saving a chart as SVG, as it is seen, and its data as CSV.

const LOOKS = ["color", "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "opacity",
  "font-family", "font-size", "font-weight", "text-anchor", "paint-order", "overflow", "vector-effect"];

function saveFile(name, type, text) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** The name of a file: the title of the page and of the chart, without characters that file systems refuse. */
const fileName = (chart, ending) => `${document.title.replace(/ – vkssim$/, "")} ${chart}`.replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 100) + ending;

/** Give a copy the looks that the style sheet gives the original. */
function keepLooks(original, copy) {
  const style = getComputedStyle(original);
  if (style.display === "none") {
    copy.remove();
    return;
  }
  for (const name of LOOKS) copy.setAttribute(name, style.getPropertyValue(name));
  const copies = [...copy.children];
  [...original.children].forEach((child, place) => keepLooks(child, copies[place]));
}

/** A copy of an element of the page at its place, within a picture that begins at `box`. */
function copied(original, box, parent) {
  const { left, top, width, height } = original.getBoundingClientRect();
  const copy = original.cloneNode(true);
  parent.append(copy);
  keepLooks(original, copy);
  Object.entries({ x: left - box.left, y: top - box.top, width, height, overflow: "visible" }).forEach(([name, value]) => copy.setAttribute(name, value));
}

function write(text, original, box, parent) {
  const style = getComputedStyle(original);
  const { left, right, bottom } = original.getBoundingClientRect();
  const end = style.textAlign === "right";
  const looks = { x: (end ? right : left) - box.left, y: bottom - box.top - 5, fill: style.color, "font-family": style.fontFamily, "font-size": style.fontSize, ...(end && { "text-anchor": "end" }) };
  svgElement("text", looks, parent).textContent = text;
}

/** A chart with its axes, titles and legend as one SVG. */
function pictureOfChart(chart, legend) {
  const box = chart.getBoundingClientRect();
  const entries = legend ? all("li", legend).filter((entry) => entry.getClientRects().length && entry.querySelector("input")?.checked !== false) : [];
  const height = Math.ceil(box.height) + 22 * entries.length + 8;
  const made = document.createElementNS(SVG, "svg");
  const size = { xmlns: SVG, width: Math.ceil(box.width), height, viewBox: `0 0 ${Math.ceil(box.width)} ${height}` };
  Object.entries(size).forEach(([name, value]) => made.setAttribute(name, value));
  svgElement("rect", { width: "100%", height: "100%", fill: getComputedStyle(document.body).backgroundColor }, made);
  document.body.append(made); // only elements of the page have computed styles
  all("svg", chart).filter((part) => !part.parentNode.closest("svg")).forEach((part) => copied(part, box, made));
  all(".axis-title", chart).forEach((title) => write(title.textContent, title, box, made));
  entries.forEach((entry, place) => {
    const row = svgElement("svg", { x: 8, y: Math.ceil(box.height) + 22 * place, width: box.width, height: 22, overflow: "visible" }, made);
    const swatch = entry.querySelector(".swatch");
    const copy = swatch.cloneNode(true);
    row.append(copy);
    keepLooks(swatch, copy);
    Object.entries({ x: 0, y: 5, width: 24, height: 12, overflow: "visible" }).forEach(([name, value]) => copy.setAttribute(name, value));
    const style = getComputedStyle(entry);
    svgElement("text", { x: 34, y: 15, fill: style.color, "font-family": style.fontFamily, "font-size": "13px" }, row).textContent = entry.textContent.trim();
  });
  made.remove();
  return new XMLSerializer().serializeToString(made);
}

/** A cell of CSV; a text that a spreadsheet would read as a formula gets an apostrophe in front. */
function csvCell(value) {
  if (typeof value === "number") return String(value);
  const text = String(value ?? "").trim();
  const harmless = /^[=+@\t\r-]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\n\r]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

const csvText = (rows) => rows.map((row) => `${row.map(csvCell).join(",")}\n`).join("");

const rowsOfTable = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.replace(/(\d),(?=\d{3})/g, "$1")));

const DATA = {
  trials: () => rowsOfTable(document.querySelector("#trials table")),
  scores: () => {
    const shown = visible();
    const rows = numbers.map((number) => [number, timeAt(number), ...shown.map((series) => clips[series].scores[state.metric][places[series].get(number)] ?? null)]);
    return [["frame", "time", ...shown.map((series) => `${clips[series].label} ${page.metrics[state.metric].name}`)], ...rows];
  },
  rates: () => [
    ["reference", "ladder", "clip", page.unit, `mean ${page.metrics[state.metric].name}`],
    ...page.ladders.flatMap(({ name, reference, rungs }) => rungs.map(({ clip, rate }) => [page.references[reference], name, clips[clip].label, rate, clips[clip].means[state.metric]])),
  ],
};

function setUpSaving() {
  for (const figure of all(".saved")) {
    const chart = figure.querySelector(".chart");
    const title = figure.closest("section").querySelector("h2").textContent;
    const legend = figure.querySelector(".legend") ?? document.querySelector(`#${figure.dataset.legend ?? "none"} .legend`);
    const row = element("p", { className: "save control" });
    const svg = element("button", { type: "button", textContent: "Save SVG" });
    svg.addEventListener("click", () => saveFile(fileName(title, ".svg"), "image/svg+xml", pictureOfChart(chart, legend)));
    row.append(svg);
    if (figure.dataset.csv) {
      const csv = element("button", { type: "button", textContent: "Save CSV" });
      csv.addEventListener("click", () => saveFile(fileName(title, ".csv"), "text/csv", csvText(DATA[figure.dataset.csv]())));
      row.append(csv);
    }
    figure.append(row);
  }
}
