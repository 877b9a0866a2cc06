// Attention as a map or as lines between words, with the tree above and words that can be pinned.

const CELL = 22, LINE = 21, GAP = 150, FONT = "13px system-ui, sans-serif";
const pen = document.createElement("canvas").getContext("2d");

/** The width of a text when drawn. */
function widthOf(text) {
  pen.font = FONT;
  return pen.measureText(text).width;
}

const widest = (tokens) => Math.max(...tokens.map(widthOf)) + 10;
const pinned = (count) => (state.pin !== undefined && state.pin !== null && Number(state.pin) < count ? Number(state.pin) : null);
const pin = (at) => change({ pin: pinned(Infinity) === at ? null : at });

/** Whether two heads have attending words on the same side, so that one pin applies to both. */
const sameSide = (row, other) => (row.attention === "enc_self") === (other.attention === "enc_self");
const pinnedIn = (row, count) => (sameSide(row, rowOf(headId())) ? pinned(count) : null);

/** A word that can be pinned; chosen: the number of the pinned one. */
function token(text, at, chosen, attributes, id) {
  const press = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pin(at); } };
  const own = { tabindex: 0, role: "button", "aria-pressed": String(chosen === at), class: `token${chosen === at ? " pinned" : ""}`, "data-focus": `${id} ${at}`, onclick: () => pin(at), onkeydown: press };
  return draw("text", { ...own, ...attributes }, text);
}

/** A sentence as readable text, without special tokens; the sentences of an example are separated. */
function textOf(sentence) {
  const { signs } = wording(), parts = [[]];
  for (const word of sentence.words) {
    if (signs.includes(word)) parts.push([]);
    else parts[parts.length - 1].push(word);
  }
  return parts.filter((part) => part.length).map((part) => part.join(" ")).join(" ⟶ ");
}

/** Arcs of the tree as [dependent, head, relation], with words counted from 0. */
function arcsOf(sentence) {
  return sentence.tree_heads.map((head, word) => [word, head - 1, sentence.relations[word]]).filter(([, head]) => head >= 0);
}

/** A row of a map in words: its word and what it looks at most. */
function described(found, at) {
  const order = found.values[at].map((value, column) => [value, column]).sort((a, b) => b[0] - a[0]).slice(0, 4);
  return `${found.rows[at]} → ${order.map(([value, column]) => `${found.columns[column]} ${percent(value)}`).join(", ")}`;
}

/** Draw the map: a row for each attending word, with cells on arcs of the tree framed. */
function mapOf(found, row, id) {
  const left = widest(found.rows), top = widest(found.columns), at = pinnedIn(row, found.rows.length);
  const width = left + CELL * found.columns.length + 4, height = top + CELL * found.rows.length + 4;
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `Map of ${headName(row)}` });
  found.columns.forEach((text, column) => {
    const x = left + CELL * column + CELL / 2 + 4, y = top - 5;
    picture.append(draw("text", { x, y, transform: `rotate(-90 ${x} ${y})`, class: "name" }, text));
  });
  found.values.forEach((weights, line) => {
    const y = top + CELL * line;
    picture.append(token(found.rows[line], line, at, { x: left - 5, y: y + CELL * 0.7, "text-anchor": "end", "aria-label": described(found, line) }, id));
    weights.forEach((weight, column) => {
      const opacity = at === null || at === line ? weight : weight * 0.25;
      const readOut = () => { byId("readout").textContent = `${found.rows[line]} → ${found.columns[column]}: ${percent(weight, 1)}`; };
      picture.append(draw("rect", { x: left + CELL * column, y, width: CELL - 1, height: CELL - 1, class: "cell", "fill-opacity": opacity.toFixed(3), "data-weight": weight.toFixed(4), onpointerenter: readOut, onclick: () => pin(line) }));
    });
  });
  for (const [from, to] of treeCells(row)) picture.append(draw("rect", { x: left + CELL * to + 0.5, y: top + CELL * from + 0.5, width: CELL - 2, height: CELL - 2, class: "gold" }));
  return picture;
}

/** Cells of the map on arcs of the tree, only for relations that are roles of the head, in the direction of the role. */
function treeCells(row) {
  if (row.attention !== "enc_self" || state.unit === "subwords") return [];
  const held = row.roles.filter((role) => role.role === "syntactic" && role.holds).map((role) => role.name.split(" "));
  const cells = [];
  for (const [dependent, head, relation] of arcsOf(experiment().sentences[sentenceNumber()])) {
    for (const [name, direction] of held) {
      if (relation !== name && relation.split(":")[0] !== name) continue;
      cells.push(direction === "dependent-to-head" ? [dependent, head] : [head, dependent]);
    }
  }
  return cells;
}

/** Draw the same as lines from the attending words, on the left, to the words attended to. */
function linesOf(found, row, id) {
  const left = widest(found.rows), right = widest(found.columns), at = pinnedIn(row, found.rows.length);
  const width = left + GAP + right, height = LINE * Math.max(found.rows.length, found.columns.length) + 8;
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `Lines of ${headName(row)}` });
  const middle = (line) => LINE * line + LINE / 2 + 4;
  found.values.forEach((weights, line) => weights.forEach((weight, column) => {
    if (weight < 0.02 || (at !== null && at !== line)) return;
    picture.append(draw("line", { x1: left, y1: middle(line), x2: left + GAP, y2: middle(column), class: "line", "stroke-opacity": weight.toFixed(3), "stroke-width": 1 + 2.5 * weight, "data-weight": weight.toFixed(4) }));
  }));
  found.rows.forEach((text, line) => picture.append(token(text, line, at, { x: left - 5, y: middle(line) + 4, "text-anchor": "end", "aria-label": described(found, line) }, id)));
  found.columns.forEach((text, column) => picture.append(draw("text", { x: left + GAP + 5, y: middle(column) + 4, class: "name" }, text)));
  return picture;
}

/** Draw the sentence in a line with the arcs of its tree above; found: the attention that a pinned word shades. */
function stripOf(sentence, found) {
  const arcs = arcsOf(sentence), gap = 14, places = [];
  let width = 8;
  for (const word of sentence.words) {
    places.push(width + widthOf(word) / 2);
    width += widthOf(word) + gap;
  }
  const level = (from, to) => 12 + 9 * Math.min(Math.abs(from - to), 7);
  const top = 16 + Math.max(0, ...arcs.map(([from, to]) => level(from, to)));
  const at = found ? pinned(sentence.words.length) : null;
  const picture = draw("svg", { viewBox: `0 0 ${width} ${top + 26}`, width, height: top + 26, role: "group", "aria-label": `The ${wording().given} and its tree` });
  for (const [dependent, head, relation] of arcs) {
    const x1 = places[head], x2 = places[dependent], peak = top - level(dependent, head);
    picture.append(draw("path", { d: `M ${x1} ${top} C ${x1} ${peak}, ${x2} ${peak}, ${x2} ${top}`, class: "arc" }, draw("title", {}, `${relation}: ${sentence.words[dependent]} depends on ${sentence.words[head]}`)));
    picture.append(draw("text", { x: (x1 + x2) / 2, y: top - level(dependent, head) * 0.75 - 2, class: "relation", "text-anchor": "middle" }, relation));
  }
  sentence.words.forEach((word, place) => {
    const half = widthOf(word) / 2 + 4;
    if (at !== null) picture.append(draw("rect", { x: places[place] - half, y: top + 3, width: 2 * half, height: 20, class: "cell", "fill-opacity": found.values[at][place].toFixed(3) }));
    const own = { x: places[place], y: top + 18, "text-anchor": "middle", style: at !== null && found.values[at][place] > 0.5 ? { fill: "var(--page)" } : {} };
    picture.append(found ? token(word, place, at, own, "strip") : draw("text", own, word));
  });
  return picture;
}

/** The correct label of an example and the chosen model's prediction; "" for a sentence. */
function labelsSentence({ wanted }, number) {
  if (!wanted) return "";
  const label = model().translations?.[number];
  return `Its label is ${wanted}.${label ? ` This model (${model().name}) predicts ${label} ${label === wanted ? "✓" : "✗"}.` : ""}`;
}

function panelOf(id) {
  const row = rowOf(id), one = model(), unit = state.unit || "words";
  const drop = id === headId() ? null : make("button", { type: "button", onclick: () => change({ beside: keptBeside().filter((other) => other !== id).join(",") }) }, "Remove");
  const name = make("h3", {}, titleOf(row), roleOf(row) ? ` (${roleOf(row)})` : "");
  const panel = make("div", { class: "panel", "data-panel": id, tabindex: 0, "data-focus": `panel ${id}`, role: "group", "aria-label": `Attention of ${headName(row)}; arrow keys go to other heads` }, name, drop);
  const found = attentionOf(one, sentenceNumber(), row, unit);
  if (!found) {
    panel.append(make("p", { class: "warning" }, one.attention ? `The chosen model (${one.name}) has lost this head.` : "No attention was kept of this model: choose another one above."));
    return panel;
  }
  const asMap = (state.drawing || "map") === "map";
  const read = { enc_self: "The word on the left looks at the words", dec_self: "Writing the word on the left, it looks back at the words", dec_enc: "Writing the word on the left, it looks at the source words" }[row.attention];
  panel.append(make("p", { class: "note" }, `${read} ${asMap ? "above: the stronger the colour, the more." : "on the right: the stronger the line, the more."}`));
  panel.append(make("div", { class: "scrolls" }, asMap ? mapOf(found, row, id) : linesOf(found, row, id)));
  return panel;
}

function renderAttention() {
  const { sentences } = experiment();
  byId("attention").hidden = !sentences.length;
  if (!sentences.length) return;
  const number = sentenceNumber(), row = rowOf(headId()), lengths = sentences.map((one) => one.words.filter((word) => !wording().signs.includes(word)).length);
  const framed = treeCells(row).length && state.drawing !== "lines" ? "Framed cells are arcs of the tree, of the relation that the head finds. " : "";
  fillSelect(byId("sentence"), sentences.map((one, at) => [at, `${at + 1}. ${textOf(one)}`]), number);
  byId("unit").value = state.unit || "words";
  byId("drawing").value = state.drawing || "map";
  byId("attention-lead").textContent = `Attention of the ${model().name} model. ${framed}There are ${sentences.length} ${wording().given}s to choose from, of ${Math.min(...lengths)} to ${Math.max(...lengths)} words. Choose a word to pin it; arrow keys go to other heads.`;
  const inWords = (state.unit || "words") === "words";
  byId("compare").textContent = keptBeside().includes(headId()) ? "Kept: now choose another" : "Keep beside";
  byId("panels").closest(".trio").classList.toggle("wide", beside().length > 0);
  byId("strip").replaceChildren(stripOf(sentences[number], inWords && row.attention === "enc_self" ? attentionOf(model(), number, row, "words") : null));
  byId("labels").textContent = labelsSentence(sentences[number], number);
  byId("panels").replaceChildren(...[headId(), ...beside()].map(panelOf));
  const seen = attentionOf(model(), number, row, state.unit || "words"), at = seen ? pinned(seen.rows.length) : null;
  const said = seen && at !== null ? described(seen, at) : "";
  if (byId("readout").textContent !== said) byId("readout").textContent = said;
}
