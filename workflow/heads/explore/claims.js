// The papers' claims, our results, and the figure for each.

const VERDICTS = { yes: "✓", no: "✗", unclear: "?", "too few heads to tell": "(✓)", "model too weak to tell": "∅", "not settled": "…" };

/** Inside a report the page is a data URL without a folder, and a link out of it would leave it empty. */
const IN_REPORT = location.protocol === "data:";

/** The number of a claim, with its total (if it is a count) and its interval. */
function numberOf(value, of, low, high) {
  if (value === null) return "–";
  const whole = Number.isInteger(value);
  const interval = low !== null && high !== null ? ` [${show(low, 3)}, ${show(high, 3)}]` : "";
  return `${whole ? show(value) : show(value, Math.abs(value) < 1 ? 3 : 2)}${of === null ? "" : ` of ${show(of)}`}${interval}`;
}

function renderClaims() {
  const { claims } = experiment();
  byId("claims").hidden = !claims.length;
  if (!claims.length) return;
  const verdicts = [...new Set(claims.map((one) => one.verdict))];
  // Our own controls are not claims of a paper.
  const ofPapers = claims.filter((one) => one.study !== "ours");
  const studies = [...new Set(ofPapers.map((one) => one.study))];
  const papers = studies.map((study) => (studies.length > 1 ? `${ofPapers.filter((one) => one.study === study).length} of ${study}` : `of ${study}`));
  const counts = verdicts.map((verdict) => [ofPapers.filter((one) => one.verdict === verdict).length, verdict]).filter(([count]) => count);
  const ours = ofPapers.length < claims.length ? ` Besides, ${claims.length - ofPapers.length} controls of ours.` : "";
  byId("claims-lead").textContent = `Of ${ofPapers.length} claims${studies.length > 1 ? `, ${papers.join(", ")}` : ` ${papers[0]}`}, tried on this experiment’s models: ${counts.map((one) => one.join(" ")).join(", ")}.${ours} In brackets: 95 % intervals.`;
  fillSelect(byId("verdict"), [["", "all claims"], ...verdicts.map((verdict) => [verdict, verdict])], state.verdict || "");
  const rows = [];
  let topic = "";
  for (const one of claims.filter((each) => !state.verdict || each.verdict === state.verdict)) {
    if (one.topic !== topic) rows.push(make("tr", { class: "topic" }, make("th", { colspan: 5, scope: "colgroup" }, one.topic)));
    topic = one.topic;
    const figure = one.figure ? (IN_REPORT ? make("span", { class: "note" }, `figure “${one.figure.split("/").pop().replace(".png", "")}” of this report`) : make("a", { href: one.figure }, "figure")) : null;
    const verdict = make("td", { class: `verdict ${one.verdict.split(" ")[0]}` }, `${VERDICTS[one.verdict] || "–"} ${one.verdict}`,
      one.other_readings ? make("span", { class: "note" }, `other readings: ${one.other_readings}`) : null);
    rows.push(make("tr", { class: "claim" }, make("th", { scope: "row" }, one.name, one.rule ? make("span", { class: "note" }, ` relevance: ${one.rule}`) : null),
      make("td", { "data-label": "paper: " }, numberOf(one.paper, one.paper_of, null, null), make("span", { class: "note" }, ` ${one.source} ${one.tag}`)), make("td", { "data-label": "here: " }, numberOf(one.ours, one.of, one.low, one.high), one.relative_percent === null ? null : make("span", { class: "note" }, ` ${show(one.relative_percent, 1)} % of the whole model’s score`)), verdict, make("td", {}, figure)));
  }
  const head = make("tr", {}, ...["claim", "paper", "here", "holds", ""].map((name) => make("th", { scope: "col" }, name)));
  byId("claims-table").replaceChildren(make("table", { class: "claims" }, make("thead", {}, head), make("tbody", {}, ...rows)));
}
