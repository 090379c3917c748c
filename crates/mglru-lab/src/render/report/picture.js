"use strict";
// What the scripts of pages with one chart share.

const chart = document.getElementById("chart");

async function show(spec) {
  await embed(chart, { padding: 4, ...spec });
  document.body.dataset.drawn = "1";
}
