"use strict";
// Draws the sections of the page from the rows in #facts. Each chart is drawn for the width it
// has, so that text keeps its size on a narrow screen, and again when width or colours change.

const facts = JSON.parse(document.getElementById("facts").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");

// Colours that people with any colour vision tell apart; the base is grey. Dashes say the same.
const onLight = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#44aa99"];
const onDark = ["#56b4e9", "#e69f00", "#44d7a8", "#f0a3cf", "#f0e442", "#4c9be8", "#ff9a76", "#b8e0d2"];
const hues = () => (dark.matches ? onDark : onLight);
const dashes = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [1, 3], [10, 4], [3, 1]];
const others = facts.variants.filter((name) => name !== facts.base);
const colour = (name) =>
  name === facts.base ? "#8a8f94" : hues()[others.indexOf(name) % onLight.length];
const dash = (name) => (name === facts.base ? [1, 0] : dashes[others.indexOf(name) % dashes.length]);
// A getter, because the browser may turn dark while the page is open.
const byVariant = {
  get color() {
    const scale = { domain: facts.variants, range: facts.variants.map(colour) };
    return { field: "v", type: "nominal", legend: null, scale };
  },
};

const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

function config() {
  const ink = dark.matches ? "#e6e6e6" : "#1c1c1c";
  const line = dark.matches ? "#3a3f44" : "#d5d7da";
  const text = { labelColor: ink, titleColor: ink, labelFontSize: 12, titleFontSize: 12 };
  return {
    background: null,
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: { ...text, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: 500 },
    legend: text,
    header: { ...text, labelFontWeight: 600, labelAnchor: "start", labelAlign: "left" },
    text: { fill: ink, fontSize: 12 },
  };
}

// ---- sections ----------------------------------------------------------------------------------

function changes() {
  const rows = facts.changes.filter((c) => c.ratio > 0).map((c) => ({
    ...c,
    v: c.variant,
    label: [c.metric, c.point].filter(Boolean).join(" · ") + " · " + c.variant,
    said: `${c.ratio.toFixed(3)} ×`,
  }));
  if (!rows.length) return null;
  const labels = rows.map((r) => r.label);
  const seeds = rows.flatMap((r) => r.seeds.map((ratio) => ({ v: r.v, label: r.label, ratio })));
  const told = facts.published.map((p) => ({
    ratio: p.ratio,
    label: [p.metric, p.point].filter(Boolean).join(" · ") + " · " + p.variant,
  })).filter((p) => labels.includes(p.label) && p.ratio > 0);
  const y = {
    field: "label", type: "nominal", sort: labels, title: null,
    axis: { labels: false, ticks: false, domain: false, grid: false },
  };
  const all = [...rows.flatMap((r) => [r.low, r.high]), ...seeds.map((s) => s.ratio),
    ...told.map((p) => p.ratio), 1].filter((x) => x > 0);
  const domain = [Math.min(...all) / 1.03, Math.max(...all) * 1.03];
  const x = {
    field: "ratio", type: "quantitative", title: `ratio to ${facts.base}, logarithmic`,
    scale: { type: "log", domain, nice: false },
    axis: { format: ".2~f", tickCount: 6, labelOverlap: true },
  };
  return {
    title: "What changed",
    how: `Each mark is a mean of ratios with its 95 % interval; small dots are single pairs of runs, `
      + `hollow diamonds published figures. Right of the line: more than under ${facts.base}.`,
    rows: rows.map(({ metric, variant, point, ratio, low, high, n }) =>
      ({ metric, variant, point, ratio, low, high, n })),
    spec: (width) => ({
      width, height: { step: 40 },
      layer: [
        { data: { values: [{ one: 1 }] }, mark: { type: "rule", color: "#8a8f94" },
          encoding: { x: { field: "one", type: "quantitative", scale: x.scale } } },
        { data: { values: seeds }, mark: { type: "circle", size: 14, opacity: 0.55, yOffset: 7 },
          encoding: { x, y, ...byVariant } },
        { data: { values: rows }, mark: { type: "rule", strokeWidth: 3, yOffset: 7 },
          encoding: { x: { ...x, field: "low" }, x2: { field: "high" }, y, ...byVariant } },
        { data: { values: rows }, mark: { type: "point", filled: true, size: 70, yOffset: 7,
          tooltip: true }, encoding: { x, y, ...byVariant } },
        { data: { values: told }, mark: { type: "point", shape: "diamond", size: 110, yOffset: 7 },
          encoding: { x, y, color: { value: "#d55e00" } } },
        { data: { values: rows }, mark: { type: "text", align: "left", dy: -9, x: 0 },
          encoding: { y, text: { field: "label" } } },
        { data: { values: rows }, mark: { type: "text", align: "right", dy: -9, x: width,
          fontWeight: 600 }, encoding: { y, text: { field: "said" } } },
      ],
    }),
  };
}

// Moves labels at line ends apart: at least `gap` of the panel's height between two.
function apart(ends, top, gap) {
  ends.sort((a, b) => a.y - b.y);
  let least = -Infinity;
  for (const end of ends) {
    end.at = Math.max(end.y, least);
    least = end.at + gap * top;
  }
  const over = ends.length ? ends[ends.length - 1].at - top : 0;
  if (over > 0) ends.forEach((end) => { end.at = Math.max(0, end.at - over); });
  return ends;
}

function overTime() {
  const rows = facts.curves;
  if (!rows.length) return null;
  const panels = [...new Set(rows.map((r) => r.p))];
  const end = Math.max(...rows.map((r) => r.t));
  const x = (last) => ({
    field: "t", type: "quantitative", scale: { domain: [0, end], nice: false },
    title: last ? "virtual time, s" : null,
    axis: { labels: last, ticks: last, grid: true, tickCount: 8, labelOverlap: true },
  });
  const wide = (width) => width > 560;
  const panel = (name, last, width) => {
    const values = rows.filter((r) => r.p === name);
    const top = values.reduce((most, r) => Math.max(most, r.y), 0) || 1;
    const lastOf = (v) => values.filter((r) => r.v === v).pop();
    const ends = facts.variants.map(lastOf).filter(Boolean).map((r) => ({ ...r }));
    const labels = wide(width) ? apart(ends, top, 0.16) : [];
    const y = { field: "y", type: "quantitative", title: null, scale: { domain: [0, top] },
      axis: { tickCount: 3, format: "~s", grid: true, minExtent: 44, maxExtent: 44 } };
    const names = facts.variants;
    return {
      title: { text: name, anchor: "start", fontSize: 12, fontWeight: 500, dx: 46,
        color: config().axis.titleColor },
      width: width - (wide(width) ? 170 : 60), height: 90,
      layer: [
        { data: { values }, mark: { type: "line", strokeWidth: 1.8, interpolate: "step-before" },
          encoding: { x: x(last), y, ...byVariant, strokeDash: { field: "v", legend: null,
            scale: { domain: names, range: names.map(dash) } } } },
        { data: { values }, params: [{ name: "at_" + name.replace(/\W/g, "_"), select: {
            type: "point", on: "pointerover", nearest: true, encodings: ["x"], clear: "pointerout" } }],
          mark: { type: "point", size: 40, filled: true, tooltip: true },
          encoding: { x: x(last), y, ...byVariant,
            tooltip: [{ field: "v", title: "variant" }, { field: "t", title: "s" },
              { field: "y", title: name, format: ",.4~g" }],
            opacity: { condition: { param: "at_" + name.replace(/\W/g, "_"), empty: false, value: 1 },
              value: 0 } } },
        { data: { values: labels }, mark: { type: "text", align: "left", dx: 6 },
          encoding: { x: { datum: end }, y: { ...y, field: "at" }, text: { field: "v" },
            ...byVariant } },
      ],
    };
  };
  const happened = (width) => ({
    title: { text: "events", anchor: "start", fontSize: 12, fontWeight: 500, dx: 46,
      color: config().axis.titleColor },
    width: width - (wide(width) ? 170 : 60), height: { step: 16 },
    data: { values: facts.events.map((e) => ({ ...e, what: `${e.kind} · ${e.v}` })) },
    mark: { type: "tick", thickness: 2, tooltip: true },
    encoding: { x: x(true), ...byVariant, y: { field: "what", type: "nominal", title: null,
      axis: { labelLimit: wide(width) ? 260 : 130, orient: "left", grid: false,
        labelAlign: "left", labelPadding: -2, labelOffset: -9, domain: false, ticks: false,
        minExtent: 44, maxExtent: 44, labelFontSize: 10 } } },
  });
  return {
    title: "How it went over time",
    how: "One run of each variant, on one axis of virtual time. Sizes and scans are those of the "
      + "group that was scanned most. Ticks at the bottom: kills, waits and wake-ups of the flusher.",
    rows: rows.map(({ v, p, t, y }) => ({ variant: v, panel: p, t, value: y })),
    spec: (width) => ({
      spacing: 8,
      vconcat: [...panels.map((name, i) =>
        panel(name, i === panels.length - 1 && !facts.events.length, width)),
        ...(facts.events.length ? [happened(width)] : [])],
    }),
  };
}

function generations() {
  const rows = facts.heat;
  if (!rows.length) return null;
  const ranks = ["youngest", "2nd", "3rd", "oldest"];
  const values = rows.map((r) => ({ ...r, age: ranks[Math.min(r.rank, 3)] }));
  const found = facts.variants.filter((v) => rows.some((r) => r.v === v));
  const kinds = ["anon", "file"].filter((kind) => rows.some((r) => r.type === kind && r.pages));
  const most = values.reduce((m, r) => Math.max(m, r.pages), 1);
  const one = (v, kind, width) => ({
    title: { text: `${v} · ${kind}`, anchor: "start", fontSize: 12, fontWeight: 500,
      color: config().axis.titleColor },
    width: width - 76, height: 64,
    data: { values: values.filter((r) => r.v === v && r.type === kind) },
    mark: { type: "rect", tooltip: true },
    encoding: {
      x: { field: "t", type: "quantitative", title: null, scale: { nice: false },
        axis: { grid: false, tickCount: 6, labelOverlap: true, format: "~g" } },
      x2: { field: "to" },
      y: { field: "age", type: "nominal", sort: ranks, title: null, axis: { minExtent: 60 } },
      color: { field: "pages", type: "quantitative",
        scale: { scheme: dark.matches ? "darkblue" : "blues", domain: [0, most] },
        legend: { title: "pages", orient: "bottom", direction: "horizontal", format: "~s",
          gradientLength: Math.min(240, width - 100) } },
    },
  });
  return {
    title: "Where the pages stood: generations over time",
    how: "Each row is a generation, the oldest at the bottom: pages are reclaimed from there. "
      + "Darker (on a dark page: brighter) is more pages. Seconds of virtual time.",
    rows: rows.map(({ v, type, t, rank, pages }) => ({ variant: v, type, t, rank, pages })),
    spec: (width) => ({ spacing: 10, resolve: { scale: { color: "shared" } },
      vconcat: found.flatMap((v) => kinds.map((kind) => one(v, kind, width))) }),
  };
}

// Bars with names at the left above, figures at the right end: readable at any width.
function bars(rows, { title, how, label, value, unit }) {
  if (!rows.length) return null;
  const values = rows.map((r) => ({ v: r.variant, label: label(r), value: value(r),
    said: `${number.format(value(r))}${unit}` }));
  const y = { field: "label", type: "nominal", sort: null, title: null,
    axis: { labels: false, ticks: false, domain: false, grid: false } };
  return {
    title, how, rows,
    spec: (width) => ({
      width, height: { step: 34 }, data: { values },
      encoding: { y },
      layer: [
        { mark: { type: "bar", height: 10, yOffset: 7, tooltip: true }, encoding: { ...byVariant,
          x: { field: "value", type: "quantitative", title: null, axis: null } } },
        { mark: { type: "text", align: "left", x: 0, dy: -7 },
          encoding: { text: { field: "label" } } },
        { mark: { type: "text", align: "right", x: width, dy: -7, fontWeight: 600 },
          encoding: { text: { field: "said" } } },
      ],
    }),
  };
}

// Points on a logarithmic axis: the slowest operation takes a thousand times the usual one.
function latency() {
  const order = ["p50", "p90", "p95", "p99", "max"];
  const rows = order.flatMap((at) => facts.latency.filter((r) => r.at === at && r.us > 0));
  if (!rows.length) return null;
  const values = rows.map((r) => ({ v: r.variant, label: `${r.at} · ${r.variant}`, us: r.us,
    said: `${number.format(r.us)} µs` }));
  const y = { field: "label", type: "nominal", sort: null, title: null,
    axis: { labels: false, ticks: false, domain: false, grid: false } };
  const x = { field: "us", type: "quantitative", title: "µs, logarithmic",
    scale: { type: "log", nice: true }, axis: { format: "~s", tickCount: 6, labelOverlap: true } };
  return {
    title: "How long operations took",
    how: "Percentiles of the first run of each variant.",
    rows,
    spec: (width) => ({
      width, height: { step: 32 }, data: { values }, encoding: { y },
      layer: [
        { mark: { type: "point", filled: true, size: 70, yOffset: 6, tooltip: true },
          encoding: { x, ...byVariant } },
        { mark: { type: "text", align: "left", x: 0, dy: -7 },
          encoding: { text: { field: "label" } } },
        { mark: { type: "text", align: "right", x: width, dy: -7, fontWeight: 600 },
          encoding: { text: { field: "said" } } },
      ],
    }),
  };
}

const reclaim = () => bars(facts.reclaim, {
  title: "Who reclaimed",
  how: "Pages scanned and reclaimed by kswapd, by allocating tasks (direct) and on request.",
  label: (r) => `${r.what === "scan" ? "scanned" : "reclaimed"} by ${r.by} · ${r.variant}`,
  value: (r) => r.pages, unit: " pages",
});

const stalls = () => bars(facts.stalls, {
  title: "What tasks waited for",
  how: "How often a task had to reclaim itself (allocstall) or was throttled.",
  label: (r) => `${r.why} · ${r.variant}`, value: (r) => r.times, unit: " times",
});

const groups = () => bars(facts.groups, {
  title: "How evenly groups were reclaimed from",
  how: "Pages taken from each group that has none below it.",
  label: (r) => `${r.group} · ${r.variant}`, value: (r) => r.pages, unit: " pages",
});

const tiers = () => bars(facts.tiers.map((r) => ({ ...r, variant: r.v })), {
  title: "Which tiers came back",
  how: "Share of pages of a tier that refaulted, as the controller counted at the end. It evicts "
    + "a tier unless that share is well above the first tier's.",
  label: (r) => `${r.type} tier ${r.tier}, ${r.evicted ? "evicted" : "protected"} · ${r.variant}`,
  value: (r) => (100 * r.back) / r.of, unit: " %",
});

// ---- page --------------------------------------------------------------------------------------

function element(name, text, parent) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function fillTable(parent, rows) {
  const table = element("table", null, parent);
  const head = element("tr", null, table);
  const names = Object.keys(rows[0]);
  names.forEach((name) => element("th", name, head));
  for (const row of rows) {
    const line = element("tr", null, table);
    for (const name of names) {
      const value = row[name];
      const cell = element("td", typeof value === "number" ? number.format(value) : value ?? "–", line);
      if (typeof value === "number") cell.className = "n";
    }
  }
}

function csv(rows) {
  const names = Object.keys(rows[0]);
  const cell = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value ?? "");
  return [names, ...rows.map((row) => names.map((name) => row[name]))]
    .map((line) => line.map(cell).join(",")).join("\n") + "\n";
}

async function copy(button, rows) {
  const was = button.textContent;
  try {
    await navigator.clipboard.writeText(csv(rows));
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copying is not allowed here";
  }
  setTimeout(() => { button.textContent = was; }, 1500);
}

// The table under a chart is filled when it is opened: it may have thousands of rows.
function addData(section, rows) {
  const details = element("details", null, section);
  element("summary", "The data of this chart", details);
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    const button = element("button", "Copy as CSV", details);
    button.type = "button";
    button.addEventListener("click", () => copy(button, rows));
    const wide = element("div", null, details);
    wide.className = "wide";
    fillTable(wide, rows.slice(0, 2000));
  });
}

function fillKey(key) {
  key.className = "key";
  key.textContent = "";
  for (const name of facts.variants) {
    const item = element("span", null, key);
    item.innerHTML = `<svg width="28" height="8" aria-hidden="true"><line x1="0" x2="28" y1="4"
      y2="4" stroke="${colour(name)}" stroke-width="3" stroke-dasharray="${dash(name)}"/></svg>`;
    item.append(name);
  }
}

const sections = [changes, overTime, latency, reclaim, stalls, groups, generations, tiers]
  .map((make) => make()).filter(Boolean);
const drawn = [];

for (const [at, section] of sections.entries()) {
  const block = element("section", null, document.getElementById("charts"));
  element("h2", section.title, block);
  const how = element("p", section.how, block);
  how.className = "how";
  how.id = `how-${at}`;
  const key = facts.variants.length > 1 && section.title.startsWith("How it went")
    ? element("div", null, block) : null;
  const figure = element("figure", null, block);
  const chart = element("div", null, figure);
  chart.className = "chart";
  chart.tabIndex = 0;
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", section.title);
  chart.setAttribute("aria-describedby", how.id);
  addData(block, section.rows);
  drawn.push({ chart, section, key });
}

async function draw() {
  for (const { chart, section, key } of drawn) {
    if (key) fillKey(key);
    const spec = { ...section.spec(chart.clientWidth - 4), config: config(), padding: 2,
      autosize: { type: "pad" } };
    const actions = { export: true, source: false, compiled: false, editor: false };
    await vegaEmbed(chart, spec, { renderer: "svg", actions, mode: "vega-lite" });
  }
  document.body.dataset.drawn = String(drawn.length);
}

const counters = facts.counters.map((row) =>
  ({ counter: row.name, ...Object.fromEntries(facts.variants.map((v, i) => [v, row.values[i]])) }));
if (counters.length) fillTable(document.getElementById("counters"), counters);
const button = document.getElementById("copy");
button.addEventListener("click", () => copy(button, counters));

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
