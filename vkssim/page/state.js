// The state of the page, and the functions to call when it changes. The page is complete without these scripts: they add
// movement and choices.

const page = JSON.parse(document.getElementById("data").textContent);
const clips = page.clips; // label, style, frames, times, scores and means (a column or a number for each metric) of each
const MAX_FIRST_FRAMES = 12; // clips that are drawn before the reader chooses

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const SVG = "http://www.w3.org/2000/svg";

const state = {
  metric: 0, // its number in page.metrics
  decibels: page.ladders.length > 0, // whether scores are in dB, which spreads the rungs of a ladder evenly
  reference: page.ladders.length || page.references.length < 2 ? 0 : null, // whose clips are shown; null for those of all
  group: 0, // whose worst moments are shown, a place in page.moments
  hidden: new Set(), // clips that are not drawn
  hot: null, // the clip that stands out
  cursor: null, // a place in `numbers`, the same in every chart
  range: null, // the first and the last frame that the chart shows; null for all of them
};
const watchers = [];

/** Call `redraw` after a change of one of these parts of the state. */
function watch(parts, redraw) {
  watchers.push({ parts, redraw });
}

function change(values) {
  Object.assign(state, values);
  watchers.filter(({ parts }) => parts.some((part) => part in values)).forEach(({ redraw }) => redraw());
}

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function svgElement(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  parent.append(made);
  return made;
}

function timeCode(seconds) {
  if (seconds === null) return "";
  const thousandths = Math.round(Math.abs(seconds) * 1000);
  const digits = (value, count = 2) => String(Math.floor(value)).padStart(count, "0");
  const clock = [thousandths / 3600000, (thousandths / 60000) % 60, (thousandths / 1000) % 60].map((value) => digits(value));
  return (seconds < 0 && thousandths ? "-" : "") + clock.join(":") + "." + digits(thousandths % 1000, 3);
}

// -- frames and their scores -------------------------------------------------------------------------------------------

const isShown = (series) => state.reference === null || clips[series].reference === state.reference;
let drawable = []; // the clips that are shown and have frames
let numbers = []; // of the frames of these clips
const places = clips.map((clip) => new Map(clip.frames.map((number, place) => [number, place])));

function findDrawable() {
  drawable = clips.map((clip, series) => series).filter((series) => isShown(series) && clips[series].frames.length);
  numbers = [...new Set(drawable.flatMap((series) => clips[series].frames))].sort((a, b) => a - b);
}
findDrawable();

/** Show the clips of a reference, or of all if it is null, with the worst moments of its first group unless one is given. */
function chooseReference(reference, group = page.moments.findIndex((moments) => moments.some(({ clip }) => reference === null || clips[clip].reference === reference))) {
  state.reference = reference;
  findDrawable();
  change({ reference, group, cursor: null, range: null, hot: null, hidden: new Set(drawable.slice(MAX_FIRST_FRAMES)) });
}

/** The place in a rising list of the entry that is nearest to a number. */
function nearestPlace(list, number) {
  let low = 0;
  let high = list.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < number) low = middle + 1;
    else high = middle;
  }
  return low > 0 && number - list[low - 1] <= list[low] - number ? low - 1 : low;
}

/** {series, label, score} of each visible clip that a frame was scored of; score is null if that gave no number. */
function scoresAt(number) {
  return drawable.flatMap((series) => {
    const place = places[series].get(number);
    const scores = clips[series].scores[state.metric];
    if (state.hidden.has(series) || place === undefined || !scores) return [];
    return [{ series, label: clips[series].label, score: scores[place] }];
  });
}

function timeAt(number) {
  for (const series of drawable) {
    const place = places[series].get(number);
    if (clips[series].times && place !== undefined && clips[series].times[place] !== null) return timeCode(clips[series].times[place]);
  }
  return "";
}

// -- decibels ----------------------------------------------------------------------------------------------------------

const inDecibels = () => state.decibels && page.metrics[state.metric].decibels;

/** A score in the unit of the axis: as it is, or -10 log10(1 - score), infinite if nothing is lost. Null stays null. */
function scaled(score) {
  if (score === null || !inDecibels()) return score;
  return score >= 1 ? Infinity : -10 * Math.log10(1 - score);
}

function scoreText(score) {
  if (score === null) return "null";
  if (!inDecibels()) return score.toFixed(6);
  const decibels = scaled(score);
  return `${Number.isFinite(decibels) ? decibels.toFixed(3) : "infinite"} dB (${score.toFixed(6)})`;
}

/** The axis of scores of the metric that is shown, with its whole scale if it has one. */
const axisOfScores = (scores) => scoreAxis([...(page.metrics[state.metric].scale ?? []), ...scores]) ?? linearAxis(0, 1, []);

const axisTitle = () => page.metrics[state.metric].name + (inDecibels() ? ", dB" : "");
