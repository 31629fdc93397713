// Tables: headings become sort buttons and a filter line appears. Without scripts a table is still whole.
const MANY = 12; // rows from which a filter is worth its place

function setUpTable(table, number) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = make("button", { type: "button" }, head.textContent);
    button.addEventListener("click", () => sortBy(table, body, rows, heads, column));
    head.setAttribute("aria-sort", "none");
    head.replaceChildren(button);
  });
  if (rows.length >= MANY) addFilter(table, rows, heads, number);
}

function sortBy(table, body, rows, heads, column) {
  const next = { none: "ascending", ascending: "descending", descending: "none" }[heads[column].getAttribute("aria-sort")];
  heads.forEach((head, at) => head.setAttribute("aria-sort", at === column ? next : "none"));
  const sign = next === "descending" ? -1 : 1;
  const sorted = next === "none" ? rows : [...rows].sort((a, b) => compare(a.cells[column], b.cells[column], sign));
  body.append(...sorted);
}

// Numbers by value, words in natural order; what is missing stays last in both directions.
function compare(a, b, sign) {
  const [x, y] = [a, b].map((cell) => cell.dataset.v ?? (cell.textContent === "–" ? undefined : cell.textContent));
  if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
  const difference = Number(x) - Number(y);
  return sign * (Number.isNaN(difference) ? x.localeCompare(y, "en", { numeric: true }) : difference);
}

function addFilter(table, rows, heads, number) {
  const bar = make("div", { class: "filters", role: "search", "aria-label": `Filter table ${number + 1}` });
  const words = make("input", { type: "search", autocomplete: "off" });
  bar.append(labelled("Filter: words in a row", words));
  const lists = heads.flatMap((head, column) => {
    const values = [...new Set(rows.map((row) => row.cells[column].textContent))];
    const list = ["budget", "draw"].includes(head.textContent) || !head.classList.contains("num");
    if (!list || values.length < 2 || values.length > 15 || values.length > rows.length / 2) return [];
    const select = make("select", {});
    select.append(make("option", { value: "" }, "all"), ...values.map((value) => make("option", { value: `=${value}` }, value)));
    bar.append(labelled(head.textContent, select));
    return [{ column, select }];
  });
  const count = make("p", { class: "count", role: "status" });
  const apply = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const keep = wanted.every((word) => text.includes(word)) &&
        lists.every(({ column, select }) => !select.value || `=${row.cells[column].textContent}` === select.value);
      row.hidden = !keep;
      shown += keep;
    }
    count.textContent = shown === rows.length ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
  };
  bar.addEventListener("input", apply);
  table.parentElement.before(bar, count);
  apply();
}
