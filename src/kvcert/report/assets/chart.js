// A small line chart of certificate, guarded certificate and true error by step.
const SVG = "http://www.w3.org/2000/svg";
const SHAPES = {
  c: (x, y) => ["circle", { cx: x, cy: y, r: 4 }],
  g: (x, y) => ["path", { d: `M${x} ${y - 5}l5 8.5h-10z` }],
  e: (x, y) => ["rect", { x: x - 4, y: y - 4, width: 8, height: 8 }],
};

function drawn(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function ticks(top) {
  const raw = top / 5;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= raw);
  const count = Math.floor(top / step + 1e-9);
  return Array.from({ length: count + 1 }, (_, at) => Number((at * step).toPrecision(6)));
}

// `series` is {c, g, e}: lists with null for nothing and -1 for infinity. Infinite points sit on the upper edge.
function drawChart(svg, series) {
  const width = Math.max(280, Math.min(960, svg.clientWidth || 640));
  const height = 270;
  const [left, right, top, bottom] = [52, 16, 16, 42];
  const count = series.e.length;
  const finite = [...series.c, ...series.g, ...series.e].filter((value) => value !== null && value >= 0);
  const high = (Math.max(...finite, 0) || 1) * 1.08;
  const x = (step) => left + (count < 2 ? 0.5 : step / (count - 1)) * (width - left - right - 16) + 8;
  const y = (value) => (value < 0 ? top : height - bottom - (value / high) * (height - top - bottom));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  for (const tick of ticks(high)) {
    svg.append(drawn("line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
      drawn("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, String(tick)));
  }
  const every = Math.ceil(count / Math.max(1, Math.floor((width - left - right) / 34)));
  for (let step = 0; step < count; step += every) {
    svg.append(drawn("text", { x: x(step), y: height - bottom + 18, "text-anchor": "middle" }, String(step + 1)));
  }
  svg.append(drawn("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
    drawn("text", { x: (left + width - right) / 2, y: height - 7, "text-anchor": "middle" }, "decode step"),
    drawn("text", { x: 14, y: (height - bottom + top) / 2, "text-anchor": "middle",
      transform: `rotate(-90 14 ${(height - bottom + top) / 2})` }, "relative error"));
  for (const name of ["g", "c", "e"]) {
    const points = series[name].map((value, step) => [x(step), value === null ? null : y(value)]);
    let path = "";
    points.forEach(([px, py], at) => {
      if (py !== null) path += `${at && points[at - 1][1] !== null ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`;
    });
    svg.append(drawn("path", { class: `line ${name}`, d: path }));
    for (const [px, py] of points) {
      if (py === null) continue;
      const [shape, attributes] = SHAPES[name](px, py);
      svg.append(drawn(shape, { class: `mark ${name}`, ...attributes }));
    }
  }
  series.e.forEach((error, step) => {
    if (missed(series.c[step], error)) svg.append(drawn("circle", { class: "miss", cx: x(step), cy: y(error), r: 9 }));
  });
}

// Not covered: a certificate that is there, finite, and smaller than the error.
function missed(certificate, error) {
  return certificate !== null && error !== null && certificate >= 0 && (error < 0 || error > certificate);
}
