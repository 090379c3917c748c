"use strict";
// Describes the charts of a run's figures. Each is described for the width that it has, so that
// text keeps its size on a narrow screen.

// Each variant has a colour and a dash; the base is grey.
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

// A row for each value; the names stand above the marks, where they fit at any width.
const rowsBy = (field, sort) => ({ field, type: "nominal", sort, title: null,
  axis: { labels: false, ticks: false, domain: false, grid: false } });

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
  const judged = facts.published.map((p) => ({
    ratio: p.ratio,
    label: [p.metric, p.point].filter(Boolean).join(" · ") + " · " + p.variant,
  })).filter((p) => labels.includes(p.label) && p.ratio > 0);
  const y = rowsBy("label", labels);
  const all = [...rows.flatMap((r) => [r.low, r.high]), ...seeds.map((s) => s.ratio),
    ...judged.map((p) => p.ratio), 1].filter((x) => x > 0);
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
    spec: (width) => {
      // Names that would run into the figures are written in two lines.
      const two = rows.some((r) => r.label.length * 6.2 > width - 64);
      const names = rows.map((r) => ({ ...r, lines: two
        ? [r.metric, r.label.slice(r.metric.length + 3)] : r.label }));
      return {
      width, height: { step: two ? 54 : 40 },
      layer: [
        { data: { values: [{ one: 1 }] }, mark: { type: "rule", color: "#8a8f94" },
          encoding: { x: { field: "one", type: "quantitative", scale: x.scale } } },
        { data: { values: seeds }, mark: { type: "circle", size: 14, opacity: 0.55, yOffset: 7 },
          encoding: { x, y, ...byVariant } },
        { data: { values: rows }, mark: { type: "rule", strokeWidth: 3, yOffset: 7 },
          encoding: { x: { ...x, field: "low" }, x2: { field: "high" }, y, ...byVariant } },
        { data: { values: rows }, mark: { type: "point", filled: true, size: 70, yOffset: 7,
          tooltip: true }, encoding: { x, y, ...byVariant } },
        { data: { values: judged }, mark: { type: "point", shape: "diamond", size: 110, yOffset: 7 },
          encoding: { x, y, color: { value: "#d55e00" } } },
        { data: { values: names }, mark: { type: "text", align: "left", dy: two ? -22 : -9, x: 0,
          lineHeight: 13 }, encoding: { y, text: { field: "lines" } } },
        { data: { values: rows }, mark: { type: "text", align: "right", dy: -9, x: width,
          fontWeight: 600 }, encoding: { y, text: { field: "said" } } },
      ],
      };
    },
  };
}

// Bars with names at the left above, figures at the right end: readable at any width.
function bars(rows, { title, how, label, value, unit }) {
  if (!rows.length) return null;
  const values = rows.map((r) => ({ v: r.variant, label: label(r), value: value(r),
    said: `${number.format(value(r))}${unit}` }));
  const y = rowsBy("label", null);
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
  const y = rowsBy("label", null);
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

// So many groups of a variant have a bar each; more are drawn on one line.
const mostBars = 8;

function groups() {
  const of = (name) => facts.groups.filter((r) => r.variant === name);
  const title = "How evenly groups were reclaimed from";
  if (facts.variants.some((name) => of(name).length > mostBars)) return spread(title, of);
  return bars(facts.groups, {
    title, how: "Pages taken from each group that has none below it.",
    label: (r) => `${r.group} · ${r.variant}`, value: (r) => r.pages, unit: " pages",
  });
}

// A line for each variant, a mark on it for each group.
function spread(title, of) {
  const found = facts.variants.filter((name) => of(name).length);
  const values = found.flatMap((v) => of(v).map((r) => ({ v, group: r.group, pages: r.pages })));
  const lines = found.map((v) => {
    const pages = of(v).map((r) => r.pages);
    const [least, most] = [Math.min(...pages), Math.max(...pages)].map((x) => number.format(x));
    return { v, label: `${v} · ${pages.length} groups`, said: `${least} to ${most} pages` };
  });
  const y = rowsBy("v", found);
  const x = { field: "pages", type: "quantitative", title: "pages taken from a group",
    scale: { zero: true }, axis: { format: "~s", tickCount: 6, labelOverlap: true } };
  return {
    title, how: "Each mark is a group that has none below it. Marks that lie close together: these "
      + "groups gave alike.",
    rows: facts.groups,
    spec: (width) => ({
      width, height: { step: 44 }, encoding: { y },
      layer: [
        { data: { values }, mark: { type: "tick", thickness: 2, size: 16, opacity: 0.6, yOffset: 8,
          tooltip: true }, encoding: { x, ...byVariant } },
        { data: { values: lines }, mark: { type: "text", align: "left", x: 0, dy: -10 },
          encoding: { text: { field: "label" } } },
        { data: { values: lines }, mark: { type: "text", align: "right", x: width, dy: -10,
          fontWeight: 600 }, encoding: { text: { field: "said" } } },
      ],
    }),
  };
}

const tiers = () => bars(facts.tiers.map((r) => ({ ...r, variant: r.v })), {
  title: "Which tiers came back",
  how: "Share of pages of a tier that refaulted, as the controller counted at the end. It evicts "
    + "a tier unless that share is well above the first tier's.",
  label: (r) => `${r.type} tier ${r.tier}, ${r.evicted ? "evicted" : "protected"} · ${r.variant}`,
  value: (r) => (100 * r.back) / r.of, unit: " %",
});

