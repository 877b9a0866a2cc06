// What is shown, and its address. Every choice is a word after the # of the address; what is not there is the default.

const DATA = JSON.parse(byId("data").textContent);
const KINDS = { enc_self: "encoder self-attention", dec_self: "decoder self-attention", dec_enc: "cross-attention" };
const SCOPES = { enc_self: ["enc_self"], all: Object.keys(KINDS) };
const NAMES = [
  "view", "experiment", "head", "beside", "measure", "model", "sentence", "unit", "drawing", "pin",
  "closing", "update", "logalpha", "temperature", "low", "high", "trained", "verdict",
];

/** Signs that a model reads with the text. */
const START = "⟨start⟩", END = "⟨end⟩", SEPARATOR = "⟨separator⟩";

/** What a model is given, what it makes of that, and the signs that stand among the words. */
const WORDS = {
  translation: { given: "sentence", answer: "translation", signs: [] },
  classification: { given: "example", answer: "label", signs: [START, SEPARATOR] },
  embedding: { given: "sentence", answer: "vector", signs: [START, SEPARATOR] },
};

let state = {};
const renderers = [];

/** The experiment that is shown. */
const experiment = () => DATA.experiments.find((one) => one.name === state.experiment) || DATA.experiments[0];

const wording = () => WORDS[experiment().task];

/** The name of what models are scored by, a score with it, and a difference of scores. */
const scoreName = () => experiment().metric.name;
const scored = (value) => spaced(scoreName(), show(value, 2), experiment().metric.unit);
const scoreChange = (value) => `${signed(value)}${experiment().metric.unit ? " points" : ""}`;

/** What is found once for each experiment. */
function remembered(find) {
  const known = new Map();
  return () => {
    const one = experiment();
    if (!known.has(one)) known.set(one, find(one));
    return known.get(one);
  };
}

/** `enc_self.2.5` of a row of the table, layers and heads from 0 as in every file. */
const idOf = (row) => `${row.attention}.${row.layer}.${row.head}`;

/** The row of a head by such a word; undefined for another. */
const rowOf = (id) => rowsById().get(id);
const rowsById = remembered((one) => new Map(one.table.map((row) => [idOf(row), row])));

/** The kinds of attention that the models have, of all or of those that have gates in a scope. */
const kindsOf = (scope = "all") => SCOPES[scope].filter((kind) => experiment().table.some((row) => row.attention === kind));

/** How many layers have this kind of attention; an imported model's encoder may be deeper than its decoder. */
const depthOf = (kind) => Math.max(...experiment().table.filter((row) => row.attention === kind).map((row) => row.layer)) + 1;

/** A head as people count: layers and heads from 1. */
const headName = (row) => `${KINDS[row.attention]}, layer ${row.layer + 1}, head ${row.head + 1}`;

/** The model that is chosen; the unpruned one by default. */
const model = () => experiment().models.find((one) => one.run === state.model) || experiment().models[0];

/** Whether a model still has a head. */
const isLive = (one, row) => one.live[experiment().table.indexOf(row)] === "1";

const closingRun = () => experiment().closing.find((one) => one.run === state.closing) || defaultClosing();
const wanted = (name) => (state[name] === undefined ? null : Number(state[name]));

/** The run with a penalty that closes about half of the heads, of all kinds of attention where there is one. */
const defaultClosing = remembered((one) => {
  const distance = (run) => {
    const found = one.models.find((each) => each.run === run.run.replace("gates", "pruned"));
    return found ? (run.scope === "all" ? 0 : 1) + Math.abs([...found.live].filter((digit) => digit === "1").length / found.live.length - 0.5) : 2;
  };
  return one.closing.length ? one.closing.reduce((best, run) => (distance(run) < distance(best) ? run : best)) : undefined;
});

/** The head that tells most: with a role, with the largest gain on a relation; else the one that costs most BLEU. */
const defaultHead = remembered((one) => {
  const worth = (row) => (row.label ? 1000 : 0) + 100 * (row.values.syntactic_gain ?? -1) + (row.values.score_lost ?? 0) / 1000;
  return idOf(one.table.reduce((best, row) => (worth(row) > worth(best) ? row : best)));
});

const headId = () => (state.head && rowOf(state.head) ? state.head : defaultHead());
const keptBeside = () => (state.beside ? state.beside.split(",").filter(rowOf) : []);
const beside = () => keptBeside().filter((id) => id !== headId());

/** The first sentence with most arcs of the relations that the default head finds. */
const defaultSentence = remembered(({ sentences }) => {
  const names = rowOf(defaultHead()).roles.filter((role) => role.holds && role.role === "syntactic").map((role) => role.name.split(" ")[0]);
  const arcs = sentences.map((one) => one.relations.filter((relation) => names.includes(relation.split(":")[0])).length);
  return Math.max(arcs.indexOf(Math.max(...arcs)), 0);
});

const sentenceNumber = () => (state.sentence !== undefined && experiment().sentences[state.sentence] ? Number(state.sentence) : defaultSentence());

function defaultMeasure() {
  const keys = experiment().measures.map((one) => one.key);
  return keys.find((key) => ["gate_last_lambda_all", "gate_fewest_heads_all"].includes(key)) || keys[0] || "function";
}

const measureKey = () => (["function", ...experiment().measures.map((one) => one.key)].includes(state.measure) ? state.measure : defaultMeasure());

/** The words after the # as state; unknown names are passed over. */
function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  state = Object.fromEntries(NAMES.filter((name) => words.has(name)).map((name) => [name, words.get(name)]));
}

/** The address of a state. */
function addressOf(one) {
  const words = NAMES.filter((name) => one[name] !== undefined && one[name] !== null && one[name] !== "");
  return "#" + words.map((name) => `${name}=${encodeURIComponent(one[name]).replace(/%2C/g, ",").replace(/%2F/g, "/")}`).join("&");
}

/** Change what is shown; null takes a choice back. */
function change(changes) {
  state = Object.fromEntries(Object.entries({ ...state, ...changes }).filter(([, value]) => value !== null));
  history.replaceState(null, "", addressOf(state));
  render();
}

/** Draw everything anew; what had the focus keeps it. */
function render() {
  const focused = document.activeElement?.dataset?.focus;
  for (const renderer of renderers) renderer();
  if (focused && document.activeElement?.dataset?.focus !== focused) {
    document.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }
}
