// Drawing: axes, lines and markers into a chart of the page. A plot is stretched to its width; texts and markers are placed in
// per cent, so that they are not.

const COLUMNS = 800; // of a plot; each shows the lowest and the highest score in it

function liveChart(id) {
  const root = document.getElementById(id);
  const plot = root.querySelector(".plot");
  const [svg, marks] = all("svg", plot);
  const { width, height } = svg.viewBox.baseVal;
  return { root, plot, svg, marks, width, height, over: null };
}

/** Draw lines: {series, style, points: [[across, up], …], marks: places in points, or nothing for some}. */
function draw(chart, across, up, lines) {
  Object.assign(chart, { across, up });
  drawAxes(chart);
  chart.svg.replaceChildren();
  chart.marks.replaceChildren();
  drawGrid(chart);
  for (const line of lines) drawLine(chart, line);
  chart.over = svgElement("g", {}, chart.svg); // what moves lies over the lines
}

/** A position in the units of a plot. Infinite scores lie on its border. */
function placed(chart, x, y) {
  const down = 1 - Math.max(0, Math.min(1, chart.up.share(y)));
  return [chart.width * chart.across.share(x), chart.height * down];
}

function drawAxes({ root, across, up }) {
  const [rising, flat] = [root.querySelector(".up"), root.querySelector(".across")];
  const [texts, times] = all("g", flat);
  [rising, texts, times].forEach((part) => part.replaceChildren());
  for (const { value, text } of up.ticks) {
    svgElement("text", { x: "100%", y: `${100 * (1 - up.share(value))}%`, dy: ".35em" }, rising).textContent = text;
  }
  for (const { value, text, time } of across.ticks) {
    const x = `${100 * across.share(value)}%`;
    svgElement("text", { x, y: "1.3em" }, texts).textContent = text;
    if (time) svgElement("text", { x, y: "2.7em" }, times).textContent = time;
  }
  flat.classList.toggle("dense", across.ticks.some(({ text }) => text.length > 4));
}

function drawGrid({ svg, across, up, width, height }) {
  const grid = svgElement("g", { class: "grid" }, svg);
  for (const { value } of up.ticks) svgElement("path", { d: `M0 ${height * (1 - up.share(value))}H${width}` }, grid);
  for (const { value } of across.ticks) svgElement("path", { d: `M${width * across.share(value)} 0V${height}` }, grid);
}

const looks = (style) => ({ class: `line ${style.classes}`, ...(style.dashes && { "stroke-dasharray": style.dashes }) });

function drawLine(chart, { series, style, points, missing = [], marks = [], path = pathOf(chart, points) }) {
  const line = svgElement("g", { ...looks(style), "data-series": series }, chart.svg);
  svgElement("path", { d: path }, line);
  for (const number of missing) {
    svgElement("path", { class: "missing", d: `M${chart.width * chart.across.share(number)} ${chart.height}v-14` }, line);
  }
  const group = svgElement("g", { ...looks(style), "data-series": series }, chart.marks);
  for (const [x, y] of marks) drawMark(chart, group, style, x, y);
}

function drawMark(chart, group, style, x, y) {
  const [across, down] = placed(chart, x, y);
  const at = { x: `${(100 * across) / chart.width}%`, y: `${(100 * down) / chart.height}%` };
  svgElement("path", { class: "mark", d: page.markers[style.marker] }, svgElement("svg", at, group));
}

/** A path through the points, with a gap at each one without a score; a lone point is a dot. */
function pathOf(chart, points) {
  let path = "";
  let open = false;
  for (const [x, y] of points) {
    if (y === null) {
      open = false;
      continue;
    }
    const [across, down] = placed(chart, x, y).map((value) => value.toFixed(1));
    path += open ? `L${across} ${down}` : `M${across} ${down}h0`;
    open = true;
  }
  return path;
}

/** The last point of a line that has a score: the place of its marker. */
const lastOf = (points) => points.filter(([, y]) => y !== null).slice(-1);

/** The points to draw: all if they are few, else the lowest and the highest of each column, so that no outlier is lost. */
function thinned(points, low, high) {
  if (points.length <= 2 * COLUMNS) return points;
  const kept = [];
  let column = -1;
  let least = null;
  let greatest = null;
  const close = () => {
    if (least) kept.push(...[...new Set([least, greatest])].sort((a, b) => a[0] - b[0]));
    least = greatest = null;
  };
  for (const point of points) {
    const place = Math.floor((COLUMNS * (point[0] - low)) / (high - low));
    if (place !== column) {
      close();
      column = place;
    }
    if (point[1] === null) continue;
    if (!least || point[1] < least[1]) least = point;
    if (!greatest || point[1] > greatest[1]) greatest = point;
  }
  close();
  return kept;
}
