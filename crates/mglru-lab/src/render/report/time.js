"use strict";
// Describes the charts with an axis of virtual time: curves, events, generations.

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
    title: last ? "time, s" : null,
    axis: { labels: last, ticks: last, grid: true, tickCount: 8, labelOverlap: true },
  });
  const wide = (width) => width > 560;
  const panel = (name, last, width) => {
    const values = rows.filter((r) => r.p === name);
    const top = values.reduce((most, r) => Math.max(most, r.y), 0) || 1;
    const lastOf = (v) => values.filter((r) => r.v === v).pop();
    const ends = facts.variants.map(lastOf).filter(Boolean).map((r) => ({ ...r }));
    // More names than five do not fit beside a panel; the key above the chart has them all.
    const labels = wide(width) && facts.variants.length < 6 ? apart(ends, top, 0.16) : [];
    const y = { field: "y", type: "quantitative", title: null, scale: { domain: [0, top] },
      axis: { tickCount: 3, format: "~s", grid: true, minExtent: 44, maxExtent: 44 } };
    const names = facts.variants;
    return {
      title: { text: name, anchor: "start", fontSize: 12, fontWeight: 500, dx: 46,
        color: ink() },
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
      color: ink() },
    width: width - (wide(width) ? 170 : 60), height: { step: 28 },
    data: { values: facts.events.map((e) => ({ ...e, what: `${e.kind} · ${e.v}` })) },
    // A row's name stands above its ticks.
    mark: { type: "tick", thickness: 2, size: 12, yOffset: 7, tooltip: true },
    encoding: { x: x(true), ...byVariant, y: { field: "what", type: "nominal", title: null,
      axis: { labelLimit: wide(width) ? 260 : 130, orient: "left", grid: false,
        labelAlign: "left", labelPadding: -2, labelOffset: -7, domain: false, ticks: false,
        minExtent: 44, maxExtent: 44, labelFontSize: 10 } } },
  });
  return {
    title: "How it went over time",
    how: "One run of each variant, on one axis: virtual time in the model and in "
      + "booted kernels, real time of a pager. "
      + "Sizes and scans are those of the group that was scanned most. Ticks at the bottom: kills, waits and wake-ups of the flusher.",
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
  const end = values.reduce((m, r) => Math.max(m, r.to), 0);
  const one = (v, kind, width) => ({
    title: { text: `${v} · ${kind}`, anchor: "start", fontSize: 12, fontWeight: 500,
      color: ink() },
    width: width - 76, height: 64,
    data: { values: values.filter((r) => r.v === v && r.type === kind) },
    mark: { type: "rect", tooltip: true },
    encoding: {
      x: { field: "t", type: "quantitative", title: null, scale: { domain: [0, end], nice: false },
        axis: { grid: false, tickCount: 6, labelOverlap: true } },
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
      + "Darker (on a dark page: brighter) is more pages. The group is the one that holds most pages. Seconds.",
    rows: rows.map(({ v, type, t, rank, pages }) => ({ variant: v, type, t, rank, pages })),
    spec: (width) => ({ spacing: 10, resolve: { scale: { color: "shared" } },
      vconcat: found.flatMap((v) => kinds.map((kind) => one(v, kind, width))) }),
  };
}

