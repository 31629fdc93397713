// The run explorer: choices narrow one another from left to right, and the last ones always name exactly one run.
const ORDER = ["cell", "setting", "policy", "budget", "scorer", "draw", "regime", "example"];
const FIRST = { setting: "streaming", policy: "poisson", budget: "0.25", regime: "free" };
const SAY = {
  setting: { aware: "question-aware", streaming: "streaming" },
  regime: { free: "free-running", forced: "forced: the full run's" },
};
const OUTCOMES = {
  pass: "passed", induced: "failed, induced by the cache", inherent: "failed, inherent", fail: "failed with the full cache",
  invalid: "invalid, not scored", forced: "token-forced, not scored",
};
const get = (id) => document.getElementById(id);

function setUpExplorer(data) {
  const all = data.example.map((_, at) => at);
  const label = (name, at) => (name === "example" ? String(data.example[at]) : data.names[name][data[name][at]]);
  const selects = Object.fromEntries(ORDER.map((name) => [name, get(name)]));
  const starts = [0];
  data.n.forEach((count) => starts.push(starts.at(-1) + count));
  let current = null;

  function choose() {
    const only = get("only").value;
    let left = only ? all.filter((at) => data.outcome[at] === only) : all;
    for (const name of ORDER) {
      const found = new Map(left.map((at) => [label(name, at), null]));
      const have = [...found.keys()];
      if (name === "example") have.sort((a, b) => a - b);
      else have.sort((a, b) => data.names[name].indexOf(a) - data.names[name].indexOf(b));
      const select = selects[name];
      const pick = [select.value, FIRST[name], have[0]].find((value) => have.includes(value));
      select.replaceChildren(...have.map((value) => make("option", { value }, words(name, value))));
      select.value = pick ?? "";
      select.disabled = have.length < 2;
      left = left.filter((at) => label(name, at) === pick);
    }
    current = left[0] ?? null;
    turnable();
    show();
  }

  function turnable() {
    get("previous").disabled = selects.example.selectedIndex <= 0;
    get("next").disabled = selects.example.selectedIndex >= selects.example.options.length - 1;
  }

  function turn(by) {
    selects.example.selectedIndex += by;
    choose();
  }

  function series(at) {
    return Object.fromEntries(["c", "g", "e"].map((name) => [name, data.steps[name].slice(starts[at], starts[at + 1])]));
  }

  function show() {
    get("run").hidden = current === null;
    if (current === null) {
      get("status").textContent = "No such run.";
      return;
    }
    const at = current;
    const place = selects.example.selectedIndex + 1;
    get("status").textContent =
      `Example ${data.example[at]} (${place} of ${selects.example.options.length}): ${OUTCOMES[data.outcome[at]]}` +
      (data.score[at] === null ? "" : `, score ${figure(data.score[at], 2)}`);
    get("run-facts").replaceChildren(...facts(data, at));
    get("accepted").replaceChildren(...data.accepted[at].map((text) => make("li", { dir: "auto" }, visible(data.texts[text]))));
    get("answer").textContent = visible(data.texts[data.answer[at]]);
    get("answer-full").textContent = data.full[at] === null ? "(no such run in the logs)" : visible(data.texts[data.answer[data.full[at]]]);
    showSteps(series(at));
  }

  get("choices").addEventListener("input", choose);
  get("choices").addEventListener("submit", (event) => event.preventDefault());
  get("previous").addEventListener("click", () => turn(-1));
  get("next").addEventListener("click", () => turn(1));
  window.addEventListener("resize", () => current !== null && showSteps(series(current)));
  selects.scorer.parentElement.hidden = data.names.scorer.filter((name) => name !== "none").length < 2;
  get("choices").hidden = false;
  choose();
}

function facts(data, at) {
  const share = (part, whole) => (whole ? ` (${figure((100 * part) / whole, 1)} %)` : "");
  const pairs = [
    ["Score", data.score[at] === null ? "–" : `${figure(data.score[at], 2)} (fails below ${figure(data.fail_below[at], 2)})`],
    ["Kept tokens per KV head", `${figure(data.kept_tokens[at], 1)} of ${figure(data.context_tokens[at], 0)}${share(data.kept_tokens[at], data.context_tokens[at])}`],
    ["Kept bytes", `${figure(data.kept_bytes[at] / 1e6, 2)} of ${figure(data.full_bytes[at] / 1e6, 2)} MB`],
    ["Mean log-probability", figure(data.logp_mean[at], 3)],
    ["Certificate signal", relative(data.signal[at])],
    ["True error, same steps", relative(data.error[at])],
    ["Evicted share of the score", figure(data.evicted_mass[at], 3)],
  ];
  if (data.invalid[at] !== null) pairs.push(["Invalid because", visible(data.texts[data.invalid[at]])]);
  return pairs.map(([name, value]) => {
    const pair = make("div", {});
    pair.append(make("dt", {}, name), make("dd", {}, value));
    return pair;
  });
}

function showSteps(lines) {
  const some = lines.e.some((value) => value !== null) || lines.c.some((value) => value !== null);
  get("chart-box").hidden = !some;
  get("chart-none").hidden = some;
  if (!some) return;
  const misses = lines.e.filter((error, step) => missed(lines.c[step], error)).length;
  const certified = lines.c.filter((value) => value !== null).length;
  get("chart-words").textContent = certified
    ? `${certified - misses} of ${certified} steps are covered: the true error is at most the certificate.`
    : "This policy carries no certificate; the true error is drawn alone.";
  get("steps").replaceChildren(...lines.e.map((error, step) => {
    const row = make("tr", {});
    const covered = lines.c[step] === null || error === null ? "–" : missed(lines.c[step], error) ? "no" : "yes";
    row.append(...[step + 1, relative(lines.c[step]), relative(lines.g[step]), relative(error)].map((text) =>
      make("td", { class: "num" }, String(text))), make("td", {}, covered));
    return row;
  }));
  drawChart(get("chart"), lines);
}
