// Elements, numbers and colours. Text is always inserted as text, not markup, so a sentence `<script>` is shown as it is.

const SVG = "http://www.w3.org/2000/svg";
const CIVIDIS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];

/** The element with this id. */
const byId = (id) => document.getElementById(id);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined).map((child) => child instanceof Node ? child : String(child)));
  return element;
}

/** An HTML element: attributes, `on...` handlers, a `style` object; children are nodes or text. */
const make = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

/** The same for an SVG element. */
const draw = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

/** Set the options of a select (pairs of value and text) and the chosen one, without replacing the element. */
function fillSelect(select, pairs, chosen) {
  const written = JSON.stringify(pairs);
  if (select.dataset.shown !== written) {
    select.replaceChildren(...pairs.map(([value, text]) => make("option", { value }, text)));
    select.dataset.shown = written;
  }
  select.value = chosen;
}

const range = (count) => [...Array(count).keys()];

/** A number in readable form, "–" if there is none. */
function show(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const text = Number.isInteger(value) ? String(value) : Number(value).toFixed(digits);
  return text.replace("-", "−");
}

const percent = (share, digits = 0) => `${show(100 * share, digits)} %`;
const signed = (value, digits = 2) => (value > 0 ? "+" : "") + show(value, digits);

/** The words joined by spaces, without empty ones. */
const spaced = (...words) => words.filter(Boolean).join(" ");

/** A word with its first letter capitalised. */
const sentenceCase = (word) => word[0].toUpperCase() + word.slice(1);

/** The colour of the cividis map for a share in [0, 1]. */
function colour(share) {
  const place = Math.min(Math.max(share, 0), 1) * (CIVIDIS.length - 1);
  const low = Math.floor(place), high = Math.min(low + 1, CIVIDIS.length - 1);
  const channel = (text, at) => parseInt(text.slice(at, at + 2), 16);
  const mixed = [1, 3, 5].map((at) => Math.round(channel(CIVIDIS[low], at) * (1 - place + low) + channel(CIVIDIS[high], at) * (place - low)));
  return `rgb(${mixed.join(", ")})`;
}

/** Black or white, whichever is readable on `colour(share)`. */
const inkOn = (share) => (share > 0.5 ? "#000" : "#fff");

/** Show the tooltip beside an element, or below or above it if there is no room. */
function showTip(element, ...children) {
  const tip = byId("tip");
  tip.replaceChildren(...children);
  tip.hidden = false;
  const place = element.getBoundingClientRect(), own = tip.getBoundingClientRect();
  const fits = place.right + 12 + own.width < window.innerWidth;
  const left = fits ? place.right + 12 : Math.max(Math.min(place.left, window.innerWidth - own.width - 8), 8);
  const below = place.bottom + 8 + own.height < window.innerHeight;
  const beside = Math.max(Math.min(place.top, window.innerHeight - own.height - 8), 8);
  const top = fits ? beside : below ? place.bottom + 8 : Math.max(8, place.top - own.height - 8);
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${top + window.scrollY}px`;
}

function hideTip() {
  byId("tip").hidden = true;
}

/** A colour gradient with labels at its ends and notes beside it. */
function legend(name, low, high, ...notes) {
  const bar = make("span", { class: "bar", style: { background: `linear-gradient(to right, ${CIVIDIS.join(", ")})` } });
  return [make("span", {}, name ? `${name}: ` : "", low, " "), bar, make("span", {}, ` ${high}`), ...notes.map((note) => make("span", { class: "note" }, note))];
}
