// Decoding the attention of one model, sentence and head, between subwords or between words.

const BLANK = "▁", FULL = 255;
const unpackedBytes = new Map();

/** The bytes of a base64 text. */
function bytesOf(text) {
  if (!unpackedBytes.has(text)) unpackedBytes.set(text, Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));
  return unpackedBytes.get(text);
}

/** Readable subwords: those that do not begin a word have a dot in front. */
const readable = (subwords) => subwords.map((subword, at) => (subword.startsWith(BLANK) ? subword.slice(1) || "␣" : at ? `·${subword}` : subword));

/** The words that target subwords form, and the word that each subword belongs to, with share 1. */
function writtenWords(subwords) {
  const words = [], membership = [];
  for (const subword of subwords) {
    if (subword.startsWith(BLANK) || !words.length) words.push("");
    words[words.length - 1] += subword.replaceAll(BLANK, "");
    membership.push([[words.length - 1, 1]]);
  }
  return { words, membership };
}

/**
 * Tokens of one side in the chosen unit, and the tokens that each subword belongs to, with the start or end token added.
 * In examples, special tokens are already among the subwords.
 */
function sideOf(one, number, side, sign, unit) {
  const sentence = experiment().sentences[number];
  const subwords = side === "source" ? sentence.subwords : one.written[number];
  const inWords = side === "source" ? sentence : writtenWords(subwords);
  const tokens = unit === "words" ? [...inWords.words] : readable(subwords);
  const own = unit === "words" ? inWords.membership : subwords.map((_, at) => [[at, 1]]);
  if (wording().signs.length) return { tokens, membership: own };
  if (sign === START) return { tokens: [START, ...tokens], membership: [[[0, 1]], ...own.map((shares) => shares.map(([word, share]) => [word + 1, share]))] };
  return { tokens: [...tokens, sign], membership: [...own, [[tokens.length, 1]]] };
}

/** The weights between tokens: averaged over the subwords of an attending word, summed over those of one attended to. */
function between(bytes, offset, rows, columns) {
  const width = columns.membership.length;
  const values = rows.tokens.map(() => new Array(columns.tokens.length).fill(0));
  const sizes = new Array(rows.tokens.length).fill(0);
  rows.membership.forEach((from, query) => {
    for (const [row, part] of from) {
      sizes[row] += part;
      columns.membership.forEach((to, key) => {
        for (const [column, share] of to) values[row][column] += part * share * bytes[offset + query * width + key] / FULL;
      });
    }
  });
  return values.map((row, at) => row.map((value) => (sizes[at] ? value / sizes[at] : 0)));
}

/**
 * The attention of a model's head on a sentence: {rows, columns, values}; null if the model has lost the head or no
 * attention was kept. Rows are attending words; in the decoder, the word being written.
 */
function attentionOf(one, number, row, unit) {
  if (!one.attention || !isLive(one, row)) return null;
  const table = experiment().table;
  const before = table.slice(0, table.indexOf(row)).filter((other, at) => other.attention === row.attention && one.live[at] === "1").length;
  const decoder = row.attention !== "enc_self";
  const rows = sideOf(one, number, decoder ? "written" : "source", END, unit);
  const columns = row.attention === "dec_self" ? sideOf(one, number, "written", START, unit) : sideOf(one, number, "source", END, unit);
  const bytes = bytesOf(one.attention[number][row.attention]);
  const values = between(bytes, before * rows.membership.length * columns.membership.length, rows, columns);
  return { rows: rows.tokens, columns: columns.tokens, values };
}

/** Where a head's weight goes on average over all sentences of this page, in subwords; null if it was not kept. */
function habitsOf(row) {
  const one = isLive(model(), row) && model().attention ? model() : experiment().models[0];
  if (!one.attention || !isLive(one, row)) return null;
  const sums = {};
  const add = (name, value) => { sums[name] = (sums[name] || 0) + value; };
  experiment().sentences.forEach((_, number) => {
    const found = attentionOf(one, number, row, "subwords"), count = found.rows.length * experiment().sentences.length;
    found.values.forEach((weights, query) => weights.forEach((weight, key) => add(placeName(row, found, query, key), weight / count)));
  });
  const shares = Object.entries(sums).filter(([, share]) => share > 0).sort((a, b) => b[1] - a[1]);
  const [name, share] = shares.find(([key]) => key !== ELSEWHERE) || shares[0];
  const many = `on the ${experiment().sentences.length} ${wording().given}s here`;
  const text = share >= MOSTLY ? `Mostly it looks at ${name}: ${percent(share)} of its weight, ${many}.` : `It has no fixed place to look at, ${many}:`;
  const bars = make("ul", { class: "bars" }, ...shares.map(([key, value]) => make("li", {}, make("span", {}, key), make("span", { class: "track" }, make("span", { style: { width: `${100 * value}%` } })), make("span", {}, percent(value)))));
  return { text, bars };
}

const MOSTLY = 0.4;
const ELSEWHERE = "other subwords";

/** The name of a position, relative to the attending subword. */
function placeName(row, found, query, key) {
  if (found.columns[key] === END) return "the end token";
  if (found.columns[key] === START) return "the start token";
  if (found.columns[key] === SEPARATOR) return "a separator";
  if (row.attention === "dec_enc") return Math.abs(key - query) <= 1 ? "about the same place in the source" : ELSEWHERE;
  // In the decoder, the subword written last is in the column with the number of this row.
  const offset = row.attention === "dec_self" ? key - query - 1 : key - query;
  const names = { "-1": "the subword before", 0: "itself", 1: "the subword after", "-2": "the last subword but one" };
  return names[offset] || ELSEWHERE;
}
