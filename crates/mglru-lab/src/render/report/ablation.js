"use strict";
// Draws ratios with their intervals, a row for each patch or mechanism, for the width that the
// page has.

const { rows } = facts;
const labels = [...new Set(rows.map((row) => row.label))];
const ways = [...new Set(rows.map((row) => row.way))];
const findings = ["confirmed", "contradicted", "mixed", "not seen", "not judged", "does not count"];

function mark() {
  const onLight = ["#0072b2", "#d55e00", "#cc79a7", "#8a8f94", "#8a8f94", "#b9bdc1"];
  const onDark = ["#56b4e9", "#e69f00", "#f0a3cf", "#8a8f94", "#8a8f94", "#5d6268"];
  const isJudged = rows.some((row) => row.finding);
  if (!isJudged) return { color: { value: dark.matches ? onDark[0] : onLight[0] } };
  const scale = { domain: findings, range: dark.matches ? onDark : onLight };
  const legend = { orient: "bottom", columns: 3, title: "finding", values: findings.filter((name) =>
    rows.some((row) => row.finding === name)) };
  return { color: { field: "finding", type: "nominal", scale, legend } };
}

function draw() {
  if (!rows.length) {
    chart.textContent = "No comparison has a ratio: nothing to draw.";
    document.body.dataset.drawn = "1";
    return;
  }
  const ends = [...rows.flatMap((row) => [row.low, row.high]), 1];
  const domain = [Math.min(...ends) / 1.02, Math.max(...ends) * 1.02];
  const x = { field: "ratio", type: "quantitative", title: "ratio, logarithmic",
    scale: { type: "log", domain, nice: false },
    axis: { format: ".2~f", tickCount: 6, labelOverlap: true } };
  const y = { field: "label", type: "nominal", sort: labels, title: null,
    axis: { labels: false, ticks: false, domain: false, grid: false } };
  const offset = { field: "way", type: "nominal", sort: ways };
  const shape = { field: "way", type: "nominal", sort: ways,
    legend: { orient: "bottom", columns: 2, title: "compared" } };
  const step = 26 + 14 * ways.length;
  return show({
    width: chart.clientWidth - 30, height: step * labels.length,
    layer: [
      { data: { values: [{ one: 1 }] }, mark: { type: "rule", color: "#8a8f94" },
        encoding: { x: { field: "one", type: "quantitative", scale: x.scale } } },
      { data: { values: rows }, mark: { type: "rule", strokeWidth: 3, yOffset: 9 },
        encoding: { x: { ...x, field: "low" }, x2: { field: "high" }, y, yOffset: offset, ...mark() } },
      { data: { values: rows }, mark: { type: "point", filled: true, size: 60, yOffset: 9, tooltip: true },
        encoding: { x, y, yOffset: offset, shape, ...mark() } },
      { data: { values: labels.map((label) => ({ label })) },
        mark: { type: "text", align: "left", dy: -step / 2 + 8, x: 0, fontSize: 12, color: ink() },
        encoding: { y, text: { field: "label" } } },
    ],
  });
}

start(draw);
