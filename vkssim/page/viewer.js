// The worst frames: one frame at a time, of which two pictures lie side by side under a slider or one is shown alone.

let openFrame = () => {}; // (number of a frame, a clip or null, what it was opened from): show the nearest frame with pictures

/** The picture of a figure, which may stand at another place of the page. */
function pictureOf(figure) {
  const same = figure.querySelector("[data-same]");
  return same ? document.querySelector(`[data-picture="${same.dataset.same}"]`) : figure.querySelector("img");
}

function figureOf(article, kind, clip) {
  return article.querySelector(kind === "reference" ? '[data-kind="reference"]' : `[data-kind="${kind}"][data-clip="${clip}"]`);
}

const nameOf = (kind, clip) => {
  if (kind === "reference") return "Reference";
  const alone = clips.length === 1;
  if (kind === "map") return alone ? "SSIM map" : `SSIM map of ${clips[clip].label}`;
  return alone ? "Distorted" : clips[clip].label;
};

function setUpViewer() {
  const articles = all("article.frame");
  if (!articles.length) return;
  const viewer = document.querySelector(".viewer");
  const stage = viewer.querySelector(".stage");
  const slider = stage.querySelector("input");
  const [right, left] = all("img", stage);
  const [leftName, rightName] = all(".side-name", stage);
  const [sideA, sideB] = ["side-a", "side-b"].map((id) => document.getElementById(id));
  const groupSelect = document.getElementById("group");
  const opened = document.getElementById("opened");
  const back = document.getElementById("back");
  const thumbs = viewer.querySelector(".thumbs");
  const views = all("[name=view]", viewer);
  let chosen = articles[0];
  let chose = false; // whether the reader chose B; until then it is the worst clip of each frame
  let from = null; // what the frame was opened from

  const inGroup = (group) => articles.filter((article) => article.dataset.group === group);
  const clipsOf = (group) => [...new Set(inGroup(group).flatMap((article) => all('[data-kind="distorted"]', article).map((figure) => Number(figure.dataset.clip))))];
  const view = () => views.find((radio) => radio.checked).value;
  const side = (select) => {
    const [kind, clip] = select.value.split(" ");
    return { kind, clip: Number(clip) };
  };

  function fillSides() {
    const there = clipsOf(chosen.dataset.group).sort((a, b) => a - b);
    const option = (kind, clip) => element("option", { value: `${kind} ${clip}`, textContent: nameOf(kind, clip) });
    for (const select of [sideA, sideB]) {
      const pictures = element("optgroup", { label: "Pictures" }, option("reference", 0), ...there.map((clip) => option("distorted", clip)));
      const maps = element("optgroup", { label: "SSIM maps" }, ...there.map((clip) => option("map", clip)));
      select.replaceChildren(pictures, maps);
    }
    sideA.value = "reference 0";
    chose = false;
  }

  function fillThumbs() {
    const legend = thumbs.querySelector("legend");
    legend.textContent = `The worst frames by ${chosen.dataset.metricName}, the worst first`;
    thumbs.replaceChildren(legend);
    for (const article of inGroup(chosen.dataset.group)) {
      const radio = element("input", { type: "radio", name: "frame", checked: article === chosen, autocomplete: "off" });
      radio.addEventListener("change", () => select(article));
      const worst = pictureOf(figureOf(article, "distorted", article.dataset.worst));
      const name = article.querySelector(".frame-name").textContent;
      const score = article.dataset.score + (clips.length > 1 ? ` ${clips[article.dataset.worst].label}` : "");
      thumbs.append(element("label", {}, radio, element("img", { src: worst.src, alt: "" }), name, element("br"), score));
    }
  }

  /** The pictures that the stage shows: two, or one alone. */
  function shown() {
    const [a, b] = [side(sideA), side(sideB)];
    if (view() === "split") return [a, b];
    if (view() === "map") return [{ kind: "map", clip: b.kind === "reference" ? Number(chosen.dataset.worst) : b.clip }];
    return [{ a, b, reference: { kind: "reference", clip: 0 } }[view()]];
  }

  function split() {
    const alone = view() !== "split";
    stage.style.setProperty("--split", alone ? "100%" : `${slider.value}%`);
    slider.setAttribute("aria-valuetext", `${slider.value} % ${leftName.textContent}, the rest ${rightName.textContent}`);
  }

  function show() {
    if (!chose) sideB.value = `distorted ${chosen.dataset.worst}`;
    const parts = shown();
    stage.classList.toggle("alone", parts.length === 1);
    [[left, leftName, parts[0]], [right, rightName, parts.at(-1)]].forEach(([image, name, { kind, clip }]) => {
      const figure = figureOf(chosen, kind, clip);
      const source = figure && pictureOf(figure);
      name.textContent = source ? nameOf(kind, clip) : `${nameOf(kind, clip)}: no picture of this frame`;
      image.src = source?.src ?? pictureOf(figureOf(chosen, "reference")).src;
      image.alt = source?.alt ?? "";
      image.classList.toggle("none", !source);
    });
    slider.setAttribute("aria-label", `Border between ${leftName.textContent} and ${rightName.textContent}`);
    articles.forEach((article) => article.classList.toggle("off", article !== chosen));
    split();
  }

  function select(article) {
    const other = article.dataset.group !== chosen.dataset.group;
    chosen = article;
    if (groupSelect) groupSelect.value = article.dataset.group;
    if (other) fillSides();
    if (other || !thumbs.querySelector("input")) fillThumbs();
    all("input", thumbs)[inGroup(article.dataset.group).indexOf(article)].checked = true;
    opened.textContent = "";
    show();
  }

  function step(by) {
    const there = inGroup(chosen.dataset.group);
    select(there[Math.max(0, Math.min(there.length - 1, there.indexOf(chosen) + by))]);
  }

  openFrame = (number, clip, source) => {
    const groups = [...new Set(articles.map((article) => article.dataset.group))];
    const group = clip === null ? chosen.dataset.group : groups.find((one) => clipsOf(one).includes(clip));
    if (group === undefined) return;
    const away = (article) => Math.abs(Number(article.dataset.frame) - number);
    const nearest = inGroup(group).reduce((best, article) => (away(article) < away(best) ? article : best));
    select(nearest);
    if (clip !== null) {
      sideB.value = `distorted ${clip}`;
      chose = true;
      show();
    }
    const found = Number(nearest.dataset.frame);
    opened.textContent = found === number ? `Frame ${number}` : `Frame ${number} has no pictures; frame ${found} is the nearest that has.`;
    from = source;
    back.classList.remove("off");
    viewer.scrollIntoView({ block: "start" });
  };

  const keys = { a: "a", b: "b", r: "reference", m: "map", s: "split" };
  viewer.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("select")) return;
    if (event.key in keys) {
      views.find((radio) => radio.value === keys[event.key]).checked = true;
      show();
    } else if (event.key === ",") step(-1);
    else if (event.key === ".") step(1);
    else return;
    event.preventDefault();
  });
  slider.addEventListener("input", split);
  sideA.addEventListener("change", show);
  sideB.addEventListener("change", () => ((chose = true), show()));
  views.forEach((radio) => radio.addEventListener("change", show));
  groupSelect?.addEventListener("change", () => select(inGroup(groupSelect.value)[0]));
  back.addEventListener("click", () => {
    from?.scrollIntoView({ block: "center" });
    from?.focus?.({ preventScroll: true });
  });
  for (const button of all(".open-frame")) {
    button.addEventListener("click", () => openFrame(Number(button.dataset.frame), Number(button.dataset.clip), button));
  }
  views[0].checked = true; // some browsers keep the last choice when a page is loaded again
  fillSides();
  select(articles[0]);
}
