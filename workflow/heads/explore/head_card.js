// Facts about one head, in words and in numbers.

/** Whether a role is one of cross-attention heads, which look at the source of a certain target token. */
const isCross = (role) => role.role === "cross";

/** A sentence on the roles of a head, or on the closest one if it has none; null if no role was tested. */
function roleSentence(row) {
  if (!row.roles.length) return null;
  const held = row.roles.filter((role) => role.holds);
  const halves = (role) => (role.by_bias === undefined ? "" : `; by its bias alone ${percent(role.by_bias)}, by its content alone ${percent(role.by_content)}`);
  const described = (role) => `${plainly(role)}: right in ${percent(role.accuracy)} of ${role.cases} cases (95 % interval ${percent(role.low)} to ${percent(role.high)}${role.baseline === null ? "" : `; the best fixed offset gets ${percent(role.baseline)}`}${halves(role)})`;
  if (held.length) return `It has a role. It ${held.map(described).join("; it ")}.`;
  const gain = (role) => role.accuracy - (role.baseline ?? 1);
  const best = row.roles.reduce((first, role) => (gain(role) > gain(first) ? role : first));
  return `${isCross(best) ? "None of the roles tried" : "None of the paper’s roles"}. The closest: it ${described(best)}.`;
}

/** A sentence on how well the words that the head looks at agree with a word alignment. */
function alignmentSentence({ alignment }) {
  if (!alignment) return null;
  const { aer, low, high, offset, pairs, aligns } = alignment;
  const described = `alignment error rate ${percent(aer)} on ${pairs} pairs (95 % interval ${percent(low)} to ${percent(high)})`;
  return `${aligns ? "It aligns words" : "It does not align words"}: ${described}; the best fixed offset, ${signed(offset)}, errs in ${percent(alignment.offset_aer)}.`;
}

const ENDS = { subj: "the subject", obj: "the object", adj: "the adjective", adv: "the adverb", verb: "the verb", noun: "the noun", head: "the word it depends on" };

/** What a head with this role does, as a verb phrase. */
function plainly(role) {
  if (role.role !== "syntactic") return role.label.startsWith("looks") ? role.label : `looks at ${role.label}`;
  const [from, to] = role.label.split("→").map((end) => ENDS[end] || `the word joined as ${end}`);
  return `looks from ${from} to ${to} (${role.label})`;
}

const chanceOf = (row) => (row.p_value < 0.001 ? "p < 0.001" : `p ${show(row.p_value, 3)}`);

/** A measure of a head's gate with gates on all heads, or else with gates on the encoder alone. */
const inWidestScope = (row, name) => row.values[`${name}_all`] ?? row.values[`${name}_enc_self`];

/** Sentences on whether the model can do without the head, with the evidence. */
function needSentence(row) {
  const parts = [];
  if (row.score_change !== null) {
    const sure = row.p_value < SIGNIFICANT, lost = row.score_change < 0;
    const verdict = lost ? (sure ? "the model needs it as it stands" : `no significant loss at ${SIGNIFICANT}`) : "nothing is lost without it";
    parts.push(`Masked alone, ${scoreName()} changes by ${scoreChange(row.score_change)} (${chanceOf(row)}): ${verdict}.`);
  }
  const last = inWidestScope(row, "gate_last_lambda");
  if (last !== null && last !== undefined) {
    const most = Math.max(...experiment().table.map((one) => inWidestScope(one, "gate_last_lambda") ?? 0));
    if (last === 0) parts.push("Pruning closes it at every penalty.");
    else parts.push(last === most ? `Pruning keeps it even at the largest penalty, λ ${last}.` : `Pruning keeps it up to λ ${last}, no further.`);
  }
  const fewest = inWidestScope(row, "gate_fewest_heads");
  if (fewest !== null && fewest !== undefined) {
    const known = experiment().table.map((one) => inWidestScope(one, "gate_fewest_heads")).filter((value) => value !== null && value !== undefined);
    if (fewest === known.length) parts.push("Pruning cuts it whatever number of heads is asked for.");
    else parts.push(fewest === Math.min(...known) ? `Pruning keeps it even among the last ${fewest}.` : `Pruning keeps it among ${fewest} heads, not among fewer.`);
  }
  return parts.join(" ");
}

/** The rank of a head among all of its kind by a measure: largest first, or smallest if smaller is better. */
function placeOf(row, key) {
  const values = experiment().table.filter((one) => one.attention === row.attention).map((one) => one.values[key]).filter((value) => value !== null && value !== undefined);
  return `${values.filter((value) => (isBetterSmall(key) ? value < row.values[key] : value > row.values[key])).length + 1} of ${values.length}`;
}

function measuresTable(row) {
  const known = experiment().measures.filter((one) => row.values[one.key] !== null && row.values[one.key] !== undefined);
  const line = (one) => make("tr", { "data-measure": one.key }, make("th", { scope: "row", title: one.what }, one.name), make("td", {}, cellText(one.key, row.values[one.key]), certaintyOf(row, one.key)), make("td", {}, placeOf(row, one.key)));
  const head = make("tr", {}, ...["measure", "value", "place"].map((name) => make("th", { scope: "col" }, name)));
  return make("table", { class: "numbers" }, make("thead", {}, head), make("tbody", {}, ...known.map(line)));
}

/** The p-value of a score lost; other measures have none. */
const certaintyOf = (row, key) => (key === "score_lost" && row.p_value !== null ? ` (${chanceOf(row)})` : null);

function alignmentTable({ aer, low, high, precision, recall, offset, offset_aer }) {
  const cells = [percent(aer, 1), `${percent(low, 1)} to ${percent(high, 1)}`, `${percent(offset_aer, 1)} (${signed(offset)})`, percent(precision, 1), percent(recall, 1)];
  const head = make("tr", {}, ...["errs", "95 % interval", "fixed offset", "precision", "recall"].map((name) => make("th", { scope: "col" }, name)));
  return make("table", { class: "numbers", "data-table": "alignment" }, make("thead", {}, head), make("tbody", {}, make("tr", {}, ...cells.map((cell) => make("td", {}, cell)))));
}

function rolesTable(roles) {
  const halved = roles.some((role) => role.by_bias !== undefined);
  const halves = (role) => (halved ? [make("td", {}, percent(role.by_bias, 1)), make("td", {}, percent(role.by_content, 1))] : []);
  const line = (role) => make("tr", {}, make("th", { scope: "row" }, role.label, role.holds ? " ✓" : ""), make("td", {}, percent(role.accuracy, 1)), make("td", {}, `${percent(role.low, 1)} to ${percent(role.high, 1)}`), make("td", {}, role.baseline === null ? "–" : percent(role.baseline, 1)), ...halves(role));
  const head = make("tr", {}, ...["tried as", "right", "95 % interval", "fixed offset", ...(halved ? ["by its bias alone", "by its content alone"] : [])].map((name) => make("th", { scope: "col" }, name)));
  return make("table", { class: "numbers" }, make("thead", {}, head), make("tbody", {}, ...roles.map(line)));
}

const titleOf = (row) => sentenceCase(headName(row));

/** All numbers of a head in short, for the tooltip. */
function tipOf(row) {
  const best = [...row.roles].sort((a, b) => (b.holds - a.holds) || (b.accuracy - (b.baseline ?? 0.9)) - (a.accuracy - (a.baseline ?? 0.9))).slice(0, 3);
  const parts = [make("strong", {}, titleOf(row)), row.alignment?.aligns ? make("div", {}, "role: alignment head") : row.label ? make("div", {}, `${row.roles.some(isCross) ? "role" : "in the paper’s figure"}: ${row.label}`) : null];
  parts.push(measuresTable(row), best.length ? rolesTable(best) : null, row.alignment ? alignmentTable(row.alignment) : null);
  return parts.filter(Boolean);
}

function renderCard() {
  const row = rowOf(headId());
  const live = isLive(model(), row);
  const parts = [make("h3", {}, titleOf(row))];
  if (roleOf(row)) parts.push(make("p", { class: "badge" }, roleOf(row)));
  if (row.in_words) parts.push(make("p", { id: "in-words" }, row.in_words));
  parts.push(make("h4", {}, "What does it do?"));
  if (roleSentence(row)) parts.push(make("p", { id: "role-text" }, roleSentence(row)));
  if (row.alignment) parts.push(make("p", { id: "alignment-text" }, alignmentSentence(row)));
  const habits = habitsOf(row);
  if (habits) parts.push(make("p", { id: "habits-text" }, habits.text), habits.bars);
  parts.push(make("h4", {}, "Can the model do without it?"), make("p", { id: "need-text" }, needSentence(row) || "This was not measured."));
  if (!live) parts.push(make("p", { class: "warning" }, `The chosen model (${model().name}) has lost this head.`));
  parts.push(make("details", { open: cardOpen.measures, ontoggle: (event) => { cardOpen.measures = event.target.open; } }, make("summary", {}, "All its numbers"), measuresTable(row), row.alignment ? alignmentTable(row.alignment) : null));
  if (row.roles.length) parts.push(make("details", { open: cardOpen.roles, ontoggle: (event) => { cardOpen.roles = event.target.open; } }, make("summary", {}, "All roles it was tried as"), rolesTable(row.roles)));
  // Screen readers read the card out when it changes, so it must not change along with something else.
  const html = parts.map((part) => part.outerHTML).join("");
  if (html !== cardShown) byId("card").replaceChildren(...parts);
  cardShown = html;
}

let cardShown = "";

const cardOpen = { measures: false, roles: false };
