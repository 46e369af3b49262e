// Scores over frames, and how they are distributed: cursor, zoom, which clips are drawn and which stands out.

const NEAR = 24; // pixels between the pointer and the line that stands out
const DRAG = 6; // pixels after which a drag draws a range; below, it points at a frame
const MIN_FRAMES = 4; // that are shown at the closest zoom
const AROUND = 60; // frames on either side of the cursor that are shown below a chart too narrow to show each of them

const visible = () => drawable.filter((series) => !state.hidden.has(series) && clips[series].scores[state.metric]);
const shownRange = () => state.range ?? [numbers[0], numbers.at(-1)];

/** The points of a clip within the range that is shown, and the frames in it that have no score. */
function pointsOf(series, [first, last]) {
  const { frames, scores } = clips[series];
  const points = [];
  const missing = [];
  for (let place = 0; place < frames.length; place += 1) {
    if (frames[place] < first || frames[place] > last) continue;
    const score = scaled(scores[state.metric][place]);
    if (score === null) missing.push(frames[place]);
    points.push([frames[place], score]);
  }
  return { points, missing };
}

function drawScores(chart) {
  const range = shownRange();
  const lines = visible().map((series) => ({ series, style: clips[series].style, ...pointsOf(series, range) }));
  const up = axisOfScores(lines.flatMap(({ points }) => points.map(([, score]) => score)));
  const across = frameAxis(...range);
  across.ticks.forEach((tick) => (tick.time = timeAt(tick.value)));
  const several = clips.length > 1;
  draw(chart, across, up, lines.map((line) => ({ ...line, points: thinned(line.points, across.low, across.high), marks: several ? lastOf(line.points) : [] })));
  markMoments(chart);
  chart.root.querySelector(".axis-title").textContent = axisTitle();
  highlight();
}

/** Mark the worst moments by their rank, at the score of the clip that was worst. */
function markMoments(chart) {
  (page.moments[state.group] ?? []).forEach(({ frame, clip }, place) => {
    const score = clips[clip].scores[state.metric]?.[places[clip].get(frame)] ?? null;
    if (score === null || state.hidden.has(clip) || frame < chart.across.low || frame > chart.across.high) return;
    const [across, down] = placed(chart, frame, scaled(score));
    const [x, y] = [`${(100 * across) / chart.width}%`, `${(100 * down) / chart.height}%`];
    const group = svgElement("g", { class: "moment" }, chart.marks);
    svgElement("circle", { cx: x, cy: y, r: 4 }, group);
    svgElement("text", { x, y, dy: "1.5em" }, group).textContent = place + 1;
  });
}

function drawDistribution(chart) {
  const sorted = visible().map((series) => {
    const scores = clips[series].scores[state.metric].map(scaled).filter((score) => score !== null);
    return { series, style: clips[series].style, scores: scores.sort((a, b) => a - b) };
  });
  const across = axisOfScores(sorted.flatMap(({ scores }) => scores));
  const up = linearAxis(0, 100, [0, 25, 50, 75, 100].map((value) => ({ value, text: String(value) })));
  draw(chart, across, up, []);
  for (const { series, style, scores } of sorted) {
    if (!scores.length) continue;
    const count = Math.min(scores.length, COLUMNS / 2);
    const points = Array.from({ length: count }, (_, step) => {
      const rank = count === 1 ? 0 : Math.round((step * (scores.length - 1)) / (count - 1));
      return [Math.min(scores[rank], across.high), (100 * (rank + 1)) / scores.length];
    });
    const marks = clips.length > 1 ? [[points[Math.floor(count / 2)][0], 50]] : [];
    drawLine(chart, { series, style, points, marks, path: stepsOf(chart, points) });
  }
  const [title, below] = all(".axis-title", chart.root);
  title.textContent = "% of frames with so much or less";
  below.textContent = axisTitle();
}

function stepsOf(chart, points) {
  const steps = points.map(([x, y]) => placed(chart, x, y).map((value) => value.toFixed(1)));
  return `M0 ${chart.height}${steps.map(([x, y]) => `H${x}V${y}`).join("")}H${chart.width}`;
}

/** Let a clip stand out wherever it is drawn or named. */
function highlight() {
  document.documentElement.classList.toggle("some-hot", state.hot !== null);
  all(".chart[id] [data-series]").forEach((line) => line.classList.toggle("hot", Number(line.dataset.series) === state.hot));
}

const swatchOf = (series) => document.querySelector(`.legend-box [data-clip="${series}"] .swatch`).cloneNode(true);

// -- the cursor --------------------------------------------------------------------------------------------------------

function showCursor(chart, readout, detail) {
  if (!chart.over) return;
  chart.over.replaceChildren();
  detail.replaceChildren();
  if (state.cursor === null) return;
  const number = numbers[state.cursor];
  const time = timeAt(number);
  svgElement("path", { d: `M${chart.width * chart.across.share(number)} 0V${chart.height}`, class: "cursor" }, chart.over);
  readout.replaceChildren(element("b", { textContent: time ? `Frame ${number} · ${time}` : `Frame ${number}` }), element("br"));
  for (const { series, label, score } of scoresAt(number)) {
    const said = element("span", {}, swatchOf(series), `${label} ${scoreText(score)}`);
    said.classList.toggle("said-hot", series === state.hot);
    readout.append(said);
    if (score === null) continue;
    const [x, y] = placed(chart, number, scaled(score));
    svgElement("path", { d: `M${x} ${y}h0`, class: "dot" }, svgElement("g", looks(clips[series].style), chart.over));
  }
  showDetail(chart, detail);
  chart.plot.setAttribute("aria-valuenow", number);
  chart.plot.setAttribute("aria-valuetext", readout.innerText.replace(/\s+/g, " "));
}

/** The frames around the cursor, if the chart has too many to show each of them. */
function showDetail(chart, detail) {
  const [first, last] = shownRange();
  if (nearestPlace(numbers, last) - nearestPlace(numbers, first) <= 6 * AROUND) return;
  const around = numbers.slice(Math.max(0, state.cursor - AROUND), state.cursor + AROUND + 1);
  const svg = svgElement("svg", { viewBox: `0 0 ${chart.width} ${chart.height}`, preserveAspectRatio: "none", "aria-hidden": true }, detail);
  const strip = { ...chart, svg, across: linearAxis(around[0], around.at(-1), []) };
  svgElement("path", { d: `M${strip.width * strip.across.share(numbers[state.cursor])} 0V${strip.height}`, class: "cursor" }, svg);
  for (const series of visible()) {
    const path = pathOf(strip, pointsOf(series, [around[0], around.at(-1)]).points);
    svgElement("path", { d: path }, svgElement("g", looks(clips[series].style), svg));
  }
  detail.append(element("p", { textContent: `Frames ${around[0]} to ${around.at(-1)}` }));
}

/** Move the cursor to a position in `numbers`; the range that is shown moves with it. */
function moveCursor(place) {
  const cursor = Math.max(0, Math.min(numbers.length - 1, place));
  const [first, last] = shownRange();
  const number = numbers[cursor];
  if (number < first || number > last) setRange(number - (last - first) / 2, number + (last - first) / 2, { cursor });
  else change({ cursor });
}

/** The clip whose line is nearest to the pointer, if any is near. */
function lineNear(chart, event) {
  const box = chart.plot.getBoundingClientRect();
  const y = event.clientY - box.top;
  let found = null;
  let least = NEAR;
  for (const { series, score } of scoresAt(numbers[state.cursor])) {
    if (score === null) continue;
    const away = Math.abs((placed(chart, numbers[state.cursor], scaled(score))[1] * box.height) / chart.height - y);
    if (away < least) [found, least] = [series, away];
  }
  return found;
}

// -- zoom --------------------------------------------------------------------------------------------------------------

/** Show the frames from `first` to `last`, as far as they exist, and at least MIN_FRAMES of them. */
function setRange(first, last, more = {}) {
  const [low, high] = [numbers[0], numbers.at(-1)];
  const extent = Math.max(Math.round(last - first), Math.min(MIN_FRAMES, high - low));
  const start = Math.round(Math.max(low, Math.min(high - extent, first)));
  change({ range: extent >= high - low ? null : [start, start + extent], ...more });
}

/** Zoom by a factor around the cursor, or around the middle if there is no cursor. */
function zoom(factor) {
  const [first, last] = shownRange();
  const number = state.cursor === null ? (first + last) / 2 : numbers[state.cursor];
  const middle = number >= first && number <= last ? number : (first + last) / 2;
  setRange(middle - (middle - first) * factor, middle + (last - middle) * factor);
}

function setUpZoom(figure) {
  figure.querySelector("#zoom-in").addEventListener("click", () => zoom(1 / 2));
  figure.querySelector("#zoom-out").addEventListener("click", () => zoom(2));
  const reset = figure.querySelector("#zoom-reset");
  reset.addEventListener("click", () => change({ range: null }));
  watch(["range"], () => {
    const [first, last] = shownRange();
    figure.querySelector("#zoom-range").textContent = state.range ? `Frames ${first} to ${last}` : "";
    reset.disabled = state.range === null;
  });
  reset.disabled = true;
}

// -- pointer and keys --------------------------------------------------------------------------------------------------

function setUpPointer(chart) {
  const { plot } = chart;
  let start = null; // where a mouse was pressed, in pixels from the left
  let band = null;
  const frameAt = (x) => {
    const [low, high] = [chart.across.low, chart.across.high];
    return low + ((high - low) * x) / plot.getBoundingClientRect().width;
  };
  const fromLeft = (event) => event.clientX - plot.getBoundingClientRect().left;
  const end = () => {
    band?.remove();
    start = band = null;
  };
  plot.addEventListener("pointermove", (event) => {
    const x = fromLeft(event);
    if (start !== null && event.pointerType === "mouse" && Math.abs(x - start) > DRAG) {
      band ??= plot.appendChild(element("div", { className: "band" }));
      band.style.left = `${Math.max(0, Math.min(x, start))}px`;
      band.style.width = `${Math.min(Math.abs(x - start), plot.clientWidth)}px`;
      return;
    }
    moveCursor(nearestPlace(numbers, frameAt(x)));
    const hot = lineNear(chart, event);
    if (hot !== state.hot) change({ hot });
  });
  plot.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    start = fromLeft(event);
    plot.setPointerCapture(event.pointerId);
    moveCursor(nearestPlace(numbers, frameAt(start)));
  });
  plot.addEventListener("pointerup", (event) => {
    const [from, to] = [start, fromLeft(event)];
    const dragged = band !== null;
    end();
    if (dragged) setRange(...[frameAt(from), frameAt(to)].sort((a, b) => a - b));
    else if (from !== null && Math.abs(to - from) <= DRAG) openFrame(numbers[state.cursor], state.hot, plot);
  });
  plot.addEventListener("pointercancel", end);
  plot.addEventListener("pointerleave", () => state.hot !== null && change({ hot: null }));
  plot.addEventListener("dblclick", () => change({ range: null }));
}

function setUpKeys({ plot }) {
  const step = Math.max(10, Math.round(numbers.length / 20));
  const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -step, PageUp: step, Home: -Infinity, End: Infinity };
  const others = {
    Enter: () => openFrame(numbers[state.cursor ?? 0], null, plot),
    "+": () => zoom(1 / 2),
    "=": () => zoom(1 / 2),
    "-": () => zoom(2),
    0: () => change({ range: null }),
  };
  plot.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in steps) moveCursor((state.cursor ?? 0) + steps[event.key]);
    else if (event.key in others) others[event.key]();
    else return;
    event.preventDefault();
  });
  plot.addEventListener("focus", () => state.cursor === null && moveCursor(0));
}

// -- which clips are drawn ---------------------------------------------------------------------------------------------

function setUpLegend() {
  const boxes = all(".legend input");
  const count = document.getElementById("clip-count");
  const others = document.getElementById("other-clips"); // many clips are listed after a click only
  const show = () => {
    boxes.forEach((box) => (box.checked = !box.disabled && !state.hidden.has(Number(box.value))));
    const drawn = drawable.length - state.hidden.size;
    count.textContent = state.hidden.size ? `${drawn} of ${drawable.length} are drawn` : "";
    const isLong = drawable.length > MAX_FIRST_FRAMES;
    const isFolded = isLong && others.getAttribute("aria-pressed") === "false";
    others.classList.toggle("off", !isLong);
    for (const box of boxes) box.closest("li").classList.toggle("off", !isShown(Number(box.value)) || (isFolded && !box.checked));
  };
  for (const box of boxes) {
    box.addEventListener("change", () => {
      const hidden = new Set(state.hidden);
      if (box.checked) hidden.delete(Number(box.value));
      else hidden.add(Number(box.value));
      others.setAttribute("aria-pressed", true); // the box that was just used stays
      change({ hidden });
    });
  }
  document.getElementById("all-clips").addEventListener("click", () => change({ hidden: new Set() }));
  document.getElementById("no-clips").addEventListener("click", () => change({ hidden: new Set(drawable) }));
  others.addEventListener("click", () => {
    others.setAttribute("aria-pressed", others.getAttribute("aria-pressed") === "false");
    show();
  });
  watch(["hidden"], show);
  for (const named of all("[data-clip]")) {
    if (named.closest(".sheet")) continue;
    named.addEventListener("pointerenter", () => change({ hot: Number(named.dataset.clip) }));
    named.addEventListener("pointerleave", () => change({ hot: null }));
  }
}

function setUpScores() {
  if (!document.getElementById("scores")) return;
  const [over, distribution] = [liveChart("scores"), liveChart("distribution")];
  const figure = document.getElementById("over-frames");
  const readout = figure.querySelector(".readout");
  const detail = element("div", { className: "detail" });
  readout.before(detail);
  const { plot } = over;
  const setRangeOfSlider = () => {
    Object.entries({ role: "slider", tabindex: 0, "aria-valuemin": numbers[0], "aria-valuemax": numbers.at(-1),
      "aria-valuenow": numbers[0] }).forEach(([name, value]) => plot.setAttribute(name, value));
  };
  const redraw = () => {
    plot.setAttribute("aria-label", `Frame of the chart of ${page.metrics[state.metric].name}`);
    drawScores(over);
    showCursor(over, readout, detail);
  };
  watch(["reference"], setRangeOfSlider);
  watch(["metric", "decibels", "hidden", "range", "group"], redraw);
  watch(["metric", "decibels", "hidden"], () => (drawDistribution(distribution), highlight()));
  watch(["cursor", "hot"], () => showCursor(over, readout, detail));
  watch(["hot"], highlight);
  setUpPointer(over);
  setUpKeys(over);
  setUpZoom(figure);
  setUpLegend();
}
