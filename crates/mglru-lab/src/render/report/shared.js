"use strict";
// What the scripts of all pages share: the rows in #facts, colours of light and dark pages.

const facts = JSON.parse(document.getElementById("facts").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const ink = () => (dark.matches ? "#e6e6e6" : "#1c1c1c");
// Colours that people with any colour vision tell apart.
const onLight = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#44aa99"];
const onDark = ["#56b4e9", "#e69f00", "#44d7a8", "#f0a3cf", "#f0e442", "#4c9be8", "#ff9a76", "#b8e0d2"];
const hues = () => (dark.matches ? onDark : onLight);
const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

function config() {
  const line = dark.matches ? "#3a3f44" : "#d5d7da";
  const text = { labelColor: ink(), titleColor: ink(), labelFontSize: 12, titleFontSize: 12 };
  return {
    background: null,
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: { ...text, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: 500 },
    legend: { ...text, symbolBaseFillColor: ink(), symbolBaseStrokeColor: ink() },
    header: { ...text, labelFontWeight: 600, labelAnchor: "start", labelAlign: "left" },
    text: { fill: ink(), fontSize: 12 },
  };
}

async function embed(chart, spec) {
  const actions = { export: true, source: false, compiled: false, editor: false };
  const whole = { ...spec, config: config() };
  await vegaEmbed(chart, whole, { renderer: "svg", actions, mode: "vega-lite" });
}

// Draws now, and again when the page's width or its colours change.
function start(draw) {
  let width = document.body.clientWidth;
  let waiting;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (document.body.clientWidth !== width) {
        width = document.body.clientWidth;
        draw();
      }
    }, 150);
  });
  dark.addEventListener("change", draw);
  draw();
}
