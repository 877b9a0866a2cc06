// What is shown, and its address. Every choice is a word after the # of the address; missing ones have their default.

const DATA = JSON.parse(byId("data").textContent);
const KINDS = { enc_self: "encoder self-attention", dec_self: "decoder self-attention", dec_enc: "cross-attention" };
const SCOPES = { enc_self: ["enc_self"], all: Object.keys(KINDS) };
const NAMES = [
  "view", "experiment", "head", "beside", "measure", "model", "sentence", "unit", "drawing", "pin",
  "closing", "update", "logalpha", "temperature", "low", "high", "trained", "verdict",
];

/** Special tokens that a model reads with the text. */
const START = "⟨start⟩", END = "⟨end⟩", SEPARATOR = "⟨separator⟩";

/** By task: the names of a model's input and output, and the special tokens among the words. */
const WORDS = {
  translation: { given: "sentence", answer: "translation", signs: [] },
  "text-to-text": { given: "text", answer: "output", signs: [] },
  classification: { given: "example", answer: "label", signs: [START, SEPARATOR] },
  embedding: { given: "sentence", answer: "vector", signs: [START, SEPARATOR] },
};

let state = {};
const renderers = [];

/** The experiment shown. */
const experiment = () => DATA.experiments.find((one) => one.name === state.experiment) || DATA.experiments[0];

const wording = () => WORDS[experiment().task];

/** The name of the metric, a score with it, and a difference of scores. */
const scoreName = () => experiment().metric.name;
const scored = (value) => spaced(scoreName(), show(value, 2), experiment().metric.unit);
const scoreChange = (value) => `${signed(value)}${experiment().metric.unit ? " points" : ""}`;

/** Compute something once for each experiment. */
function remembered(find) {
  const known = new Map();
  return () => {
    const one = experiment();
    if (!known.has(one)) known.set(one, find(one));
    return known.get(one);
  };
}

/** The id of a table row, such as `enc_self.2.5`, with layers and heads counted from 0 as in all files. */
const idOf = (row) => `${row.attention}.${row.layer}.${row.head}`;

/** The row of a head by its id; undefined for an unknown id. */
const rowOf = (id) => rowsById().get(id);
const rowsById = remembered((one) => new Map(one.table.map((row) => [idOf(row), row])));

/** The kinds of attention that the models have, among all or among those with gates in a scope. */
const kindsOf = (scope = "all") => SCOPES[scope].filter((kind) => experiment().table.some((row) => row.attention === kind));

/** The number of layers with this kind of attention; an imported model's encoder may be deeper than its decoder. */
const depthOf = (kind) => Math.max(...experiment().table.filter((row) => row.attention === kind).map((row) => row.layer)) + 1;

/** The name of a head, with layers and heads counted from 1. */
const headName = (row) => `${KINDS[row.attention]}, layer ${row.layer + 1}, head ${row.head + 1}`;

/** The chosen model; the unpruned one by default. */
const model = () => experiment().models.find((one) => one.run === state.model) || experiment().models[0];

/** Whether a model still has a head. */
const isLive = (one, row) => one.live[experiment().table.indexOf(row)] === "1";

const closingRun = () => experiment().closing.find((one) => one.run === state.closing) || defaultClosing();
const wanted = (name) => (state[name] === undefined ? null : Number(state[name]));

/** The gates run that closes about half of the heads, with gates on all kinds of attention if there is one. */
const defaultClosing = remembered((one) => {
  const distance = (run) => {
    const found = one.models.find((each) => each.run === run.run.replace("gates", "pruned"));
    return found ? (run.scope === "all" ? 0 : 1) + Math.abs([...found.live].filter((digit) => digit === "1").length / found.live.length - 0.5) : 2;
  };
  return one.closing.length ? one.closing.reduce((best, run) => (distance(run) < distance(best) ? run : best)) : undefined;
});

/** The most interesting head: with a role and the largest gain on a relation, or else with the largest loss of BLEU. */
const defaultHead = remembered((one) => {
  const worth = (row) => (row.label ? 1000 : 0) + 100 * (row.values.syntactic_gain ?? -1) + (row.values.score_lost ?? 0) / 1000;
  return idOf(one.table.reduce((best, row) => (worth(row) > worth(best) ? row : best)));
});

const headId = () => (state.head && rowOf(state.head) ? state.head : defaultHead());
const keptBeside = () => (state.beside ? state.beside.split(",").filter(rowOf) : []);
const beside = () => keptBeside().filter((id) => id !== headId());

/** The first sentence with the most arcs of the relations that the default head finds. */
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

/** Read the state from the words after the #; unknown names are ignored. */
function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  state = Object.fromEntries(NAMES.filter((name) => words.has(name)).map((name) => [name, words.get(name)]));
}

/** The address of a state. */
function addressOf(one) {
  const words = NAMES.filter((name) => one[name] !== undefined && one[name] !== null && one[name] !== "");
  return "#" + words.map((name) => `${name}=${encodeURIComponent(one[name]).replace(/%2C/g, ",").replace(/%2F/g, "/")}`).join("&");
}

/** Change what is shown; null undoes a choice. */
function change(changes) {
  state = Object.fromEntries(Object.entries({ ...state, ...changes }).filter(([, value]) => value !== null));
  history.replaceState(null, "", addressOf(state));
  render();
}

/** Draw everything again, keeping the focus. */
function render() {
  const focused = document.activeElement?.dataset?.focus;
  for (const renderer of renderers) renderer();
  if (focused && document.activeElement?.dataset?.focus !== focused) {
    document.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }
}
