"use strict";
// Draws a miss-ratio curve for the width that the page has.

const { curve, page_kib: pageKib, knee } = facts;
const mib = (pages) => (pages * pageKib) / 1024;
const lru = curve.lru.map((p) => ({ mib: mib(p.size_pages), ratio: p.miss_ratio,
  low: p.band?.[0] ?? p.miss_ratio, high: p.band?.[1] ?? p.miss_ratio }));
const others = curve.others.map((p) => ({ mib: mib(p.size_pages), ratio: p.miss_ratio, policy: p.policy }));
const marks = knee ? [
  { mib: mib(knee.enough), said: "enough" },
  ...(knee.doubled ? [{ mib: mib(knee.doubled), said: knee.times < 2.5 ? "misses doubled" : `${Math.round(knee.times)} times the misses` }] : []),
] : [];

function draw() {
  const blue = hues()[0];
  const x = { field: "mib", type: "quantitative", title: "size, MiB (logarithmic)",
    scale: { type: "log", nice: false }, axis: { format: ",.3~g", tickCount: 6, labelOverlap: true } };
  const y = { field: "ratio", type: "quantitative", title: "miss ratio", scale: { domain: [0, 1] } };
  return show({
    width: chart.clientWidth - 70, height: 320,
    layer: [
      { data: { values: lru }, mark: { type: "area", opacity: 0.25, color: blue },
        encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" } } },
      { data: { values: lru }, mark: { type: "line", color: blue, point: { color: blue, size: 12 }, tooltip: true },
        encoding: { x, y } },
      { data: { values: marks }, mark: { type: "rule", strokeDash: [4, 3], color: ink() }, encoding: { x } },
      { data: { values: marks }, mark: { type: "text", align: "right", dx: -5, y: 10, color: ink() },
        encoding: { x, text: { field: "said" } } },
      ...(others.length ? [{ data: { values: others }, mark: { type: "point", filled: true, size: 60, tooltip: true },
        encoding: { x, y, shape: { field: "policy", type: "nominal", legend: { orient: "bottom" } },
          color: { field: "policy", type: "nominal", legend: { orient: "bottom" },
            scale: { range: ["#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"] } } } }] : []),
    ],
  });
}

start(draw);
