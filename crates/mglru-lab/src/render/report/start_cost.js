"use strict";
// Draws processor time over the number of groups, a line for each way of finding them.

const { points, walks } = facts;

function draw() {
  const numbers = [...new Set(points.map((point) => point.groups))];
  const x = { field: "groups", type: "quantitative", title: "groups (logarithmic)",
    scale: { type: "log", nice: false },
    axis: { values: numbers, format: ",", labelOverlap: true, grid: false } };
  const y = { field: "us", type: "quantitative", title: "processor time of a call, µs (logarithmic)",
    scale: { type: "log", nice: true }, axis: { format: "~s", tickCount: 6 } };
  const walk = { field: "walk", type: "nominal", sort: walks, title: "way of finding groups",
    legend: { orient: "bottom", columns: chart.clientWidth < 560 ? 1 : 3 } };
  return show({
    width: chart.clientWidth - 70, height: 320, data: { values: points },
    mark: { type: "line", strokeWidth: 2, point: { filled: true, size: 50 }, tooltip: true },
    encoding: { x, y, strokeDash: { ...walk, scale: { range: [[1, 0], [6, 3], [2, 2]] } },
      shape: walk, color: { ...walk, scale: { domain: walks, range: hues().slice(0, walks.length) } } },
  });
}

start(draw);
