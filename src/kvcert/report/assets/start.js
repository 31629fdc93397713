// Shared helpers and the start. Texts from models are only ever put in as text.
function make(name, attributes, text) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function labelled(text, control) {
  const label = make("label", {}, `${text} `);
  label.append(control);
  return label;
}

// Certificates and errors are never negative: -1 stands for an infinite one.
function relative(value) {
  return value !== null && value < 0 ? "∞" : figure(value, 3);
}

// 0.974, 1,234.5, and – for nothing.
function figure(value, digits) {
  if (value === null || Number.isNaN(value)) return "–";
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−");
}

function words(name, value) {
  if (name === "budget") return `${Number((100 * Number(value)).toPrecision(6))} %`;
  return SAY[name]?.[value] ?? value.replaceAll("_", " ");
}

// Control characters get a picture of their own; those that turn the direction of the text are named.
function visible(text) {
  return text
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (letter) => String.fromCharCode(0x2400 + letter.charCodeAt(0)))
    .replace(/[\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g,
      (letter) => `⟦U+${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`);
}

document.querySelectorAll("table.sortable").forEach(setUpTable);
setUpExplorer(JSON.parse(get("data").textContent));

// On paper nothing can be unfolded: everything folded is printed, and folded again afterwards.
window.addEventListener("beforeprint", () => document.querySelectorAll("details:not([open])").forEach((box) => {
  box.open = true;
  box.dataset.folded = "";
}));
window.addEventListener("afterprint", () => document.querySelectorAll("details[data-folded]").forEach((box) => {
  box.open = false;
  delete box.dataset.folded;
}));
