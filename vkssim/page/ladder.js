// Quality over bit rate: a line for each ladder of the reference that is shown.

function setUpLadders() {
  if (!page.ladders.length) return;
  const chart = liveChart("rates");
  const said = document.getElementById("rung");
  let lines = [];

  function redraw() {
    lines = page.ladders.flatMap((ladder, series) => {
      if (ladder.reference !== state.reference) return [];
      const rungs = ladder.rungs.filter(({ clip }) => clips[clip].means[state.metric] !== null);
      const points = rungs.map(({ clip, rate }) => [rate, scaled(clips[clip].means[state.metric])]);
      return rungs.length ? [{ series, style: ladder.style, points, rungs }] : [];
    });
    chart.root.classList.toggle("off", !lines.length);
    said.textContent = lines.length ? "" : "There is no ladder with such a score.";
    if (!lines.length) return;
    const up = axisOfScores(lines.flatMap(({ points }) => points.map(([, score]) => score)));
    draw(chart, rateAxis(lines.flatMap(({ points }) => points.map(([rate]) => rate))), up, []);
    for (const line of lines) {
      drawLine(chart, { ...line, series: "ladder", marks: [] });
      line.rungs.forEach(({ clip }, place) => {
        const group = svgElement("g", { class: `line ${clips[clip].style.classes}`, "data-series": "ladder" }, chart.marks);
        drawMark(chart, group, clips[clip].style, ...line.points[place]);
      });
    }
    chart.root.querySelector(".axis-title").textContent = `mean ${axisTitle()}`;
    showRung();
  }

  /** Mark the clip that stands out and say its name, bit rate and score. */
  function showRung() {
    chart.over?.replaceChildren();
    said.textContent = "Point at a clip to see its bit rate and score.";
    for (const { rungs, points, style } of lines) {
      const place = rungs.findIndex(({ clip }) => clip === state.hot);
      if (place < 0) continue;
      const [x, y] = placed(chart, ...points[place]);
      svgElement("path", { d: `M${x} ${y}h0`, class: "dot" }, svgElement("g", looks(style), chart.over));
      const { clip, rate } = rungs[place];
      const text = `${clips[clip].label}: ${+rate.toPrecision(4)} ${page.unit}, ${scoreText(clips[clip].means[state.metric])}`;
      said.replaceChildren(element("b", { textContent: text }));
    }
  }

  function nearestRung(event) {
    const box = chart.plot.getBoundingClientRect();
    let found = null;
    let least = NEAR;
    for (const { rungs, points } of lines) {
      points.forEach(([rate, score], place) => {
        const [x, y] = placed(chart, rate, score);
        const away = Math.hypot((x * box.width) / chart.width - event.clientX + box.left, (y * box.height) / chart.height - event.clientY + box.top);
        if (away < least) [found, least] = [rungs[place].clip, away];
      });
    }
    return found;
  }

  chart.plot.addEventListener("pointermove", (event) => {
    const hot = nearestRung(event);
    if (hot !== state.hot) change({ hot });
  });
  chart.plot.addEventListener("pointerleave", () => change({ hot: null }));
  watch(["metric", "decibels", "reference"], redraw);
  watch(["hot"], showRung);
  redraw();
}
