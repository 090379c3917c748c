"use strict";
// Builds the page of a run: sections with their charts and tables; draws again when width or
// colours change.

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
    await embed(chart, { ...section.spec(chart.clientWidth - 4), padding: 2,
      autosize: { type: "pad" } });
  }
  document.body.dataset.drawn = String(drawn.length);
}

const counters = facts.counters.map((row) =>
  ({ counter: row.name, ...Object.fromEntries(facts.variants.map((v, i) => [v, row.values[i]])) }));
if (counters.length) fillTable(document.getElementById("counters"), counters);
const button = document.getElementById("copy");
button.addEventListener("click", () => copy(button, counters));

start(draw);
