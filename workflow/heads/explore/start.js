// Event handlers of the page, and the first drawing.

const VIEWS = { heads: "Heads", attention: "What they look at", closing: "Gates closing", concrete: "The gate’s distribution", claims: "The papers’ claims" };

/** Whether a part of the page is shown; models that were only inspected have no parts on pruning. */
const isThere = (one, id) => !one.parts || one.parts.includes(id);

function renderTop() {
  const one = experiment(), tested = one.table.filter((row) => row.p_value !== null);
  const needed = tested.filter((row) => row.p_value < SIGNIFICANT && row.score_change < 0).length;
  const kept = (each) => [...each.live].filter((digit) => digit === "1").length, held = kept(one.models[0]), lost = one.table.length - held;
  const parts = [`The ${one.task} model “${one.name}” has ${held} heads${lost ? `, ${lost} fewer than at first,` : ""} and ${spaced(show(one.score, 2), one.metric.unit, one.metric.name)}.`];
  if (tested.length) parts.push(`Masked one at a time, ${needed} of them lower ${one.metric.name} significantly (p < ${SIGNIFICANT}); the other ${tested.length - needed} do not.`);
  const cheap = one.models.filter((each) => each.kind === "pruned" && kept(each) < held && each.score > one.score - 1);
  if (cheap.length) {
    const least = cheap.reduce((best, each) => (kept(each) < kept(best) ? each : best));
    parts.push(`Pruned together, ${held - kept(least)} heads go for less than one ${one.metric.unit ? "point of " : ""}${one.metric.name} (${show(least.score, 2)} with ${kept(least)} left).`);
  }
  byId("sentence-name").textContent = sentenceCase(wording().given);
  byId("curve-lead").textContent = `Each mark is a model. Choose one to see its heads above and its ${wording().answer} below.`;
  byId("summary").textContent = parts.join(" ");
  for (const id of Object.keys(VIEWS)) byId(id).hidden = !isThere(one, id);
  byId("experiment-choice").hidden = DATA.experiments.length < 2;
  fillSelect(byId("experiment"), DATA.experiments.map((each) => [each.name, each.name]), one.name);
  byId("views").replaceChildren(...Object.entries(VIEWS).filter(([id]) => isThere(one, id)).map(([id, name]) => make("a", { href: `#view=${id}`, "data-focus": `view ${id}`, "aria-current": state.view === id, onclick: (event) => { event.preventDefault(); change({ view: id }); goToView(); } }, name)));
  const seeds = one.seeds > 1 ? ` Of ${one.seeds} seeds, seed ${one.seed} is shown.` : "";
  byId("footer").textContent = `${sentenceCase(one.metric.name)} on ${one.sentences_scored} test ${wording().given}s, ${one.signature}.${seeds}${one.note} Layers, heads and ${wording().given}s are counted from 1 here and from 0 in addresses and files. The address of this page holds all that is chosen.`;
}

const goToView = () => { if (VIEWS[state.view]) byId(state.view).scrollIntoView(); };

/** Let a select or a slider change what is shown. */
const chooses = (id, name, event = "change", read = (element) => element.value) => byId(id).addEventListener(event, () => change({ [name]: read(byId(id)) }));

renderers.push(renderTop, renderGrids, renderCard, renderAttention, renderClosing, renderConcrete, renderClaims);
byId("experiment").addEventListener("change", () => { state = { experiment: byId("experiment").value, view: state.view }; change({}); });
for (const name of ["measure", "model", "unit", "drawing", "verdict"]) chooses(name, name);
byId("sentence").addEventListener("change", () => change({ sentence: byId("sentence").value, pin: null }));
byId("closing-run").addEventListener("change", () => change({ closing: byId("closing-run").value, model: null }));
chooses("update", "update", "input", (element) => closingRun().updates[Number(element.value)]);
byId("play").addEventListener("click", play);
byId("compare").addEventListener("click", () => change({ beside: withHead() }));
byId("grids").addEventListener("keydown", walk);
byId("panels").addEventListener("keydown", walk);
for (const [on, off] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
  byId("grids").addEventListener(on, (event) => { if (event.target.dataset.head) showTip(event.target, ...tipOf(rowOf(event.target.dataset.head))); });
  byId("grids").addEventListener(off, hideTip);
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
window.addEventListener("hashchange", () => { readAddress(); render(); goToView(); });
window.addEventListener("resize", renderCurve);
readAddress();
render();
goToView();
