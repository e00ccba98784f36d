// Draws the charts of a page with uPlot from the numbers that it has. Colours are those of the style sheet. Without it the page has them in words.
"use strict";

const UNITS = {
  seconds: (value) => {
    if (value == null) return "unknown";
    for (const [factor, unit] of [[1e-3, "ms"], [1, "s"], [60, "min"], [3600, "h"]].reverse()) {
      if (value >= factor) return `${+(value / factor).toPrecision(2)} ${unit}`;
    }
    return `${+(value * 1000).toPrecision(1)} ms`;
  },
  share: (value) => (value == null ? "unknown" : `${+(value * 100).toPrecision(2)} %`),
  count: (value) => (value == null ? "unknown" : String(value)),
};
const HEIGHT = 190;
const LEAST_S = 1e-4; // a logarithm has no place for 0

let drawn = [];

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function seriesOf({ label, kind }, unit) {
  const base = { label, value: (_, value, __, index) => (index == null ? "–" : UNITS[unit](value)), spanGaps: kind === "limit" };
  const bars = uPlot.paths.bars({ size: [0.9], align: kind === "histogram" ? 0 : 1 });
  switch (kind) {
    case "limit":
      return { ...base, stroke: colour("fail"), width: 1.5, dash: [6, 4], points: { show: false } };
    case "bad":
      return { ...base, fill: colour("fail"), stroke: colour("fail"), width: 0, paths: bars, points: { show: false } };
    case "doubtful":
      return { ...base, fill: colour("unknown-stripe"), stroke: colour("unknown"), width: 0, paths: bars, points: { show: false } };
    case "histogram":
      return { ...base, fill: colour("link"), stroke: colour("link"), width: 0, paths: bars, points: { show: false } };
    case "secondary":
      return { ...base, stroke: colour("muted"), width: 1, points: { size: 3 } };
    default:
      return { ...base, stroke: colour("link"), width: 2, points: { size: 4 } };
  }
}

// Where nothing is known: stripes behind the lines.
function drawGaps(plot, gaps) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  for (const [begin, end] of gaps) {
    const left = Math.max(bbox.left, plot.valToPos(begin, "x", true));
    ctx.rect(left, bbox.top, Math.min(bbox.left + bbox.width, plot.valToPos(end, "x", true)) - left, bbox.height);
  }
  ctx.clip();
  ctx.strokeStyle = colour("unknown-stripe");
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.beginPath();
  for (let at = bbox.left - bbox.height; at < bbox.left + bbox.width; at += 10 * devicePixelRatio) {
    ctx.moveTo(at, bbox.top + bbox.height);
    ctx.lineTo(at + bbox.height, bbox.top);
  }
  ctx.stroke();
  ctx.restore();
}

// Moments with their number; what each one is stands in the list below the chart.
function drawMarks(plot, marks) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour("text");
  ctx.lineWidth = devicePixelRatio;
  ctx.font = `600 ${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  marks.forEach(({ at, label }, index) => {
    const x = plot.valToPos(at, "x", true);
    const above = 12 * devicePixelRatio * (1 + (index % 2));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top - above + 12 * devicePixelRatio);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(label, x, bbox.top - above + 9 * devicePixelRatio);
  });
  ctx.restore();
}

// Hour and minute in UTC; at midnight, the day.
function timeOf(at) {
  const [, , day, month] = /^(\w+), (\d+) (\w+)/.exec(new Date(at * 1000).toUTCString());
  return at % 86400 === 0 ? `${+day} ${month}` : new Date(at * 1000).toISOString().slice(11, 16);
}

function axesOf(spec) {
  const style = { stroke: colour("muted"), grid: { stroke: colour("rule"), width: 1 }, ticks: { stroke: colour("muted"), width: 1 } };
  const font = "11px system-ui, sans-serif";
  const named = { ...style, font, labelFont: font, labelSize: 18, labelGap: 2 };
  const x = { ...named, label: spec.x_label, size: 30, values: (_, splits) => splits.map(timeOf) };
  if (spec.names) Object.assign(x, { splits: () => spec.x, values: (_, splits) => splits.map((at) => spec.names[at] ?? ""), rotate: -45, size: 56 });
  const y = { ...named, label: spec.y_label, size: 64, values: (_, values) => values.map((value) => (value == null ? "" : UNITS[spec.unit](value))) };
  return [x, y];
}

function optionsOf(spec, width) {
  const isLog = spec.unit === "seconds";
  return {
    width,
    height: HEIGHT + (spec.names ? 40 : 0),
    padding: [spec.marks.length ? 28 : 8, spec.names ? 44 : 22, 0, 0],
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "UTC"),
    scales: {
      x: { time: !spec.names, range: () => spec.span },
      y: isLog ? { distr: 3 } : { range: (_, __, most) => [0, Math.max(most * 1.1, spec.top)] },
    },
    axes: axesOf(spec),
    series: [{ label: spec.x_label, value: (_, at) => (at == null ? "–" : (spec.names?.[at] ?? `${new Date(at * 1000).toISOString().slice(0, 16).replace("T", " ")}`)) }, ...spec.series.map((one) => seriesOf(one, spec.unit))],
    hooks: { drawClear: [(plot) => drawGaps(plot, spec.gaps)], draw: [(plot) => drawMarks(plot, spec.marks)] },
    cursor: { drag: { x: false, y: false } },
  };
}

function drawPlots() {
  for (const plot of drawn) plot.destroy();
  drawn = [];
  for (const place of document.querySelectorAll("[data-plot]")) {
    if (!place.clientWidth) continue; // folded
    const spec = JSON.parse(place.dataset.plot);
    const above = (value) => (value == null || spec.unit !== "seconds" ? value : Math.max(value, LEAST_S));
    const values = spec.series.map((one) => one.values.map(above));
    drawn.push(new uPlot(optionsOf(spec, place.clientWidth), [spec.x, ...values], place));
  }
}

drawPlots();
document.addEventListener("shown", drawPlots);
document.addEventListener("toggle", drawPlots, true);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawPlots);
addEventListener("resize", drawPlots);
