// The hard-concrete distribution of a gate (Louizos et al. 2018), with sliders for its parameters.

const sigmoid = (value) => 1 / (1 + Math.exp(-value));
const logit = (share) => Math.log(share) - Math.log(1 - share);
const EDGE = 1e-6, DRAWS = 200, STEPS = 240;

/** P(gate = 0), P(gate = 1) and P(gate > 0). */
function masses(shape) {
  const open = sigmoid(shape.logalpha - shape.temperature * Math.log(-shape.low / shape.high));
  return { zero: 1 - open, one: sigmoid(shape.logalpha - shape.temperature * Math.log((1 - shape.low) / (shape.high - 1))), open };
}

/** P(gate > 0) of a gate for which 1 and 0 are equally likely; gates that end below it are closed. */
function openAtEven({ temperature, low, high }) {
  return sigmoid(temperature * (Math.log((1 - low) / (high - 1)) - Math.log(-low / high)) / 2);
}

/** The density of a gate strictly between 0 and 1. */
function density(gate, shape) {
  const width = shape.high - shape.low, share = (gate - shape.low) / width;
  const left = sigmoid(shape.temperature * logit(share) - shape.logalpha);
  return shape.temperature * left * (1 - left) / (share * (1 - share) * width);
}

/** The gate for one draw of uniform noise. */
function gateFor(noise, shape) {
  const kept = Math.min(Math.max(noise, EDGE), 1 - EDGE);
  const stretched = sigmoid((logit(kept) + shape.logalpha) / shape.temperature) * (shape.high - shape.low) + shape.low;
  return Math.min(Math.max(stretched, 0), 1);
}

const CONTROLS = [
  ["logalpha", "log α", -8, 8, 0.05], ["temperature", "temperature β", 0.05, 2, 0.01], ["low", "stretched from γ", -1, -0.01, 0.01], ["high", "to ζ", 1.01, 2, 0.01],
];

/** The parameters shown: the chosen ones, or else those of the trained gates, with log alpha 0. */
function shapeShown() {
  const given = experiment().concrete;
  const own = (name, otherwise) => (Number.isFinite(wanted(name)) && wanted(name) !== null ? wanted(name) : otherwise);
  return { logalpha: own("logalpha", 0), temperature: own("temperature", given.temperature), low: own("low", given.low), high: own("high", given.high) };
}

let noise = range(DRAWS).map((at) => ((at + 1) * 0.6180339887) % 1);

function renderConcrete() {
  const shape = shapeShown(), place = byId("concrete-controls");
  if (!place.children.length) {
    place.append(...CONTROLS.map(([name, label, min, max, step]) => make("label", { class: "grow" }, `${label} `, make("input", { type: "range", min, max, step, "data-shape": name, "data-focus": `shape ${name}`, oninput: (event) => change({ [name]: event.target.value }) }), make("output", { "data-shown": name }))));
    place.append(make("label", {}, "Heads trained with ", make("select", { id: "trained", onchange: (event) => change({ trained: event.target.value }) })));
    place.append(make("button", { type: "button", onclick: () => { noise = noise.map(Math.random); renderConcrete(); } }, "Draw again"));
    place.append(make("button", { type: "button", onclick: () => change({ logalpha: null, temperature: null, low: null, high: null }) }, "As trained"));
  }
  for (const [name] of CONTROLS) {
    place.querySelector(`[data-shape=${name}]`).value = shape[name];
    place.querySelector(`[data-shown=${name}]`).textContent = show(shape[name], 2);
  }
  const trained = trainedShown();
  fillSelect(byId("trained"), experiment().concrete.trained.map((one) => [one.run, `${one.name}${one.scope === "enc_self" ? ", encoder only" : ""}`]), trained ? trained.run : "");
  byId("concrete-drawing").replaceChildren(densityDrawing(shape), endsDrawing(shape, trained));
  const { zero, one, open } = masses(shape);
  const line = (name, value, id) => [make("dt", {}, name), make("dd", { "data-mass": id }, show(value, 4))];
  const numbers = make("dl", { class: "inline" }, ...line("P(gate = 0)", zero, "zero"), ...line("P(0 < gate < 1)", 1 - zero - one, "between"), ...line("P(gate = 1)", one, "one"), ...line("P(gate > 0), what costs λ", open, "open"));
  const formula = make("div", { class: "formula" },
    make("p", {}, "u uniform in (0, 1);  s = σ((log u − log(1 − u) + log α) / β);  gate = min(1, max(0, s (ζ − γ) + γ))"),
    make("p", {}, "P(gate > 0) = σ(log α − β log(−γ / ζ));  P(gate = 1) = σ(log α − β log((1 − γ) / (ζ − 1)))"));
  byId("concrete-text").replaceChildren(numbers, make("p", {}, endSentence(zero > one, trained)), make("p", { id: "trained-text" }, trained ? trainedSentence(trained) : ""), formula);
}

/** What happens to a gate after training: it is open or closed, or the largest gates stay if a number was asked for. */
function endSentence(closed, trained) {
  if (trained?.budgets.length) return `As many gates stay open as heads were asked for, ${trained.name}: those of the largest log α${trained.budgets.length > 1 ? " of each kind" : ""}.`;
  return closed ? "After training this gate would be closed: 0 is likelier than 1." : "After training this gate would be open: 1 is likelier than 0.";
}

/** The number of trained gates that are closed, with the distribution shown. */
function closedOf(trained, shape) {
  if (trained.budgets.length) return trained.log_alpha.length - trained.budgets.reduce((sum, budget) => sum + budget, 0);
  return trained.log_alpha.map((value) => masses({ ...shape, logalpha: value })).filter(({ zero, one }) => zero > one).length;
}

/** A sentence on where the chosen head's gate ended up. */
function trainedSentence(trained) {
  const row = rowOf(headId()), value = trained.log_alpha[gatedRows(trained).indexOf(row)];
  const chosen = value === undefined ? "has no gate" : `ended at log α ${show(value, 2)}, the thick stroke`;
  return `A stroke above the three areas is a head’s gate as ${trained.name} left it; choose one to take its log α. ${titleOf(row)} ${chosen}.`;
}

const trainedShown = () => experiment().concrete.trained.find((one) => one.run === state.trained) || experiment().concrete.trained.find((one) => one.run === closingRun()?.run) || experiment().concrete.trained[0];

/** Draw the density between two bars for the masses at 0 and 1, with sampled gates below. */
function densityDrawing(shape) {
  const width = 420, height = 230, left = 44, right = 376, base = 180, top = 24;
  const { zero, one } = masses(shape), picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Mass ${show(zero, 2)} at 0, ${show(one, 2)} at 1, density between` });
  const gates = range(STEPS).map((at) => (at + 0.5) / STEPS), values = gates.map((gate) => density(gate, shape));
  const tallest = Math.max(2, Math.min(6, ...[Math.max(...values)])), x = (gate) => left + (right - left) * gate;
  const path = gates.map((gate, at) => `${at ? "L" : "M"} ${x(gate).toFixed(1)} ${(base - (base - top) * Math.min(values[at], tallest) / tallest).toFixed(1)}`).join(" ");
  picture.append(draw("path", { d: `${path} L ${right} ${base} L ${left} ${base} Z`, class: "density" }));
  for (const [place, mass, name] of [[left - 26, zero, "0"], [right + 6, one, "1"]]) {
    const tall = (base - top) * mass;
    picture.append(draw("rect", { x: place, y: base - tall, width: 20, height: tall, class: "mass" }), draw("text", { x: place + 10, y: base - tall - 5, "text-anchor": "middle", class: "name" }, show(mass, 2)), draw("text", { x: place + 10, y: base + 15, "text-anchor": "middle", class: "name" }, `= ${name}`));
  }
  picture.append(draw("line", { x1: left - 30, x2: right + 30, y1: base, y2: base, class: "axis" }), draw("text", { x: (left + right) / 2, y: base + 15, "text-anchor": "middle", class: "name" }, "gate"));
  noise.forEach((one_, at) => picture.append(draw("circle", { cx: x(gateFor(one_, shape)), cy: base + 24 + (at * 5 % 8) * 3, r: 1.6, class: "drawn" })));
  return picture;
}

/** Draw the three masses over log alpha, with a mark where each trained gate ended. */
function endsDrawing(shape, trained) {
  const width = 420, height = 230, left = 40, right = 408, base = 180, top = 40;
  const marks = trained ? trained.log_alpha : [];
  const low = Math.min(-8, ...marks), high = Math.max(8, ...marks), x = (value) => left + (right - left) * (value - low) / (high - low);
  const y = (share) => base - (base - top) * share;
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Where ${marks.length} trained gates ended on the axis of log alpha` });
  const steps = range(STEPS + 1).map((at) => low + (high - low) * at / STEPS), found = steps.map((logalpha) => masses({ ...shape, logalpha }));
  const area = (above, below, name) => draw("polygon", { points: [...steps.map((value, at) => `${x(value).toFixed(1)},${y(above(found[at])).toFixed(1)}`), ...steps.map((value, at) => `${x(value).toFixed(1)},${y(below(found[at])).toFixed(1)}`).reverse()].join(" "), class: name });
  picture.append(area((m) => m.zero, () => 0, "closed"), area((m) => 1 - m.one, (m) => m.zero, "between"), area(() => 1, (m) => 1 - m.one, "open"));
  const rows = trained ? gatedRows(trained) : [];
  marks.forEach((value, at) => {
    const id = idOf(rows[at]), tall = id === headId() ? 26 : 22;
    const take = () => change({ head: id, logalpha: value.toFixed(2) });
    picture.append(draw("line", { x1: x(value), x2: x(value), y1: top - tall, y2: top - 4, class: `trained${id === headId() ? " chosen" : ""}`, "data-logalpha": value, "data-trained": id, onclick: take }, draw("title", {}, `${headName(rows[at])}: log α ${show(value, 2)}`)));
  });
  picture.append(draw("line", { x1: x(shape.logalpha), x2: x(shape.logalpha), y1: top - 4, y2: base + 6, class: "here" }));
  for (const value of [low, 0, high]) picture.append(draw("text", { x: x(value), y: base + 18, "text-anchor": "middle", class: "name" }, show(value, 1)));
  const names = [["closed", "gate = 0"], ["between", "between"], ["open", "gate = 1"]];
  names.forEach(([name, label], at) => picture.append(draw("rect", { x: left + 95 * at, y: base + 30, width: 12, height: 12, class: name }), draw("text", { x: left + 95 * at + 17, y: base + 40, class: "name" }, label)));
  picture.append(draw("text", { x: right, y: base + 40, "text-anchor": "end", class: "name" }, "log α"), draw("text", { x: left, y: 12, class: "name" }, `${marks.length} trained gates, ${trained ? closedOf(trained, shape) : 0} closed`));
  return picture;
}
