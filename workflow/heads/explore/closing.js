// Gates closing during fine-tuning, and the curve of the score against heads left.

const SERIES = {
  unpruned: ["#000000", "star"], control: ["#56B4E9", "diamond"], pruned: ["#0072B2", "circle"], "from scratch": ["#D55E00", "square"],
  "same heads, trained on": ["#009E73", "down"], "other choices, trained on": ["#CC79A7", "up"], "random, trained on": ["#E69F00", "cross"],
  "other choices, masked": ["#CC79A7", "ring"], "random, masked": ["#E69F00", "box"],
};
const SQUEEZED_BELOW = 0.25, SQUEEZED = 70;

/** The heads with gates in a run, in the order of its numbers; heads that the model had lost before have none. */
const gatedRows = (run) => experiment().table.filter((row) => SCOPES[run.scope].includes(row.attention) && isLive(experiment().models[0], row));

/** P(open) of every head in one record of a run, by head id. */
function gatesAt(run, record) {
  const rows = gatedRows(run);
  const bytes = bytesOf(run.p_open);
  return new Map(rows.map((row, at) => [idOf(row), bytes[record * rows.length + at] / FULL]));
}

/** Ids of the heads that pruning would keep, given how far each is open: those above a bound, or the number asked for. */
function staying(run, open, even) {
  const rows = gatedRows(run), size = (row) => open.get(idOf(row)), kinds = SCOPES[run.scope];
  if (!run.budgets.length) return new Set(rows.filter((row) => size(row) >= even).map(idOf));
  const groups = run.budgets.length > 1 ? kinds.map((kind) => [kind]) : [kinds];
  const largest = (group, at) => rows.filter((row) => group.includes(row.attention)).sort((a, b) => size(b) - size(a)).slice(0, run.budgets[at]);
  return new Set(groups.flatMap(largest).map(idOf));
}

const recordOf = (run) => {
  const at = state.update === undefined ? run.updates.length - 1 : run.updates.filter((update) => update <= Number(state.update)).length - 1;
  return Math.max(at, 0);
};

function renderClosing() {
  const runs = experiment().closing;
  for (const id of ["closing-grids", "closing-legend"]) byId(id).hidden = !runs.length;
  if (runs.length) {
    const run = closingRun(), record = recordOf(run), open = gatesAt(run, record), stay = staying(run, open, openAtEven(experiment().concrete));
    const title = (one) => `${one.name}${one.name === "λ 0" ? " (control)" : ""}${one.scope === "enc_self" ? ", encoder only" : ""}`;
    fillSelect(byId("closing-run"), runs.map((one) => [one.run, title(one)]), run.run);
    Object.assign(byId("update"), { max: run.updates.length - 1, value: record });
    byId("update").setAttribute("aria-valuetext", `update ${run.updates[record]}`);
    const total = [...open.values()].reduce((sum, share) => sum + share, 0);
    byId("update-text").textContent = `update ${run.updates[record]}: ${show(total, 1)} of ${open.size} heads expected open`;
    const cell = (row) => {
      const share = open.get(idOf(row));
      if (share === undefined) return { fill: "var(--faint)", ink: "var(--text)", name: "the model had lost it before", lost: true };
      return { fill: colour(share), ink: inkOn(share), value: share, name: `open with probability ${show(share, 2)}`, lost: !stay.has(idOf(row)) };
    };
    gridsInto(byId("closing-grids"), kindsOf(run.scope), cell, null);
    const why = run.budgets.length ? `not among the ${run.name} that are likeliest open` : "0 is likelier than 1";
    byId("closing-legend").replaceChildren(...legend("P(gate is open)", "0", "1", `hatched: ${why}, so it would be pruned now`));
  }
  renderCurve();
  renderTranslations();
}

let playing = null;

/** Run the slider from its position, or from the start if it is at the end; stop if it is running. */
function play() {
  const stop = () => { clearInterval(playing); playing = null; byId("play").textContent = "Play"; };
  if (playing) return stop();
  const run = closingRun();
  if (recordOf(run) === run.updates.length - 1) change({ update: run.updates[0] });
  byId("play").textContent = "Stop";
  playing = setInterval(() => {
    const record = recordOf(run) + 1;
    if (record >= run.updates.length || run !== closingRun()) return stop();
    change({ update: run.updates[record] });
  }, 250);
}

const prunedOf = (run) => (run ? run.run.replace("gates/", "pruned/") : "");

/** The model marked on the curve: the chosen one, or else the one that the chosen gates left. */
const marked = () => (state.model ? model().run : prunedOf(closingRun()));

function mark(shape, x, y, size, fill) {
  const polygon = (points) => draw("polygon", { points: points.map(([dx, dy]) => `${x + dx * size},${y + dy * size}`).join(" "), fill });
  if (shape === "square") return polygon([[-1, -1], [1, -1], [1, 1], [-1, 1]]);
  if (shape === "diamond") return polygon([[0, -1.4], [1.4, 0], [0, 1.4], [-1.4, 0]]);
  if (shape === "up") return polygon([[0, -1.3], [1.2, 1], [-1.2, 1]]);
  if (shape === "down") return polygon([[0, 1.3], [1.2, -1], [-1.2, -1]]);
  if (shape === "star") return polygon(range(10).map((at) => [Math.sin(at * Math.PI / 5) * (at % 2 ? 0.7 : 1.7), -Math.cos(at * Math.PI / 5) * (at % 2 ? 0.7 : 1.7)]));
  if (shape === "box") return draw("rect", { x: x - size, y: y - size, width: 2 * size, height: 2 * size, fill: "none", stroke: fill, "stroke-width": 1.5 });
  if (shape === "cross") return draw("path", { d: `M ${x - size} ${y - size} l ${2 * size} ${2 * size} M ${x + size} ${y - size} l ${-2 * size} ${2 * size}`, stroke: fill, "stroke-width": 2.5, fill: "none" });
  return draw("circle", { cx: x, cy: y, r: size, fill: shape === "ring" ? "none" : fill, stroke: fill, "stroke-width": 1.5 });
}

/** Draw the points of the scope shown; the scale of scores is squeezed below a line, for models that are far worse. */
function renderCurve() {
  const run = closingRun(), scope = run ? run.scope : "all";
  const points = experiment().points.filter((point) => point.scope === scope || point.series === "unpruned");
  if (!points.length) return byId("curve").replaceChildren(make("p", {}, "No model was pruned."));
  const width = Math.max(330, Math.min(900, byId("curve").clientWidth || 900)), height = 340, left = 62, right = 14, top = 12, bottom = 44;
  const shown = points.filter((point) => !point.series.endsWith("masked"));
  const highest = Math.max(...points.map((point) => point.score)), lowest = Math.min(...shown.map((point) => point.score));
  const floor = Math.max(0, lowest - SQUEEZED_BELOW * (highest - lowest || 1));
  const most = Math.max(...points.map((point) => point.of));
  const x = (kept) => left + (width - left - right) * kept / most;
  const deepest = Math.min(floor, ...points.map((point) => point.score)), line = height - bottom - (deepest < floor ? SQUEEZED : 0);
  const y = (score) => (score < floor ? line + SQUEEZED * (floor - score) / (floor - deepest) : top + (line - top) * (highest - score) / (highest - floor || 1));
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `${scoreName()} against heads left` });
  for (const at of range(5)) {
    const kept = Math.round(most * at / 4), score = floor + (highest - floor) * at / 4;
    picture.append(draw("line", { x1: x(kept), x2: x(kept), y1: top, y2: height - bottom, class: "rule" }), draw("text", { x: x(kept), y: height - bottom + 16, "text-anchor": "middle", class: "name" }, kept));
    picture.append(draw("line", { x1: left, x2: width - right, y1: y(score), y2: y(score), class: "rule" }), draw("text", { x: left - 6, y: y(score) + 4, "text-anchor": "end", class: "name" }, show(score, 1)));
  }
  if (deepest < floor) picture.append(draw("rect", { x: left, y: line, width: width - left - right, height: SQUEEZED, class: "squeezed" }), draw("text", { x: left - 6, y: y(deepest) + 4, "text-anchor": "end", class: "name" }, show(deepest, 1)));
  picture.append(draw("text", { x: (left + width) / 2, y: height - 8, "text-anchor": "middle", class: "name" }, "heads left"), draw("text", { x: 12, y: height / 2, transform: `rotate(-90 12 ${height / 2})`, "text-anchor": "middle", class: "name" }, spaced(scoreName(), experiment().metric.unit && `(${experiment().metric.unit})`)));
  for (const series of ["pruned", "from scratch"]) {
    const joined = points.filter((point) => point.series === series).sort((a, b) => a.kept - b.kept);
    picture.append(draw("polyline", { points: joined.map((point) => `${x(point.kept)},${y(point.score)}`).join(" "), class: "curve", style: { stroke: SERIES[series][0] } }));
  }
  for (const point of points) picture.append(pointOf(point, x(point.kept), y(point.score)));
  const present = Object.keys(SERIES).filter((name) => points.some((point) => point.series === name));
  const key = (name) => make("span", { class: "note" }, draw("svg", { width: 16, height: 14, "aria-hidden": "true", class: "key" }, mark(SERIES[name][1], 8, 7, 4, seriesColour(name))), name === "unpruned" ? experiment().models[0].name : name);
  const notes = deepest < floor ? [make("span", { class: "note" }, `grey band: the scale is squeezed below ${show(floor, 1)}`)] : [];
  byId("curve").replaceChildren(picture, make("div", { class: "legend" }, ...present.map(key), ...notes));
}

const seriesColour = (name) => (name === "unpruned" ? "var(--text)" : SERIES[name][0]);

function pointOf(point, x, y) {
  const known = experiment().models.some((one) => one.run === point.run);
  const name = `${point.name}: ${point.kept} of ${point.of} heads, ${scored(point.score)}`;
  const choose = () => choosePoint(point, known);
  const press = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } };
  const chosen = point.run && point.run === marked();
  const group = draw("g", { class: `point${chosen ? " chosen" : ""}`, tabindex: 0, role: "button", "aria-label": name, "data-run": point.run, "data-series": point.series, "data-score": point.score, "data-kept": point.kept, "data-focus": `point ${point.name}`, onclick: choose, onkeydown: press, onpointerenter: () => showTip(group, name), onpointerleave: hideTip, onfocus: () => showTip(group, name), onblur: hideTip });
  group.append(draw("circle", { cx: x, cy: y, r: 13, class: "halo" }), mark(SERIES[point.series][1], x, y, 5, seriesColour(point.series)));
  return group;
}

/** Show the model of a point and the gates that led to it; for some choices only the score was kept. */
function choosePoint(point, known) {
  if (!known) {
    byId("translations").dataset.unknown = `${point.name}: of this model only its score is on this page.`;
    return renderTranslations();
  }
  byId("translations").dataset.unknown = "";
  const gates = experiment().closing.find((one) => one.run === point.run.replace("pruned/", "gates/"));
  change({ model: point.run, update: null, ...(gates ? { closing: gates.run } : {}) });
}

function renderTranslations() {
  const place = byId("translations"), number = sentenceNumber(), sentence = experiment().sentences[number];
  const shown = experiment().models.find((one) => one.run === marked()) || model();
  const parts = [make("p", { id: "marked-model" }, make("strong", {}, modelName(shown)), `, ${scoreName()} ${scoreChange(shown.score - experiment().score)} against the ${experiment().models[0].name} model.`)];
  if (place.dataset.unknown) parts.push(make("p", { class: "warning" }, place.dataset.unknown));
  const translated = [experiment().models[0], ...(shown === experiment().models[0] ? [] : [shown])];
  if (sentence) {
    const line = (name, text) => [make("dt", {}, name), make("dd", { lang: "und" }, text)];
    const texts = translated.map((one) => line(one.name, one.translations ? one.translations[number] : `no ${wording().answer} was kept of this model`));
    parts.push(make("dl", {}, ...line(`${wording().given} ${number + 1}`, textOf(sentence)), ...(sentence.wanted ? line("label in the corpus", sentence.wanted) : []), ...texts.flat()));
    if (translated.length > 1 && shown.translations) parts.push(make("p", { class: "note" }, shown.translations[number] === translated[0].translations[number] ? `Both give the same ${wording().answer}.` : `They differ on this ${wording().given}.`));
  }
  place.replaceChildren(...parts);
}
