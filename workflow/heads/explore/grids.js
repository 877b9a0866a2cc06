// The grids of heads: a table for each kind of attention, a button for each head.

const FUNCTION_COLOURS = {
  positional: "#0072B2", positional_and_syntactic: "#56B4E9", syntactic: "#009E73", rare: "#E69F00", alignment: "#CC79A7", other: "#8a8a8a", "": "var(--faint)",
};
const FUNCTION_NAMES = {
  positional: "positional", positional_and_syntactic: "positional and syntactic", syntactic: "syntactic", rare: "rare words",
  alignment: "aligns words", other: "none of these", "": "no role tried",
};
const SIGNIFICANT = 0.01;

/** Whether smaller values of a measure are better; its smallest value is then the brightest and ranks first. */
const isBetterSmall = (key) => key === "aer" || isBudget(key);

/** The scale of a measure, mapping values to [0, 1]; lambdas and numbers of heads by rank, as they rise by factors. */
function scaleOf(key) {
  const values = experiment().table.map((row) => row.values[key]).filter((value) => value !== null && value !== undefined);
  if (isSurvival(key)) {
    const steps = [...new Set(values)].sort((a, b) => (isBudget(key) ? b - a : a - b));
    return { low: steps[0], high: steps[steps.length - 1], at: (value) => (steps.length > 1 ? steps.indexOf(value) / (steps.length - 1) : 1) };
  }
  const low = Math.min(...values), high = Math.max(...values);
  const at = (value) => (high > low ? (value - low) / (high - low) : 0.5);
  return isBetterSmall(key) ? { low: high, high: low, at: (value) => 1 - at(value) } : { low, high, at };
}

/**
 * Tables of heads in `place`, made once for an experiment: cell(row) returns {fill, ink, text, name, lost, marked}.
 * choose: called when a head is clicked; without it, the squares are not buttons.
 */
function gridsInto(place, kinds, cell, choose) {
  const key = `${experiment().name} ${kinds}`;
  if (place.dataset.shown !== key) {
    place.replaceChildren(...kinds.map((kind) => gridOf(kind, choose)));
    place.dataset.shown = key;
  }
  const chosenId = headId(), others = beside();
  for (const square of place.querySelectorAll("[data-head]")) {
    const row = rowOf(square.dataset.head), look = cell(row);
    square.style.background = look.fill;
    square.style.color = look.ink;
    square.textContent = look.text || "";
    square.setAttribute("aria-label", `${headName(row)}: ${look.name}`);
    square.classList.toggle("lost", Boolean(look.lost));
    square.classList.toggle("marked", Boolean(look.marked));
    square.dataset.value = look.value ?? "";
    if (!choose) square.title = `${headName(row)}: ${look.name}`;
    else {
      const chosen = square.dataset.head === chosenId;
      square.setAttribute("aria-pressed", chosen);
      square.classList.toggle("beside", others.includes(square.dataset.head));
      square.tabIndex = chosen ? 0 : -1;
    }
  }
}

function gridOf(kind, choose) {
  const { heads } = experiment(), layers = depthOf(kind);
  const square = (layer, head) => {
    const id = `${kind}.${layer}.${head}`;
    if (!choose) return make("span", { class: "square", role: "img", "data-head": id });
    return make("button", { type: "button", class: "square", "data-head": id, "data-focus": `head ${id}`, onclick: (event) => choose(id, event) });
  };
  const row = (layer) => make("tr", {}, make("th", { scope: "row" }, layer + 1), ...range(heads).map((head) => make("td", {}, square(layer, head))));
  const names = make("tr", {}, make("td"), ...range(heads).map((head) => make("th", { scope: "col" }, head + 1)));
  return make("table", { class: "grid", "data-kind": kind, style: { "--heads": heads } }, make("caption", {}, KINDS[kind]), make("thead", {}, names), make("tbody", {}, ...range(layers).map(row)));
}

/** Contents of a square in the first part: the measure, the head's role, and whether the chosen model has the head. */
const measuredCell = (key, scale, one) => (row) => {
  const live = isLive(one, row);
  const marked = row.p_value !== null && row.p_value < SIGNIFICANT && row.score_change < 0;
  const role = roleOf(row);
  const notes = [role ? `role ${role}` : "", marked ? `${scoreName()} falls without it` : "", live ? "" : "not in the chosen model"];
  const look = { text: role, marked, lost: !live };
  if (key === "function") {
    const name = FUNCTION_NAMES[row.function];
    return { ...look, fill: FUNCTION_COLOURS[row.function], ink: row.function ? "#000" : "var(--text)", value: row.function, name: [name, ...notes].filter(Boolean).join(", ") };
  }
  const value = row.values[key], known = value !== null && value !== undefined;
  const share = known ? scale.at(value) : 0;
  const name = [`${measureName(key)} ${cellText(key, value)}`, ...notes].filter(Boolean).join(", ");
  return { ...look, fill: known ? colour(share) : "var(--faint)", ink: known ? inkOn(share) : "var(--text)", value: known ? value : "", name };
};

/** The role of a head in a word or two, "" if it has none. */
const roleOf = (row) => (row.alignment?.aligns ? "align" : row.label);

const measureName = (key) => (key === "function" ? "role" : experiment().measures.find((one) => one.key === key)?.name);

/** The heads kept beside and the chosen one, as written in the address. */
const withHead = () => [...new Set([...keptBeside(), headId()])].join(",");

function chooseHead(id, event) {
  hideTip();
  if (event && (event.shiftKey || event.ctrlKey || event.metaKey)) change({ beside: withHead(), head: id });
  else change({ head: id });
}

/** Move to the next head or layer by arrow keys; past the end of a grid, to the next kind of attention. */
function walk(event) {
  const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
  if (!step || ["SELECT", "INPUT"].includes(event.target.tagName)) return;
  event.preventDefault();
  const { heads } = experiment(), kinds = kindsOf(), row = rowOf(headId());
  let kind = kinds.indexOf(row.attention), layer = row.layer + step[0], head = row.head + step[1];
  if (head >= heads || head < 0) kind += head < 0 ? -1 : 1;
  kind = (kind + kinds.length) % kinds.length;
  const layers = depthOf(kinds[kind]);
  const id = `${kinds[kind]}.${(layer + layers) % layers}.${(head + heads) % heads}`;
  change({ head: id });
  if (event.target.closest("#grids")) byId("grids").querySelector(`[data-head="${id}"]`).focus();
}

function renderGrids() {
  const key = measureKey(), one = experiment();
  fillSelect(byId("measure"), [...(one.table.some((row) => row.function) ? [["function", "role"]] : []), ...one.measures.map((each) => [each.key, each.name])], key);
  fillSelect(byId("model"), one.models.filter((each) => each.kind !== "scratch" || each === model()).map((each) => [each.run, modelName(each)]), model().run);
  gridsInto(byId("grids"), kindsOf(), measuredCell(key, scaleOf(key), model()), chooseHead);
  const notes = [`● ${scoreName()} falls without it (p < 0.01)`, ...(one.table.some((row) => row.label && !row.roles.some(isCross)) ? ["a word on a square: its role as in the paper’s Figs 1 and 2, such as o→v, object to verb"] : [])];
  if (one.table.some((row) => row.label && row.roles.some(isCross))) notes.push("now, last, next: looks at the source of the target token being written, written last, written next");
  if (one.table.some((row) => row.alignment?.aligns)) notes.push("align: looks at the word to be translated");
  if (model().live.includes("0")) notes.push("hatched: not in the chosen model");
  if (model().units) notes.push(model().units);
  byId("marks").textContent = notes.join("; ") + ".";
  if (key === "function") {
    const names = Object.keys(FUNCTION_NAMES).filter((name) => one.table.some((row) => row.function === name));
    byId("legend").replaceChildren(...names.map((name) => make("span", { class: "note" }, make("span", { class: "dot", style: { background: FUNCTION_COLOURS[name] } }), FUNCTION_NAMES[name])));
  } else {
    const scale = scaleOf(key), ends = isSurvival(key) ? ["goes first", "stays longest"] : [cellText(key, scale.low), cellText(key, scale.high)];
    byId("legend").replaceChildren(...legend("", ...ends, one.measures.find((each) => each.key === key).what));
  }
}

const isBudget = (key) => key.startsWith("gate_fewest_heads"), isSurvival = (key) => isBudget(key) || key.startsWith("gate_last_lambda");

/** A value of a measure as text; penalties and numbers of heads are shown as they were asked for. */
const cellText = (key, value) => (isSurvival(key) ? String(value ?? "–") : show(value));

/** A model's name, number of heads and score. */
const modelName = (one) => `${one.name}${one.scope === "enc_self" ? ", encoder only" : ""}: ${[...one.live].filter((digit) => digit === "1").length} heads, ${scored(one.score)}`;
