"use strict";
// The page is complete without this script. It adds a cursor to the charts, the choice of metric, clips and theme, and the
// comparison of worst frames.

const clips = JSON.parse(document.getElementById("data").textContent); // label, frames, times, scores of each
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const SVG = "http://www.w3.org/2000/svg";

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function timeCode(seconds) {
  if (seconds === null) return "";
  const thousandths = Math.round(Math.abs(seconds) * 1000);
  const digits = (value, count = 2) => String(Math.floor(value)).padStart(count, "0");
  const clock = [thousandths / 3600000, (thousandths / 60000) % 60, (thousandths / 1000) % 60].map((value) => digits(value));
  return (seconds < 0 && thousandths ? "-" : "") + clock.join(":") + "." + digits(thousandths % 1000, 3);
}

// -- theme ------------------------------------------------------------------------------------------------------------

function setUpTheme() {
  const button = document.getElementById("theme");
  let dark = matchMedia("(prefers-color-scheme: dark)").matches;
  button.setAttribute("aria-pressed", dark);
  button.addEventListener("click", () => {
    dark = !dark;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    button.setAttribute("aria-pressed", dark);
  });
}

// -- charts -----------------------------------------------------------------------------------------------------------

const numbers = [...new Set(clips.flatMap((clip) => clip.frames))].sort((a, b) => a - b); // of the frames of all clips
const places = clips.map((clip) => new Map(clip.frames.map((number, place) => [number, place])));
const hidden = new Set(); // clips that the legend has turned off
let cursor = null; // its place in `numbers`, the same in every chart

function nearest(number) {
  let low = 0;
  let high = numbers.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < number) low = middle + 1;
    else high = middle;
  }
  return low > 0 && number - numbers[low - 1] < numbers[low] - number ? low - 1 : low;
}

/** {series, label, score} of each visible clip that a frame was scored of; score is null where that gave no number. */
function scoresAt(metric, number) {
  return clips.flatMap((clip, series) => {
    const place = places[series].get(number);
    if (hidden.has(series) || place === undefined || !Object.hasOwn(clip.scores, metric)) return [];
    return [{ series, label: clip.label, score: clip.scores[metric][place] }];
  });
}

function timeAt(number) {
  for (const [series, clip] of clips.entries()) {
    const place = places[series].get(number);
    if (clip.times && place !== undefined && clip.times[place] !== null) return timeCode(clip.times[place]);
  }
  return "";
}

function svgElement(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  parent.append(made);
  return made;
}

const AROUND = 60; // frames on either side of the cursor that a clip too long to show each of them shows below it

/** What draws the frames around the cursor into a figure, on the chart's scale of scores. */
function setUpDetail(figure, metric, width, height, down) {
  const detail = element("div", { className: "detail control" });
  const svg = svgElement("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": true }, detail);
  const caption = element("p");
  detail.append(caption);
  figure.querySelector(".readout").before(detail);
  return () => {
    const shown = numbers.slice(Math.max(0, cursor - AROUND), cursor + AROUND + 1);
    const [first, last] = [shown[0], shown.at(-1)];
    const across = (number) => (width * (number - first)) / (last - first);
    const paths = new Map();
    const broken = new Set(); // series whose last frame had no score
    for (const number of shown) {
      for (const { series, score } of scoresAt(metric, number)) {
        if (score === null) {
          broken.add(series);
          continue;
        }
        const path = paths.get(series) ?? "";
        const point = `${across(number)} ${down(score)}`;
        paths.set(series, path && !broken.has(series) ? `${path}L${point}` : `${path}M${point}h0`); // h0: a lone point is a dot
        broken.delete(series);
      }
    }
    svg.replaceChildren();
    svgElement("path", { d: `M${across(numbers[cursor])} 0V${height}`, class: "cursor" }, svg);
    paths.forEach((path, series) => svgElement("path", { d: path }, svgElement("g", { class: `line s${series % 12}` }, svg)));
    caption.textContent = `Frames ${first} to ${last}`;
  };
}

function setUpChart(plot) {
  const { metric } = plot.dataset;
  const [left, right, bottom, top] = ["left", "right", "bottom", "top"].map((key) => Number(plot.dataset[key]));
  const svg = plot.querySelector("svg");
  const { width, height } = svg.viewBox.baseVal;
  const figure = plot.closest("figure");
  const readout = figure.querySelector(".readout");
  const marks = svgElement("g", {}, svg);

  const across = (number) => (width * (number - left)) / (right - left);
  const down = (score) => (height * (top - score)) / (top - bottom);
  const showDetail = numbers.length > 6 * AROUND ? setUpDetail(figure, metric, width, height, down) : () => {};

  function show() {
    marks.replaceChildren();
    if (cursor === null) return;
    const number = numbers[cursor];
    const time = timeAt(number);
    const scores = scoresAt(metric, number);
    svgElement("path", { d: `M${across(number)} 0V${height}`, class: "cursor" }, marks);
    showDetail();
    readout.replaceChildren(element("b", { textContent: time ? `Frame ${number} · ${time}` : `Frame ${number}` }), element("br"));
    for (const { series, label, score } of scores) {
      const text = `${label} ${score === null ? "null" : score.toFixed(6)}`;
      const swatch = all(".legend .swatch")[series].cloneNode(true);
      readout.append(element("span", {}, swatch, text));
      if (score === null) continue;
      const dot = svgElement("g", { class: `line s${series % 12}` }, marks);
      svgElement("path", { d: `M${across(number)} ${down(score)}h0`, class: "dot" }, dot);
    }
    plot.setAttribute("aria-valuenow", number);
    plot.setAttribute("aria-valuetext", readout.innerText.replace(/\s+/g, " "));
  }

  function move(place) {
    cursor = Math.max(0, Math.min(numbers.length - 1, place));
    show();
  }

  const page = Math.max(10, Math.round(numbers.length / 20));
  const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -page, PageUp: page, Home: -Infinity, End: Infinity };
  Object.entries({ role: "slider", tabindex: 0, "aria-label": `Frame of the chart of ${metric}`, "aria-valuemin": numbers[0],
    "aria-valuemax": numbers.at(-1), "aria-valuenow": numbers[0] }).forEach(([name, value]) => plot.setAttribute(name, value));
  plot.addEventListener("keydown", (event) => {
    if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    move((cursor ?? 0) + steps[event.key]);
  });
  plot.addEventListener("focus", () => move(cursor ?? 0));
  const point = (event) => {
    const box = plot.getBoundingClientRect();
    move(nearest(left + ((right - left) * (event.clientX - box.left)) / box.width));
  };
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerdown", point);
  return { panel: plot.closest(".metric"), show };
}

function setUpCharts() {
  const select = document.getElementById("metric");
  if (!select) return;
  const charts = all(".plot[data-metric]").map(setUpChart);
  const panels = all(".metric");
  const refresh = () => {
    panels.forEach((panel, place) => panel.classList.toggle("off", place !== select.selectedIndex));
    charts.filter((chart) => !chart.panel.classList.contains("off")).forEach((chart) => chart.show());
  };
  select.selectedIndex = 0; // some browsers keep the last choice when a page is loaded again
  select.addEventListener("change", refresh);
  for (const box of all(".legend input")) {
    box.addEventListener("change", () => {
      const series = Number(box.value);
      if (box.checked) hidden.delete(series);
      else hidden.add(series);
      all(`[data-series="${series}"]`).forEach((line) => line.classList.toggle("off", !box.checked));
      refresh();
    });
  }
  refresh();
}

// -- worst frames -----------------------------------------------------------------------------------------------------

function setUpComparison() {
  const articles = all("article.frame");
  if (!articles.length) return;
  const stage = document.querySelector(".stage");
  const slider = stage.querySelector("input");
  const [right, left] = all("img", stage);
  const [leftName, rightName] = all(".side-name", stage);
  const sides = all("[name=sides]");
  let chosen = articles[0];

  function split() {
    stage.style.setProperty("--split", `${slider.value}%`);
    slider.setAttribute("aria-valuetext", `${slider.value} % ${leftName.textContent}, the rest ${rightName.textContent}`);
  }

  function show() {
    const figures = all("figure", chosen);
    const [first, second] = sides.find((side) => side.checked).value.split(" ").map((place) => figures[place]);
    for (const [image, name, figure] of [[left, leftName, first], [right, rightName, second]]) {
      const source = figure.querySelector("img");
      image.src = source.src;
      image.alt = source.alt;
      name.textContent = figure.querySelector("figcaption").textContent;
    }
    slider.setAttribute("aria-label", `Border between ${leftName.textContent} and ${rightName.textContent}`);
    articles.forEach((article) => article.classList.toggle("off", article !== chosen));
    split();
  }

  const thumbs = document.querySelector(".thumbs");
  thumbs.querySelector("legend").textContent = `Frame, and its ${articles[0].querySelector("dt").textContent}`;
  for (const article of articles) {
    const name = article.querySelector(".frame-name").textContent;
    const radio = element("input", { type: "radio", name: "frame", checked: article === chosen, autocomplete: "off" });
    const image = element("img", { src: all("img", article)[1].src, alt: "" });
    const score = article.querySelector("dd").textContent;
    radio.addEventListener("change", () => {
      chosen = article;
      show();
    });
    thumbs.append(element("label", {}, radio, image, name, element("br"), score));
  }
  slider.addEventListener("input", split);
  sides.forEach((side) => side.addEventListener("change", show));
  show();
}

// -- what is long is folded, but never on paper ------------------------------------------------------------------------

function setUpDetails() {
  const folds = all("details");
  folds.forEach((fold) => (fold.open = false));
  addEventListener("beforeprint", () => folds.forEach((fold) => (fold.open = true)));
}

document.documentElement.classList.add("js");
setUpDetails();
setUpTheme();
setUpCharts();
setUpComparison();
