"use strict";
(() => {
const answer = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const el = (tag, props, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  for (const child of children) if (child !== null && child !== undefined && child !== "")
    node.append(child instanceof Node ? child : document.createTextNode(child));
  return node;
};

// ---- figures: three significant digits, as the terminal has them ----
const digits = value => {
  const size = Math.abs(value);
  if (size < 1e-9) return "0";
  if (size >= 99.95) return value.toFixed(0);
  return value.toFixed(size >= 9.995 ? 1 : size >= 0.995 ? 2 : 3);
};
const GiB = 2 ** 30;
const big = answer.stages.some(s => s.peak_allocated_bytes >= GiB / 2);
const unit = big ? ["GiB", GiB] : ["MiB", 2 ** 20];
const inUnit = bytes => digits(bytes / unit[1]);
const size = bytes => bytes >= GiB / 2 ? digits(bytes / GiB) + " GiB" : bytes >= 2 ** 20 / 2
  ? digits(bytes / 2 ** 20) + " MiB" : digits(bytes / 1024) + " KiB";
const time = ns => ns >= 0.9995e9 ? digits(ns / 1e9) + " s" : ns >= 0.9995e6 ? digits(ns / 1e6) + " ms"
  : digits(ns / 1e3) + " us";
const percent = share => (share * 100).toFixed(share < 0.0995 ? 1 : 0) + " %";

// ---- colours ----
const ownerColors = {"weights": "wgt", "optimizer states": "opt", "gradients": "bwd", "activations": "fwd",
  "temporary": "tmp", "other": "unk", "allocated in forward": "fwd", "allocated in backward": "bwd",
  "allocated in optimizer": "opt", "allocated in recompute": "rec", "held before": "cach", "allocated": "unk"};
const spare = ["opt", "fwd", "wgt", "rec", "tmp", "drv", "host", "com"];
const given = new Map();
const colorOf = owner => {
  if (ownerColors[owner]) return ownerColors[owner];
  if (!given.has(owner)) given.set(owner, spare[given.size % spare.length]);
  return given.get(owner);
};
// By Phase.
const passColors = ["unk", "fwd", "bwd", "opt", "com", "rec"], recompute = 5;
const passWords = ["work", "forward", "backward", "optimizer", "communication", "recompute"];
// Of what has passes: [begin, end, micro-batch, phase], begin and end in nanoseconds.
const unfold = one => {
  const flat = one.passes, unit = one.pass_unit_ns;
  one.passes = [];
  for (let i = 0; i < flat.length; i += 4) one.passes.push([flat[i] * unit, flat[i + 1] * unit, flat[i + 2], flat[i + 3]]);
};
answer.stages.forEach(unfold);
answer.ways.forEach(way => way.outlines.forEach(unfold));
// By sim::WorkColor.
const workColors = ["fwd", "rec", "bwd", "opt", "com", "host", "drv", "unk", "unk", "cach"];
let token = {};
const readTokens = () => {
  const style = getComputedStyle(document.documentElement);
  token = new Proxy({}, {get: (kept, name) => kept[name] || (kept[name] = style.getPropertyValue("--" + name).trim())});
};

// Without any memory, what runs when is drawn by itself.
const timesAlone = !answer.stages.length && answer.timeline.lanes.length > 0;
if (timesAlone) answer.stages.push({name: "GPU", verdict: "unknown", capacity_bytes: null, limit_bytes: null, peak_reserved_bytes: 0,
  peak_allocated_bytes: 0, idle_fraction: null, axis: "ns", begin: 0, end: answer.timeline.end_ns, peak_at: 0, peak_words: "", owners: ["other"],
  at_peak_bytes: [0], bin_unit_bytes: 1, bins: [new Array(answer.timeline.columns).fill(0)], tensors: [], passes: []});

// ---- state ----
let stage = answer.stages.reduce((best, s, i, all) => s.peak_allocated_bytes > all[best].peak_allocated_bytes ? i : best, 0);
let kept = -1, pointed = -1, view = null, cursor = null;
const shownWay = () => pointed >= 0 ? pointed : kept;
const columnSums = new Map();

// ---- head ----
document.title = answer.title;
$("title").textContent = $("title").title = answer.title;
$("machine").textContent = $("machine").title = answer.machine;
const mood = answer.verdict.fits === false ? "bad" : answer.verdict.word === "fits" ? "good" : "warn";
const paragraph = (text, cls) => text ? $("words").append(el("p", {class: cls || "", title: text}, text)) : null;
paragraph(answer.verdict.heading, "heading " + mood);
if (answer.verdict.best.startsWith("nearest")) paragraph(answer.verdict.best);
paragraph(answer.verdict.as_given);
paragraph(answer.why.sentence);
paragraph(answer.verdict.advice);
paragraph(answer.when, "muted");
if (answer.verdict.hangs_on.length) paragraph("Hangs on: " + answer.verdict.hangs_on.join("; ") + ".", "muted");
for (const {name, value, detail} of answer.head)
  $("figures").append(el("div", {}, el("dt", {}, name), el("dd", {}, value), detail ? el("dd", {class: "small"}, detail) : null));

// ---- ways ----
const rows = [];
const list = texts => el("ul", {}, ...texts.map(text => el("li", {}, text)));
const details = way => {
  const box = el("div", {class: "open gone"});
  if (way.changes.length) {
    const table = el("table");
    for (const change of way.changes)
      table.append(el("tr", {}, el("td", {class: "mono"}, change.key), el("td", {}, el("s", {}, change.from), " → ",
        el("b", {}, change.to)), el("td", {class: "muted"}, change.worth)));
    box.append(table);
  } else if (way.edits.length === 0 && answer.search) box.append(el("p", {}, "It is as given: nothing changes."));
  for (const sentence of way.sentences) box.append(el("p", {}, sentence));
  for (const launch of way.launches) {
    const inside = el("details", launch.state === "no" ? {} : {open: ""}, el("summary", {}, "in " + launch.framework + ": " +
      (launch.state === "no" || !launch.with_code_figures || launch.state === "runs" ? launch.figures
        : launch.with_code_figures + ", with a line in the program")));
    if (launch.lines.length) inside.append(el("pre", {}, launch.lines.join("\n")));
    if (launch.state === "with_code") inside.append(el("p", {class: "muted"}, "its file alone: " + launch.figures),
      el("pre", {}, launch.code.join("\n")));
    if (launch.cannot_say.length) inside.append(el("p", {class: "muted"}, "its file can't say " + launch.cannot_say.join(", ")));
    box.append(inside);
  }
  if (way.edits.length) box.append(el("pre", {}, way.edits.map(edit => "--set " + edit).join(" ")));
  if (way.folded.length) {
    const table = el("table", {}, el("tr", {}, el("th", {}, "set-up"), el("th", {}, "folded as"), el("th", {class: "n"}, "step"),
      el("th", {class: "n"}, "GiB left")));
    for (const one of way.folded) table.append(el("tr", {}, el("td", {}, one.name), el("td", {}, one.reason),
      el("td", {class: "n"}, one.step), el("td", {class: "n"}, one.left)));
    box.append(el("details", {}, el("summary", {}, way.folded.length + " folded: alike, or no better"), table));
  }
  return box;
};
const wayRow = (way, index) => {
  const fig = way.figures, used = fig.peak_reserved_bytes !== null && fig.limit_bytes ? fig.peak_reserved_bytes / fig.limit_bytes : null;
  const change = fig.shown.tokens;
  const second = el("span", {class: "second"});
  if (used !== null) {
    const fill = el("i", {class: fig.verdict === "tight" ? "tight" : used > 1 || fig.verdict === "does not fit" ? "over" : ""});
    fill.style.width = Math.min(100, used * 100) + "%";
    second.append(el("span", {class: "track"}, fill));
  }
  second.append(el("span", {class: /^-./.test(fig.shown.left) ? "bad" : ""}, fig.shown.room));
  if (way.runs_in) second.append(el("span", {class: "chip" + (/own code|simulation|[*]/.test(way.runs_in) ? " own" : "")}, way.runs_in));
  const button = el("button", {type: "button", class: "way", "aria-expanded": "false"},
    el("span", {class: "rank"}, way.number === null ? "" : String(way.number)), el("span", {class: "name", title: way.name}, way.name),
    el("span", {class: "step"}, fig.shown.step === "-" ? "" : fig.shown.step),
    el("span", {class: "change " + (change.startsWith("-") ? "bad" : change.startsWith("+") ? "good" : "muted")},
      change === "-" ? "" : change.replace("-", "−")), second);
  const box = details(way);
  button.addEventListener("click", () => keep(kept === index ? -1 : index));
  button.addEventListener("pointerenter", () => point(index));
  button.addEventListener("pointerleave", () => point(-1));
  button.addEventListener("focus", () => point(index));
  button.addEventListener("blur", () => point(-1));
  button.addEventListener("keydown", event => {
    const seen = rows.filter(row => !row.button.classList.contains("gone"));
    const at = seen.findIndex(row => row.button === button);
    const to = event.key === "ArrowDown" ? at + 1 : event.key === "ArrowUp" ? at - 1 : event.key === "Home" ? 0
      : event.key === "End" ? seen.length - 1 : -1;
    if (event.key === "Escape") { keep(-1); event.preventDefault(); }
    if (to < 0 || to >= seen.length) return;
    event.preventDefault();
    seen[to].button.focus();
  });
  rows.push({button, box, way, text: ""});
  return [button, box];
};
const makeWays = () => {
  const host = $("ways");
  if (!answer.ways.length) return;
  const comparing = answer.now !== null;
  host.append(el("div", {class: "head"}, el("h2", {}, answer.ways_heading || (answer.ways.length + " set-ups")),
    el("span", {class: "muted"}, comparing ? "step, and tokens/s against " + (answer.search ? "as given" : answer.drawn || "as given") : answer.search ? "step, tokens/s" : "")));
  let group = null;
  answer.ways.forEach((way, index) => {
    if (way.group !== group) host.append(el("h3", {}, way.group));
    group = way.group;
    host.append(...wayRow(way, index));
  });
  if (answer.search) host.append(el("p", {class: "muted"}, answer.search.sentence));
  for (const row of rows) row.text = (row.button.textContent + " " + row.box.textContent + " " + row.way.edits.join(" ")).toLowerCase();
};
const point = index => {
  pointed = index;
  tellPreview();
  draw();
};
const keep = index => {
  kept = index;
  rows.forEach((row, i) => {
    row.button.setAttribute("aria-expanded", String(i === kept));
    row.button.setAttribute("aria-pressed", String(i === kept));
    row.box.classList.toggle("gone", i !== kept);
  });
  tellPreview();
  makeCommand();
  draw();
  remember();
};
const tellPreview = () => {
  const strip = $("preview"), index = shownWay();
  strip.replaceChildren();
  strip.classList.toggle("gone", !answer.ways.length || !answer.stages.length);
  strip.classList.toggle("idle", index < 0);
  if (index < 0) {
    strip.append(el("span", {class: "muted"}, answer.ways.some(way => way.outlines.length)
      ? "Point at a set-up: its memory appears as a dashed outline, its figures here. Click keeps it."
      : "Point at a set-up: what it reserves appears as a dashed line. Click keeps it."));
    return;
  }
  const way = answer.ways[index], shown = way.figures.shown;
  const add = (name, value) => value && value !== "-" ? strip.append(el("span", {}, el("span", {class: "muted"}, name + " "), el("b", {}, value))) : null;
  strip.append(el("b", {class: "name"}, way.name));
  add("step", shown.step);
  add("tokens/s", shown.tokens.replace("-", "−"));
  add("memory", shown.room);
  add("binds", shown.binds);
};

// "train.py:64 build" of "/root/src/train.py:64 build".
const bareLine = name => name.replace(/^[^\s]*\/(?=[^/\s]*:\d+ )/, "");

// ---- stages ----
const makeStages = () => {
  const strip = $("stages");
  strip.classList.toggle("gone", answer.stages.length < 2);
  const most = Math.max(...answer.stages.map(s => Math.max(s.capacity_bytes || 0, s.peak_reserved_bytes)));
  answer.stages.forEach((s, i) => {
    const fill = el("i");
    fill.style.height = Math.round(s.peak_reserved_bytes / most * 32) + "px";
    const button = el("button", {type: "button", title: s.name + ": " + size(s.peak_reserved_bytes) + " reserved",
      "aria-label": s.name + ", " + size(s.peak_reserved_bytes) + " reserved at most"}, fill, el("b", {}, s.name.replace(/^\D*/, "") || String(i)));
    button.addEventListener("click", () => choose(i));
    button.addEventListener("keydown", event => {
      const to = event.key === "ArrowRight" ? i + 1 : event.key === "ArrowLeft" ? i - 1 : -1;
      if (to < 0 || to >= answer.stages.length) return;
      event.preventDefault();
      choose(to);
      strip.children[to].focus();
    });
    strip.append(button);
  });
};
const choose = i => {
  stage = i;
  view = cursor = null;
  [...$("stages").children].forEach((button, k) => button.setAttribute("aria-pressed", String(k === i)));
  const s = answer.stages[i], of = answer.stages.length > 1 ? s.name + " of " + answer.stages.length + ", " : "";
  const recorded = answer.drawn === "as recorded", clock = recorded || s.name === "host memory" ? "" : ", on the GPU's clock";
  $("subtitle").textContent = timesAlone ? "streams, copies and the host, as replayed" : of + (recorded ? "by the program's own lines" : "by owner") + (s.axis === "ns" ? clock : ", request by request") +
    (answer.drawn ? "; " + answer.drawn : "");
  $("legend").replaceChildren(...s.owners.map((owner, k) => s.bins[k].some(v => v * s.bin_unit_bytes > s.peak_allocated_bytes / 400)
    ? el("li", {title: owner}, el("i", {class: "f-" + colorOf(owner)}), bareLine(owner)) : ""));
  $("base").setAttribute("aria-label", timesAlone ? "What runs when, lane by lane; the tables below hold the same facts." : "Memory of " + s.name + " over time: " + size(s.peak_allocated_bytes) +
    " allocated at the peak" + (s.peak_words ? ", " + s.peak_words : "") + ". The tables below hold the same facts.");
  $("readout").textContent = "";
  makeTensors();
  draw();
  remember();
};

// ---- picture ----
const margin = {left: 58, right: 12, top: 12, axis: 22};
let geometry = null;
const outlineOf = index => {
  if (index < 0 || !answer.ways[index].outlines.length) return null;
  const outlines = answer.ways[index].outlines, name = answer.stages[stage].name;
  return outlines.find(one => one.stage === name) ||
    outlines.reduce((best, one) => one.peak_allocated_bytes > best.peak_allocated_bytes ? one : best);
};
if (timesAlone) {
  document.querySelector("#picture h2").textContent = "What runs when";
  $("picture").setAttribute("aria-label", "What runs when");
}
const sums = s => {
  if (!columnSums.has(s)) columnSums.set(s, s.bins[0].map((_, b) => s.bins.reduce((sum, row) => sum + row[b], 0) * s.bin_unit_bytes));
  return columnSums.get(s);
};
const niceStep = rough => {
  const power = 10 ** Math.floor(Math.log10(rough)), part = rough / power;
  return (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10) * power;
};
const laneHeight = timesAlone ? 26 : 15;
const lanesOf = s => {
  const lanes = [];
  if (answer.stages.length > 1) {
    if (s.passes.length) lanes.push({name: "stages", height: Math.min(124, Math.max(4, Math.floor(124 / answer.stages.length)) * answer.stages.length), kind: "stages"});
  } else if (s.passes.length) lanes.push({name: "phase", height: 16, kind: "passes", passes: s.passes});
  const rank = answer.stages.length > 1 ? stage : 0;
  const mine = answer.timeline.lanes.filter(lane => lane.rank === rank);
  for (const lane of mine.slice(0, answer.stages.length > 1 ? 3 : timesAlone ? 8 : 5))
    lanes.push({name: mine.filter(one => one.kind === lane.kind).length === 1 && lane.kind !== "communication" ? lane.kind
      : lane.name.replace(/^rank \d+ /, ""), height: laneHeight, kind: "lane", lane});
  if (outlineOf(shownWay()) && outlineOf(shownWay()).passes.length)
    lanes.push({name: "way", height: 15, kind: "passes", passes: outlineOf(shownWay()).passes, dashed: true});
  return lanes;
};
const sized = canvas => {
  const plot = $("plot"), ratio = Math.max(1, printing ? 2 : window.devicePixelRatio || 1);
  const width = plot.clientWidth, height = plot.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return {context, width, height};
};
let printing = false, asked = 0;
const draw = () => {
  if (!answer.stages.length) return;
  if (!asked) asked = requestAnimationFrame(() => { asked = 0; paint(); });
};
const fontOf = (px, bold) => (bold ? "600 " : "") + px + "px " + getComputedStyle(document.body).fontFamily;
const fitText = (context, text, width) => {
  if (context.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) { const mid = (low + high + 1) >> 1; if (context.measureText(text.slice(0, mid) + "…").width <= width) low = mid; else high = mid - 1; }
  return low > 0 ? text.slice(0, low) + "…" : "";
};
const hatch = (context, x, y, width, height, color, gap) => {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = color;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = x - height; at < x + width; at += gap) { context.moveTo(at, y + height); context.lineTo(at + height, y); }
  context.stroke();
  context.restore();
};
const paint = () => {
  const s = answer.stages[stage], index = shownWay(), outline = outlineOf(index);
  const {context: c, width, height} = sized($("base"));
  const lanes = lanesOf(s), lanesHeight = lanes.reduce((sum, lane) => sum + lane.height + 4, 0);
  c.font = fontOf(11);
  margin.left = Math.max(58, Math.min(120, Math.max(0, ...lanes.map(lane => c.measureText(lane.name).width)) + 10));
  const x0 = margin.left, x1 = width - margin.right, y0 = margin.top, y1 = timesAlone ? y0 : Math.max(y0 + 60, height - margin.axis - lanesHeight - 4);
  const whole = [s.begin, Math.max(s.end, outline && s.axis === "ns" ? outline.end_ns : s.end)];
  const [t0, t1] = view || whole;
  const level = index >= 0 && !outline ? answer.ways[index].figures.peak_reserved_bytes : null;
  const most = Math.max(s.peak_allocated_bytes, s.capacity_bytes || 0, outline ? outline.peak_allocated_bytes : 0, level || 0) * 1.07 || 1;
  const X = t => x0 + (t - t0) / (t1 - t0) * (x1 - x0), Y = bytes => y1 - bytes / most * (y1 - y0);
  geometry = {x0, x1, y0, y1, t0, t1, whole, lanes, X, Y, height, width};
  c.font = fontOf(12);
  c.textBaseline = "middle";
  // Grid and axes.
  const step = niceStep(most / unit[1] / Math.max(2, (y1 - y0) / 60));
  c.lineWidth = 1;
  c.textAlign = "right";
  for (let v = 0; !timesAlone && v * unit[1] <= most; v += step) {
    c.strokeStyle = token.grid;
    c.beginPath();
    c.moveTo(x0, Math.round(Y(v * unit[1])) + 0.5);
    c.lineTo(x1, Math.round(Y(v * unit[1])) + 0.5);
    c.stroke();
    c.fillStyle = token.muted;
    c.fillText(String(+v.toPrecision(6)), x0 - 6, Y(v * unit[1]));
  }
  const timeStep = niceStep((t1 - t0) / Math.max(2, (x1 - x0) / 130)), axisY = height - margin.axis / 2;
  c.textAlign = "center";
  for (let t = Math.ceil(t0 / timeStep) * timeStep; t <= t1; t += timeStep) {
    c.strokeStyle = token.grid;
    c.beginPath();
    c.moveTo(Math.round(X(t)) + 0.5, y0);
    c.lineTo(Math.round(X(t)) + 0.5, height - margin.axis);
    c.stroke();
    c.fillStyle = token.muted;
    const words = s.axis === "ns" ? axisTime(t - s.begin, timeStep, t1 - t0) : String(Math.round(t));
    const half = c.measureText(words).width / 2;
    c.fillText(words, Math.min(Math.max(X(t), x0 + half - 8), x1 - half), axisY);
  }
  c.save();
  c.translate(12, (y0 + y1) / 2);
  c.rotate(-Math.PI / 2);
  c.fillStyle = token.muted;
  if (!timesAlone) c.fillText(unit[0] + " on " + s.name, 0, 0);
  c.restore();
  // The stack.
  const bins = s.bins[0].length, edge = b => X(s.begin + (s.end - s.begin) * b / bins);
  const from = Math.max(0, Math.floor((t0 - s.begin) / (s.end - s.begin) * bins)), to = Math.min(bins, Math.ceil((t1 - s.begin) / (s.end - s.begin) * bins));
  c.save();
  c.beginPath();
  c.rect(x0, 0, x1 - x0, y1);
  c.clip();
  c.globalAlpha = outline || level ? 0.45 : 0.92;
  const below = new Float64Array(bins);
  s.owners.forEach((owner, k) => {
    const values = s.bins[k];
    c.beginPath();
    for (let b = from; b < to; ++b) {
      const y = Y((below[b] + values[b]) * s.bin_unit_bytes);
      if (b === from) c.moveTo(edge(b), y); else c.lineTo(edge(b), y);
      c.lineTo(edge(b + 1), y);
    }
    for (let b = to - 1; b >= from; --b) { const y = Y(below[b] * s.bin_unit_bytes); c.lineTo(edge(b + 1), y); c.lineTo(edge(b), y); }
    c.closePath();
    c.fillStyle = token[colorOf(owner)];
    c.fill();
    for (let b = from; b < to; ++b) below[b] += values[b];
  });
  c.globalAlpha = 1;
  // Capacity, and what of it is kept free.
  const taken = [];
  if (s.capacity_bytes) {
    if (s.limit_bytes && s.limit_bytes < s.capacity_bytes)
      hatch(c, x0, Y(s.capacity_bytes), x1 - x0, Math.max(2, Y(s.limit_bytes) - Y(s.capacity_bytes)), token.bad, 6);
    c.strokeStyle = token.bad;
    c.lineWidth = 2;
    c.beginPath();
    c.moveTo(x0, Y(s.capacity_bytes));
    c.lineTo(x1, Y(s.capacity_bytes));
    c.stroke();
  }
  // The way's outline.
  c.strokeStyle = token.accent;
  c.setLineDash([5, 3]);
  let outlinePeak = null;
  if (outline) {
    const count = outline.bins.length, at = b => X(outline.begin_ns + (outline.end_ns - outline.begin_ns) * b / count);
    c.beginPath();
    outline.bins.forEach((v, b) => {
      const y = Y(v * outline.bin_unit_bytes);
      if (b === 0) c.moveTo(at(0), y); else c.lineTo(at(b), y);
      c.lineTo(at(b + 1), y);
      if (!outlinePeak || y < outlinePeak.y) outlinePeak = {x: at(b + 0.5), y};
    });
    for (const [line, color] of [[5, token.bg], [2, token.accent]]) {
      c.lineWidth = line;
      c.strokeStyle = color;
      c.stroke();
    }
    c.beginPath();
    c.moveTo(X(outline.end_ns) - 1, y0);
    c.lineTo(X(outline.end_ns) - 1, y1);
    c.stroke();
  } else if (level) {
    c.lineWidth = 2;
    c.beginPath();
    c.moveTo(x0, Y(level));
    c.lineTo(x1, Y(level));
    c.stroke();
    outlinePeak = {x: (x0 + x1) / 2, y: Y(level)};
  }
  c.setLineDash([]);
  c.restore();
  // Labels never cover each other and stay inside.
  const label = (words, x, y, color, places) => {
    c.font = fontOf(12, true);
    const w = Math.min(c.measureText(words).width, x1 - x0 - 24) + 14, h = 20;
    const inside = ([px, py]) => [Math.min(Math.max(px, x0 + 2), x1 - w - 2), Math.min(Math.max(py, 2), y1 - h - 2)];
    const free = ([px, py]) => taken.every(t => px + w <= t.x || px >= t.x + t.w || py + h <= t.y || py >= t.y + t.h);
    const tried = places(w, h).map(inside);
    for (let down = 0; down < y1 - y0; down += h + 4) tried.push(inside([x - w / 2, y + 6 + down]));
    for (let up = 0; up < y1 - y0; up += h + 4) tried.push(inside([x - w / 2, y - h - 6 - up]));
    const [px, py] = tried.find(free) || tried[0];
    taken.push({x: px, y: py, w, h});
    c.fillStyle = token.bg;
    c.strokeStyle = color;
    c.lineWidth = 1.5;
    c.beginPath();
    c.roundRect(px, py, w, h, 4);
    c.fill();
    c.stroke();
    c.fillStyle = color;
    c.textAlign = "left";
    c.fillText(fitText(c, words, w - 12), px + 7, py + h / 2 + 0.5);
    c.font = fontOf(12);
  };
  const px = X(s.peak_at), py = Y(s.peak_allocated_bytes);
  const drawnPeak = s.at_peak_bytes.reduce((a, b) => a + b, 0);
  if (px >= x0 && px <= x1 && drawnPeak > 0) {
    c.fillStyle = token.text;
    c.strokeStyle = token.bg;
    c.lineWidth = 1.5;
    c.beginPath();
    c.arc(px, Y(drawnPeak), 4.5, 0, 7);
    c.fill();
    c.stroke();
    taken.push({x: px - 6, y: Y(drawnPeak) - 6, w: 12, h: 12});
    label("peak " + size(drawnPeak) + (s.peak_words ? ", " + s.peak_words : ""), px, py, token.text, (w, h) =>
      px + 12 + w < x0 + (x1 - x0) * 0.98 ? [[px + 12, py - h / 2], [px - w - 12, py - h / 2]] : [[px - w - 12, py - h / 2]]);
  }
  if (s.capacity_bytes) {
    const y = Y(s.capacity_bytes), words = size(s.capacity_bytes) + (s.limit_bytes && s.limit_bytes < s.capacity_bytes
      ? " the GPU has; hatched: kept free" : " the GPU has");
    label(words, x1, y, token.bad, (w, h) => [[x1 - w - 2, y - h - 4], [x1 - w - 2, y + 8], [x0 + 2, y - h - 4], [x0 + 2, y + 8]]);
  }
  if (outlinePeak && index >= 0) {
    const way = answer.ways[index], shown = way.figures.shown;
    const words = way.name + ": " + size(outline ? outline.peak_allocated_bytes : level) + (shown.step === "-" ? "" : ", " + shown.step);
    label(words, outlinePeak.x, outlinePeak.y, token.accent, (w, h) => [[outlinePeak.x + 8, outlinePeak.y - h - 6],
      [outlinePeak.x - w - 8, outlinePeak.y - h - 6], [outlinePeak.x - w / 2, outlinePeak.y + 8]]);
  }
  // Lanes.
  let y = y1 + 6;
  for (const lane of lanes) {
    lane.y = y;
    c.save();
    c.beginPath();
    c.rect(x0, y, x1 - x0, lane.height);
    c.clip();
    if (lane.kind === "stages") {
      const each = lane.height / answer.stages.length;
      answer.stages.forEach((one, i) => paintPasses(c, one.passes, X, y + i * each, Math.max(2, each - 1), x0, x1));
      c.restore();
      c.save();
      c.strokeStyle = token.accent;
      c.lineWidth = 2;
      c.strokeRect(x0, y + stage * each - 0.5, x1 - x0, each);
    } else if (lane.kind === "passes") paintPasses(c, lane.passes, X, y, lane.height, x0, x1);
    else paintLane(c, lane.lane, X, y, lane.height, whole, s);
    c.restore();
    if (lane.dashed) {
      c.strokeStyle = token.accent;
      c.setLineDash([4, 3]);
      c.strokeRect(x0 + 0.5, y + 0.5, x1 - x0 - 1, lane.height - 1);
      c.setLineDash([]);
    }
    c.fillStyle = token.muted;
    c.textAlign = "right";
    c.font = fontOf(11);
    c.fillText(fitText(c, lane.name, x0 - 8), x0 - 5, y + lane.height / 2);
    y += lane.height + 4;
  }
  paintCursor();
};
const axisTime = (ns, step, span) => {
  const [name, per] = span >= 0.999e9 ? ["s", 1e9] : span >= 0.999e6 ? ["ms", 1e6] : ["us", 1e3];
  return ns === 0 ? "0" : (ns / per).toFixed(Math.max(0, -Math.floor(Math.log10(step / per) + 1e-9))) + " " + name;
};
const paintPasses = (c, passes, X, y, height, x0, x1) => {
  c.textAlign = "left";
  for (const [begin, end, batch, phase] of passes) {
    const left = X(begin), right = X(end);
    if (right < x0 || left > x1) continue;
    const w = Math.max(0.6, right - left - (right - left > 4 ? 0.6 : 0));
    c.fillStyle = token[passColors[phase]];
    c.fillRect(left, y, w, height);
    if (phase === recompute) hatch(c, Math.max(left, x0), y, Math.min(right, x1) - Math.max(left, x0), height, token.onrec, 5);
    if (height < 11 || w < 15) continue;
    c.fillStyle = token["on" + passColors[phase]];
    c.font = fontOf(11);
    const words = w > 60 ? passWords[phase] + (batch >= 0 ? " " + batch : "") : batch >= 0 ? String(batch) : "";
    if (words) c.fillText(fitText(c, words, Math.min(right, x1) - Math.max(left, x0) - 8), Math.max(left, x0) + 4, y + height / 2 + 0.5);
  }
};
const paintLane = (c, lane, X, y, height, whole, s) => {
  const columns = answer.timeline.columns, at = column => X(s.begin + (s.end - s.begin) * column / columns);
  for (let i = 0; i < lane.runs.length; i += 4) {
    const left = at(lane.runs[i]), right = at(lane.runs[i] + lane.runs[i + 1]);
    c.globalAlpha = 0.4 + 0.2 * lane.runs[i + 3];
    c.fillStyle = token[workColors[lane.runs[i + 2]]];
    c.fillRect(left, y, Math.max(0.5, right - left), height);
  }
  c.globalAlpha = 1;
  c.textAlign = "left";
  c.font = fontOf(11);
  for (let i = 0; i < lane.blocks.length; i += 4) {
    const left = at(lane.blocks[i] / 100), right = at((lane.blocks[i] + lane.blocks[i + 1]) / 100);
    const color = workColors[lane.blocks[i + 2]];
    c.fillStyle = token[color];
    c.fillRect(left, y, Math.max(0.5, right - left - (right - left > 3 ? 0.5 : 0)), height);
    if (right - left < 40) continue;
    c.fillStyle = token["on" + color];
    c.fillText(fitText(c, answer.timeline.names[lane.blocks[i + 3]], right - left - 6), left + 3, y + height / 2 + 0.5);
  }
};
const paintCursor = () => {
  const {context: c} = sized($("over"));
  if (cursor === null || !geometry) return;
  const x = Math.round(geometry.X(cursor)) + 0.5;
  if (x < geometry.x0 || x > geometry.x1) return;
  c.strokeStyle = token.text;
  c.lineWidth = 1;
  c.beginPath();
  c.moveTo(x, geometry.y0);
  c.lineTo(x, geometry.height - margin.axis);
  c.stroke();
};
const tellCursor = () => {
  const s = answer.stages[stage], bins = s.bins[0].length;
  paintCursor();
  if (cursor === null) return;
  const b = Math.floor((cursor - s.begin) / (s.end - s.begin) * bins);
  if (b < 0 || b >= bins) { $("readout").textContent = time(cursor - s.begin) + ": behind the end of this step"; return; }
  const parts = s.owners.map((owner, k) => [owner, s.bins[k][b] * s.bin_unit_bytes]).filter(([, v]) => v > 0)
    .map(([owner, v]) => owner + " " + inUnit(v));
  const pass = s.passes.find(([begin, end]) => begin <= cursor && cursor < end);
  const what = pass ? "; " + passWords[pass[3]] + (pass[2] >= 0 ? " of micro-batch " + pass[2] : "") : "";
  const names = [];
  const rank = answer.stages.length > 1 ? stage : 0, column = (cursor - s.begin) / (s.end - s.begin) * answer.timeline.columns * 100;
  for (const lane of answer.timeline.lanes) {
    if (lane.rank !== rank || names.length > 1) continue;
    for (let i = 0; i < lane.blocks.length; i += 4)
      if (lane.blocks[i] <= column && column < lane.blocks[i] + lane.blocks[i + 1]) { names.push(answer.timeline.names[lane.blocks[i + 3]]); break; }
  }
  const at = s.axis === "ns" ? time(cursor - s.begin) : "request " + Math.floor(cursor);
  if (timesAlone) { $("readout").replaceChildren(el("b", {}, at), what + (names.length ? ": " + names.join(", ") : "")); return; }
  $("readout").replaceChildren(el("b", {}, at + ": " + size(sums(s)[b])), " = " + parts.join(", ") + what + (names.length ? "; " + names.join(", ") : ""));
};
const zoom = (factor, around) => {
  const [a, b] = view || geometry.whole, [w0, w1] = geometry.whole, at = around === undefined ? (a + b) / 2 : around;
  const span = Math.min(w1 - w0, Math.max((w1 - w0) / 2000, (b - a) / factor)), share = (at - a) / (b - a);
  const from = Math.min(Math.max(at - share * span, w0), w1 - span);
  view = span >= w1 - w0 ? null : [from, from + span];
  draw();
};
const pan = share => {
  if (!view) return;
  const [w0, w1] = geometry.whole, span = view[1] - view[0];
  const from = Math.min(Math.max(view[0] + share * span, w0), w1 - span);
  view = [from, from + span];
  draw();
};
const bindPlot = () => {
  const plot = $("plot");
  const timeAt = event => {
    const x = event.clientX - plot.getBoundingClientRect().left - plot.clientLeft;
    return geometry.t0 + (x - geometry.x0) / (geometry.x1 - geometry.x0) * (geometry.t1 - geometry.t0);
  };
  let drag = null;
  plot.addEventListener("pointermove", event => {
    if (!geometry) return;
    if (drag !== null) { const now = event.clientX; pan((drag - now) / (geometry.x1 - geometry.x0)); drag = now; return; }
    const t = timeAt(event);
    cursor = t >= geometry.t0 && t <= geometry.t1 ? t : null;
    tellCursor();
  });
  plot.addEventListener("pointerdown", event => { drag = view ? event.clientX : null; if (view) plot.setPointerCapture(event.pointerId); });
  plot.addEventListener("pointerup", () => { drag = null; });
  plot.addEventListener("pointerleave", () => { drag = null; });
  plot.addEventListener("click", event => {
    const lane = geometry && geometry.lanes.find(one => one.kind === "stages");
    const y = event.clientY - plot.getBoundingClientRect().top;
    if (lane && y >= lane.y && y < lane.y + lane.height) choose(Math.min(answer.stages.length - 1, Math.floor((y - lane.y) / lane.height * answer.stages.length)));
  });
  plot.addEventListener("dblclick", () => { view = null; draw(); });
  plot.addEventListener("wheel", event => {
    if (document.activeElement !== plot && !event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, timeAt(event));
  }, {passive: false});
  plot.addEventListener("keydown", event => {
    if (!geometry) return;
    const moved = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (event.key === "+" || event.key === "=") zoom(1.5, cursor === null ? undefined : cursor);
    else if (event.key === "-") zoom(1 / 1.5, cursor === null ? undefined : cursor);
    else if (event.key === "0") { view = null; draw(); }
    else if (event.key === "[" && stage > 0) choose(stage - 1);
    else if (event.key === "]" && stage + 1 < answer.stages.length) choose(stage + 1);
    else if (event.key === "Escape") keep(-1);
    else if (moved && event.shiftKey) pan(moved * 0.2);
    else if (moved) {
      const [a, b] = view || geometry.whole;
      cursor = Math.min(Math.max((cursor === null ? a : cursor) + moved * (b - a) / 100, a), b);
      tellCursor();
    } else return;
    event.preventDefault();
  });
};

// ---- cards ----
const card = (title, ...inside) => el("section", {class: "card", "aria-label": title}, el("h2", {}, title), ...inside);
const bar = (name, share, words) => {
  const fill = el("i");
  fill.style.width = Math.max(0, Math.min(1, share)) * 100 + "%";
  return el("div", {class: "gain"}, el("span", {title: name}, name), fill, el("span", {}, words));
};
const bindsCard = () => {
  const box = card(answer.held === "at the peak" || !answer.held ? "What binds" + (answer.helps.length ? ", what would help" : "") : "What was alive");
  if (!answer.binds.shares.length) return null;
  const title = answer.binds.sentence.replace(/:.*/s, ":").replace(/\.$/, ":");
  box.append(el("p", {class: "muted"}, title));
  for (const share of answer.binds.shares) box.append(bar(share.name, share.fraction, percent(share.fraction)));
  if (answer.helps.length) {
    box.append(el("h3", {}, "What would make the step shorter"));
    for (const help of answer.helps) box.append(bar(help.name, help.fraction, "−" + percent(help.fraction)));
  }
  if (answer.no_help.length) box.append(el("p", {class: "muted"}, "No gain from: " + answer.no_help.join(", ") + "."));
  return box;
};
const workCard = () => {
  if (!answer.work.length) return null;
  const box = card("Where the recorded time went");
  for (const work of answer.work) {
    const idle = work.rows.some(row => row.gpu_idle_ns > 0);
    const table = el("table", {}, el("tr", {}, el("th", {}, work.kind), el("th", {class: "n"}, "times"), el("th", {class: "n"}, "time"),
      idle ? el("th", {class: "n"}, "GPU idle") : null));
    for (const row of work.rows) table.append(el("tr", {}, el("td", {class: "mono"}, row.name), el("td", {class: "n"}, String(row.count)),
      el("td", {class: "n"}, time(row.time_ns)), idle ? el("td", {class: "n"}, row.gpu_idle_ns > 0 ? time(row.gpu_idle_ns) : "") : null));
    box.append(table);
  }
  box.classList.add("wide");
  return box;
};
// What the head, the picture and the other cards do not say already.
const toldElsewhere = ["machine", "step", "limited by"];
const factsCard = () => {
  const facts = answer.facts.filter(fact => !toldElsewhere.includes(fact.label));
  if (!facts.length) return null;
  return card("Figures of the step", el("table", {}, ...facts.map(fact => el("tr", {}, el("td", {class: "label"}, fact.label), el("td", {}, fact.words)))));
};
const marks = {measured: "●", datasheet: "◐", fitted: "◐", assumed: "◌"};
const restsCard = () => {
  const rests = answer.rests_on;
  if (!rests.inputs.length && !rests.times && !rests.assumed.length && !rests.defaulted.length && !rests.warnings.length) return null;
  const box = card("What the answer rests on");
  for (const warning of rests.warnings) box.append(el("p", {class: "warn"}, "▲ " + warning));
  if (rests.times) box.append(el("p", {}, rests.times[0].toUpperCase() + rests.times.slice(1) + "."));
  for (const one of rests.assumed) box.append(el("p", {}, "assumed: " + one));
  for (const one of rests.defaulted) box.append(el("p", {}, "by default: " + one.sentence));
  const table = rows => {
    const made = el("table", {}, el("tr", {}, el("th", {}, "input"), el("th", {}, "value"), el("th", {}, "known by")));
    for (const input of rows) made.append(el("tr", {}, el("td", {}, input.name), el("td", {}, input.value),
      el("td", {title: input.source}, (marks[input.provenance] || "◌") + " " + input.provenance)));
    return made;
  };
  const few = 8;
  if (rests.inputs.length) box.append(table(rests.inputs.slice(0, few)));
  if (rests.inputs.length > few) box.append(el("details", {}, el("summary", {}, (rests.inputs.length - few) + " more"), table(rests.inputs.slice(few))));
  return box;
};
let command = null;
const makeCommand = () => {
  if (!command) return;
  const way = kept >= 0 ? answer.ways[kept] : null;
  command.textContent = answer.reproduce.command + (way && way.number !== null && answer.search ? " --way " + way.number : "");
};
const reproduceCard = () => {
  command = el("pre", {class: "command"});
  const told = el("output", {"aria-live": "polite", class: "muted"});
  const copy = el("button", {type: "button"}, "Copy command");
  copy.addEventListener("click", () => {
    const range = document.createRange();
    range.selectNodeContents(command);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    const done = navigator.clipboard ? navigator.clipboard.writeText(command.textContent) : Promise.reject(new Error("none"));
    done.then(() => { told.textContent = " copied"; }, () => { told.textContent = " selected: Ctrl+C copies it"; });
  });
  makeCommand();
  return card("Reproduce", command, copy, told, el("p", {class: "muted"}, "spillway " + answer.reproduce.version + " (" + answer.reproduce.commit + ")"
    + (/^0*$/.test(answer.reproduce.fingerprint) ? "" : ", fingerprint " + answer.reproduce.fingerprint)));
};
let ownersBox = null, tensorsBox = null;
const squarify = (items, x, y, w, h, place) => {
  let rest = items.filter(item => item.value > 0), total = rest.reduce((sum, item) => sum + item.value, 0);
  while (rest.length && w > 0 && h > 0) {
    const side = Math.min(w, h), scale = w * h / total;
    let row = [], sum = 0, best = Infinity;
    for (const item of rest) {
      const next = sum + item.value, most = Math.max(...row.map(one => one.value), item.value), least = Math.min(...row.map(one => one.value), item.value);
      const thick = next * scale / side, worst = Math.max(most * scale / thick / thick, thick * thick / (least * scale));
      if (row.length && worst > best) break;
      row.push(item);
      sum = next;
      best = worst;
    }
    const thick = sum * scale / side;
    let along = 0;
    for (const item of row) {
      const length = item.value / sum * side;
      if (w >= h) place(item, x, y + along, thick, length); else place(item, x + along, y, length, thick);
      along += length;
    }
    if (w >= h) { x += thick; w -= thick; } else { y += thick; h -= thick; }
    rest = rest.slice(row.length);
    total -= sum;
  }
};
const makeTensors = () => {
  const s = answer.stages[stage];
  if (ownersBox) {
    const table = el("table", {}, el("tr", {}, el("th", {}, "holds"), el("th", {class: "n"}, unit[0])));
    s.owners.forEach((owner, k) => s.at_peak_bytes[k] / unit[1] >= 0.0005 ? table.append(el("tr", {}, el("td", {}, owner), el("td", {class: "n"}, inUnit(s.at_peak_bytes[k])))) : null);
    table.append(el("tr", {}, el("td", {}, "together"), el("td", {class: "n"}, inUnit(s.at_peak_bytes.reduce((a, b) => a + b, 0)))));
    ownersBox.replaceChildren(el("h3", {}, "At the peak, by owner" + (answer.stages.length > 1 ? ", " + s.name : "")), table);
  }
  if (!tensorsBox) return;
  const snapshot = s.tensors.some(tensor => tensor.frames.length);
  const map = el("div", {class: "treemap", "aria-hidden": "true"});
  tensorsBox.replaceChildren(el("h2", {}, snapshot ? "Who holds the memory " + answer.held : "The largest tensors " + answer.held +
    (answer.stages.length > 1 ? ", " + s.name : "")), map);
  const table = el("table", {}, el("tr", {}, el("th", {}, snapshot ? "asked for by" : "tensor"), el("th", {class: snapshot ? "n" : ""}, snapshot ? "blocks" : "owner"),
    el("th", {}, snapshot ? "called from" : "layer"), el("th", {class: "n"}, "size")));
  // Tensors that differ in nothing that is told are one row.
  const alike = new Map();
  for (const tensor of s.tensors) {
    const key = snapshot ? alike.size : [tensor.name, tensor.owner, tensor.layer, tensor.bytes].join("\n");
    alike.set(key, [...(alike.get(key) || []), tensor]);
  }
  for (const [tensor, ...others] of alike.values())
    table.append(el("tr", {class: "tensor"}, el("td", {class: snapshot ? "mono holder" : "mono"}, tensor.name,
      others.length ? " (" + (others.length + 1) + " alike, each)" : ""), el("td", {class: snapshot ? "n" : ""}, snapshot ? String(tensor.blocks) : tensor.owner),
      el("td", {class: snapshot ? "mono" : ""}, snapshot ? tensor.frames.slice(0, 6).join(" ← ") : tensor.layer), el("td", {class: "n"}, size(tensor.bytes))));
  tensorsBox.append(table);
  const shownBytes = new Map();
  for (const tensor of s.tensors) shownBytes.set(tensor.owner, (shownBytes.get(tensor.owner) || 0) + tensor.bytes);
  const items = s.tensors.map(tensor => ({name: tensor.name, owner: tensor.owner, value: tensor.bytes}));
  if (!snapshot) s.owners.forEach((owner, k) => {
    const rest = s.at_peak_bytes[k] - (shownBytes.get(owner) || 0);
    if (rest > 0) items.push({name: "other " + owner, owner, value: rest});
  });
  items.sort((a, b) => b.value - a.value);
  const w = map.clientWidth || 800, h = 228;
  squarify(items, 0, 0, w, h, (item, x, y, iw, ih) => {
    const tile = el("div", {class: "f-" + colorOf(item.owner), title: item.name + ": " + size(item.value)}, iw > 46 && ih > 16 ? item.name + " " + size(item.value) : "");
    tile.style.left = x / w * 100 + "%";  // of whatever width it is printed at
    tile.style.top = y + "px";
    tile.style.width = iw / w * 100 + "%";
    tile.style.height = Math.max(1, ih) + "px";
    map.append(tile);
  });
};
const makeCards = () => {
  const cards = $("cards"), binds = bindsCard(), facts = factsCard(), rests = restsCard(), again = reproduceCard();
  ownersBox = el("div");
  if (answer.stages.length && !timesAlone) again.append(ownersBox);
  const side = answer.ways.length ? cards : $("ways");
  for (const one of [binds, facts, side === cards ? rests : null, again]) if (one) side.append(one);
  if (side !== cards && rests) { rests.classList.add("wide"); cards.append(rests); }
  const work = workCard();
  if (work) cards.append(work);
  if (answer.stages.some(s => s.tensors.length)) {
    tensorsBox = el("section", {class: "card wide", "aria-label": "Tensors"});
    cards.append(tensorsBox);
  }
};

// ---- find, theme, print, link ----
const find = () => {
  const words = $("find").value.trim().toLowerCase();
  let hits = 0, framed = null;
  rows.forEach((row, i) => {
    const hit = !words || row.text.includes(words);
    row.button.classList.toggle("gone", !hit);
    row.box.classList.toggle("gone", !hit || i !== kept);
    if (hit && words) ++hits;
  });
  for (const row of document.querySelectorAll("tr.tensor")) {
    const hit = !words || row.textContent.toLowerCase().includes(words);
    row.classList.toggle("gone", !hit);
    row.classList.toggle("found", Boolean(words) && hit && !framed);
    if (words && hit) { ++hits; framed = framed || row; }
  }
  $("hits").textContent = words ? hits + (hits === 1 ? " hit" : " hits") : "";
};
const setTheme = name => {
  document.documentElement.dataset.theme = name;
  $("theme").textContent = name === "dark" ? "Light" : "Dark";
  readTokens();
  draw();
};
let ready = false;
const remember = () => {
  if (!ready) return;
  const parts = [];
  if (kept >= 0) parts.push("way=" + (kept + 1));
  if (answer.stages.length > 1) parts.push("stage=" + stage);
  if (chosenTheme) parts.push("theme=" + chosenTheme);
  try { history.replaceState(null, "", "#" + parts.join("&")); } catch (error) { /* a page without an address */ }
};
const asked0 = new URLSearchParams(location.hash.slice(1));
let chosenTheme = ["dark", "light"].includes(asked0.get("theme")) ? asked0.get("theme") : "";
const dark = matchMedia("(prefers-color-scheme: dark)");
const place = () => {
  const plot = $("plot"), top = plot.getBoundingClientRect().top + scrollY;
  plot.style.height = printing ? "" : timesAlone ? lanesOf(answer.stages[0]).length * (laneHeight + 4) + 60 + "px" : Math.max(300, Math.min(720, innerHeight - top - 36)) + "px";
  draw();
};

readTokens();
makeWays();
if (!answer.ways.length) $("ways").classList.add("side");
makeCards();
if (answer.stages.length) {
  makeStages();
  bindPlot();
  const wanted = Number(asked0.get("stage"));
  choose(asked0.has("stage") && wanted >= 0 && wanted < answer.stages.length ? wanted : stage);
} else {
  $("picture").classList.add("gone");
}
tellPreview();
setTheme(chosenTheme || (dark.matches ? "dark" : "light"));
dark.addEventListener("change", () => { if (!chosenTheme) setTheme(dark.matches ? "dark" : "light"); });
const wantedWay = Number(asked0.get("way"));
if (wantedWay >= 1 && wantedWay <= answer.ways.length) keep(wantedWay - 1);
$("theme").addEventListener("click", () => {
  chosenTheme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  setTheme(chosenTheme);
  remember();
});
$("print").addEventListener("click", () => window.print());
$("find").addEventListener("input", find);
$("find").addEventListener("keydown", event => {
  if (event.key === "Escape") { $("find").value = ""; find(); }
  if (event.key === "Enter") { const hit = document.querySelector("tr.found") || document.querySelector(".way:not(.gone)"); if (hit) hit.scrollIntoView({block: "center"}); }
});
document.addEventListener("keydown", event => {
  if (event.key === "/" && document.activeElement !== $("find")) { event.preventDefault(); $("find").focus(); }
});
let before = "";
window.addEventListener("beforeprint", () => {
  before = document.documentElement.dataset.theme;
  printing = true;
  document.documentElement.dataset.theme = "light";
  readTokens();
  $("plot").style.height = "";
  if (!answer.stages.length) return;
  paint();
  // A canvas may be printed empty; an image of it isn't.
  $("plot").append(el("img", {id: "still", alt: $("base").getAttribute("aria-label"), src: $("base").toDataURL()}));
});
window.addEventListener("afterprint", () => {
  printing = false;
  if ($("still")) $("still").remove();
  setTheme(before);
  place();
});
window.addEventListener("resize", () => { place(); if (answer.stages.length) makeTensors(); });
place();
ready = true;
document.documentElement.dataset.ready = "yes";
})();
