// Draws every chart of the page with uPlot, over the still picture that a printer and a page without scripts show.
(function () {
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const short = (value) => {
    if (value == null) return "–";
    const size = Math.abs(value);
    if (size >= 1e6) return +(value / 1e6).toPrecision(3) + "M";
    if (size >= 1e4) return +(value / 1e3).toPrecision(3) + "k";
    return "" + +value.toPrecision(4);
  };
  const clear = (colour, share) => `color-mix(in srgb, ${colour} ${100 * share}%, transparent)`;

  function draw(figure) {
    const chart = JSON.parse(figure.querySelector("script").textContent);
    const place = figure.querySelector(".live");
    const data = [chart.x], series = [{ label: chart.along, value: (u, v) => short(v) }], bands = [];
    for (const line of chart.lines) {
      const colour = ink("--s" + (line.style % 12));
      const dash = [[], [8, 4], [8, 3, 2, 3], [2, 3]][line.dash];
      const at = data.length;
      data.push(line.values);
      series.push({
        label: line.name, stroke: colour, width: 1.8, dash, spanGaps: true,
        value: (u, v) => short(v), points: { show: line.values.filter((v) => v != null).length < 40, size: 5 },
      });
      if (line.low) {
        const edge = { stroke: "transparent", width: 0, spanGaps: true, points: { show: false } };
        data.push(line.low, line.high);
        series.push({ ...edge, label: "" }, { ...edge, label: "" });
        bands.push({ series: [at + 2, at + 1], fill: clear(colour, 0.18) });
      }
    }
    const axis = { stroke: ink("--ink"), grid: { stroke: ink("--line"), width: 1 }, ticks: { stroke: ink("--line") } };
    const numbers = (u, values) => values.map(short);
    const plot = new uPlot({
      width: place.clientWidth, height: Math.max(240, Math.min(360, place.clientWidth * 0.55)),
      scales: { x: { time: false } }, series, bands,
      axes: [
        { ...axis, label: chart.along, values: numbers },
        { ...axis, label: chart.up, values: numbers, size: 62 },
      ],
      cursor: { drag: { x: true, y: true, uni: 40 } },
    }, data, place);
    // The edges of bands are no lines of their own, so the legend leaves them out.
    plot.root.querySelectorAll(".u-legend .u-series").forEach((row, i) => {
      if (!series[i].label) row.style.display = "none";
    });
    plot.root.querySelectorAll(".u-legend .u-series").forEach((row, i) => {
      row.addEventListener("click", () => {
        for (const next of [i + 1, i + 2]) {
          if (series[next] && series[next].label === "" && i) plot.setSeries(next, { show: plot.series[i].show });
        }
      });
    });
    return plot;
  }

  let plots = [];
  function drawAll() {
    plots.forEach((plot) => plot.destroy());
    plots = [...document.querySelectorAll("figure[data-chart]")].map(draw);
  }
  document.documentElement.classList.add("alive");
  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  let width = innerWidth, waiting;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 150);
  });
})();
