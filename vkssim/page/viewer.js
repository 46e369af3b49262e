// The worst moments: one frame at a time, of which two pictures lie side by side under a slider or one is shown alone.

let openFrame = () => {}; // (number of a frame, a clip or null, the element that opened it): show the nearest frame with pictures

/** The picture of a figure, which may appear elsewhere on the page. */
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

/** One sample of a picture as one pixel of the screen, and the picture moved by a drag or by arrow keys. */
function setUpPanning(stage, button, note, chosen) {
  const images = all("img", stage);
  const shift = { x: 0, y: 0 }; // of the picture's middle from the stage's, in pixels
  let actual = false;
  let from = null; // where a drag has begun

  const size = () => {
    const reference = pictureOf(figureOf(chosen(), "reference"));
    return { width: reference.naturalWidth / devicePixelRatio, height: reference.naturalHeight / devicePixelRatio };
  };
  const limit = (value, most) => Math.max(-Math.max(0, most), Math.min(Math.max(0, most), value));

  function place() {
    const { width, height } = size();
    shift.x = limit(shift.x, (width - stage.clientWidth) / 2);
    shift.y = limit(shift.y, (height - stage.clientHeight) / 2);
    const [x, y] = [Math.round((stage.clientWidth - width) / 2 + shift.x), Math.round((stage.clientHeight - height) / 2 + shift.y)];
    for (const image of images) Object.assign(image.style, actual ? { width: `${width}px`, height: `${height}px`, transform: `translate(${x}px, ${y}px)` } : { width: "", height: "", transform: "" });
  }

  function fit() {
    const reference = pictureOf(figureOf(chosen(), "reference"));
    const whole = Number(chosen().dataset.width);
    stage.classList.toggle("panned", actual);
    stage.style.height = actual ? `${Math.min(size().height, 0.7 * innerHeight)}px` : "";
    button.setAttribute("aria-pressed", actual);
    button.textContent = actual ? "Fit" : "1:1";
    if (actual) stage.setAttribute("tabindex", 0);
    else stage.removeAttribute("tabindex");
    const stored = reference.naturalWidth;
    const said = stored && stored < whole ? `The pictures are stored ${stored} pixels wide; the clip has ${whole}.` : "";
    note.textContent = actual ? `A sample is a pixel. Drag to move. ${said}` : said;
    place();
  }

  function toggle() {
    actual = !actual;
    Object.assign(shift, { x: 0, y: 0 });
    fit();
  }

  stage.addEventListener("pointerdown", (event) => {
    if (!actual || event.button !== 0 || event.target.matches("input")) return;
    from = { x: event.clientX - shift.x, y: event.clientY - shift.y };
    stage.setPointerCapture(event.pointerId);
  });
  stage.addEventListener("pointermove", (event) => {
    if (from === null) return;
    Object.assign(shift, { x: event.clientX - from.x, y: event.clientY - from.y });
    place();
  });
  stage.addEventListener("dragstart", (event) => event.preventDefault()); // the browser would carry the picture away
  for (const end of ["pointerup", "pointercancel"]) stage.addEventListener(end, () => (from = null));
  const steps = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
  stage.addEventListener("keydown", (event) => {
    if (!actual || event.target !== stage || !(event.key in steps)) return;
    shift.x += steps[event.key][0];
    shift.y += steps[event.key][1];
    place();
    event.preventDefault();
  });
  button.addEventListener("click", toggle);
  images.forEach((image) => image.addEventListener("load", fit));
  addEventListener("resize", fit);
  return { fit, toggle };
}

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
  let from = null; // the element that opened the frame

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
    legend.textContent = `The worst moments by ${chosen.dataset.metricName}, the worst first; frames within a second are one`;
    thumbs.replaceChildren(legend);
    for (const [place, article] of inGroup(chosen.dataset.group).entries()) {
      const radio = element("input", { type: "radio", name: "frame", checked: article === chosen, autocomplete: "off" });
      radio.addEventListener("change", () => select(article));
      const worst = pictureOf(figureOf(article, "distorted", article.dataset.worst));
      const name = article.querySelector(".frame-name").textContent;
      const score = article.dataset.score + (clips.length > 1 ? ` ${clips[article.dataset.worst].label}` : "");
      thumbs.append(element("label", {}, radio, element("img", { src: worst.src, alt: "" }), element("b", { textContent: `${place + 1} ` }), name, element("br"), score));
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

  const pan = setUpPanning(stage, viewer.querySelector("#actual"), viewer.querySelector("#scale"), () => chosen);

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
    pan.fit();
  }

  const referenceOf = (group) => clips[clipsOf(group)[0]].reference;

  /** Show the articles of the reference that is shown; its groups differ in the size or the pairing of their frames. */
  function showGroups() {
    const shownGroups = [...new Set(articles.map((article) => article.dataset.group))].filter((group) => isShown(clipsOf(group)[0]));
    if (groupSelect) {
      for (const option of groupSelect.options) option.hidden = option.disabled = !shownGroups.includes(option.value);
      groupSelect.closest("p").classList.toggle("off", shownGroups.length < 2);
    }
    viewer.classList.toggle("off", !shownGroups.length);
    if (shownGroups.length && !shownGroups.includes(chosen.dataset.group)) select(inGroup(shownGroups[0])[0]);
    else if (!shownGroups.length) articles.forEach((article) => article.classList.add("off"));
    else show();
  }

  function select(article) {
    const other = article.dataset.group !== chosen.dataset.group;
    const group = Number(article.dataset.group);
    chosen = article;
    if (other) fillSides();
    if (!isShown(clipsOf(article.dataset.group)[0])) chooseReference(referenceOf(article.dataset.group), group);
    else if (group !== state.group) change({ group });
    if (groupSelect) groupSelect.value = article.dataset.group;
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
    } else if (event.key === "1") pan.toggle();
    else if (event.key === ",") step(-1);
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
  select(inGroup(articles.map((article) => article.dataset.group).find((group) => isShown(clipsOf(group)[0])) ?? articles[0].dataset.group)[0]);
  watch(["reference"], showGroups);
}
