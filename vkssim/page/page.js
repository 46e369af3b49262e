// The page as a whole: theme, folds, and the choices that hold for every chart and table.

function setUpTheme() {
  const button = document.getElementById("theme");
  let dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const name = () => (button.textContent = dark ? "Light theme" : "Dark theme"); // the theme after a click
  button.addEventListener("click", () => {
    dark = !dark;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    name();
  });
  name();
}

/** Long parts are folded on the screen, never on paper. The tables of the metric that is shown are open. */
function setUpFolds() {
  const folds = all("details");
  let before = [];
  folds.forEach((fold) => (fold.open = fold.classList.contains("stays")));
  watch(["metric"], () => {
    for (const fold of all("details.of-metric")) fold.open = Number(fold.dataset.metric) === state.metric;
  });
  addEventListener("beforeprint", () => {
    before = folds.map((fold) => fold.open);
    folds.forEach((fold) => (fold.open = true));
  });
  addEventListener("afterprint", () => folds.forEach((fold, place) => (fold.open = before[place])));
}

/** One choice of the reference holds for charts, tables, legends and pictures. The rows of all titles stay. */
function setUpReference() {
  const select = document.getElementById("reference");
  if (!select) return;
  const rows = all("tr[data-clip]").filter((row) => !row.closest(".of-all"));
  watch(["reference"], () => {
    select.value = state.reference ?? "";
    rows.forEach((row) => row.classList.toggle("off", !isShown(Number(row.dataset.clip))));
    const of = state.reference === null ? "" : `, ${page.references[state.reference]}`;
    all(".of-reference").forEach((title) => (title.textContent = `Mean score over the bit rate${of}`));
    all("tr:has(.title)").forEach((row) => row.classList.toggle("chosen", Number(row.querySelector(".title").dataset.reference) === state.reference));
  });
  select.addEventListener("change", () => chooseReference(select.value === "" ? null : Number(select.value)));
  for (const title of all(".title")) {
    const button = element("button", { type: "button", className: "sort link" }, ...title.childNodes);
    button.addEventListener("click", () => chooseReference(Number(title.dataset.reference)));
    title.append(button);
  }
}

function setUpChoices() {
  const select = document.getElementById("metric");
  if (!select) return;
  const axis = all("[name=axis]");
  select.selectedIndex = 0; // some browsers keep the last choice when a page is loaded again
  axis[Number(state.decibels)].checked = true;
  select.addEventListener("change", () => change({ metric: Number(select.value) }));
  axis.forEach((radio) => radio.addEventListener("change", () => change({ decibels: axis[1].checked })));
  watch(["metric", "decibels"], () => {
    for (const tile of all(".tile:has(.other)")) {
      const [value, other] = [tile.querySelector(".value"), tile.querySelector(".other")];
      if (value.textContent.endsWith(" dB") !== state.decibels) [value.textContent, other.textContent] = [other.textContent, value.textContent];
    }
  });
  watch(["metric"], () => {
    all(".part").forEach((part) => part.classList.toggle("off", Number(part.dataset.metric) !== state.metric));
    axis[1].disabled = !page.metrics[state.metric].decibels;
    axis[1].parentNode.title = axis[1].disabled ? "This score has no dB: it is in dB already, or no similarity" : "";
  });
}

document.documentElement.classList.add("js");
setUpFolds();
setUpTheme();
setUpChoices();
setUpReference();
setUpSorting();
setUpScrolling();
setUpCopying();
setUpLadders();
setUpScores();
setUpViewer();
setUpSaving();
if (page.metrics.length) change({ metric: 0 });
if (clips.length) chooseReference(state.reference);
