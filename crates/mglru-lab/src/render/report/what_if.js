"use strict";
// Draws the share of major faults that more memory would have spared, over the memory.

const { curve, asked } = facts;
const shown = (savings) => savings.map((saving) => ({ factor: saving.factor, percent: saving.percent,
  spared: saving.spared, mib: (saving.more_bytes + facts.resident) / 1048576 }));
const said = (saving) => `${saving.factor}× · ${saving.percent.toFixed(0)} %`;

function draw() {
  const blue = hues()[0];
  const x = { field: "mib", type: "quantitative", title: "memory, MiB", scale: { zero: false, nice: false },
    axis: { format: ",~r", tickCount: 6, labelOverlap: true } };
  const y = { field: "percent", type: "quantitative", title: "major faults spared, %",
    scale: { domain: [0, 100] } };
  const marks = shown(asked).map((saving) => ({ ...saving, said: said(saving) }));
  const text = { type: "text", align: "left", dx: 8, dy: 14, fontSize: 12, color: ink() };
  return show({
    width: chart.clientWidth - 150, height: 300, autosize: { type: "pad" },
    layer: [
      { data: { values: shown(curve) }, mark: { type: "line", color: blue, interpolate: "step-after" },
        encoding: { x, y } },
      { data: { values: marks }, mark: { type: "point", filled: true, size: 70, color: blue, tooltip: true },
        encoding: { x, y } },
      { data: { values: marks }, mark: text, encoding: { x, y, text: { field: "said" } } },
    ],
  });
}

start(draw);
