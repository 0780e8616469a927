"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (selector) => document.querySelector(selector);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const make = (tag, text, kind) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  };
  const three = (x) => (x === null || x === undefined ? "-" : Number(x.toPrecision(3)).toString());
  const bytes = (n) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let k = 0;
    while (Math.abs(n) >= 1024 && k < units.length - 1) { n /= 1024; k += 1; }
    return (k ? three(n) : Math.round(n)) + " " + units[k];
  };
  const seconds = (s) => (s === null || s === undefined ? "-" : s < 1e-3 ? three(s * 1e6) + " \u00b5s" : s < 1 ? three(s * 1e3) + " ms" : three(s) + " s");
  const hide = (id) => { document.getElementById(id).hidden = true; };

  // ------------------------------------------------------------------------------------------------------------ tables

  // A column is [title, key or function of the row, how a value is shown, whether it is text].
  function table(node, columns, rows, sorted) {
    const value = (column, row) => (typeof column[1] === "function" ? column[1](row) : row[column[1]]);
    let by = sorted, kept = () => true;
    const fill = () => {
      const shown = rows.filter(kept);
      if (by !== null) {
        const [k, down] = by;
        const order = (a, b) => (a === b ? 0 : a === null ? -1 : b === null ? 1 : a < b ? -1 : 1);
        shown.sort((a, b) => (down ? -1 : 1) * order(value(columns[k], a), value(columns[k], b)));
      }
      const body = make("tbody");
      for (const row of shown) {
        const line = make("tr");
        for (const column of columns) {
          const text = (column[2] || String)(value(column, row));
          line.append(make("td", text, (column[3] ? "text" : "") + (column[3] && text.length > 34 ? " long" : "")));
        }
        body.append(line);
      }
      node.tBodies[0] ? node.tBodies[0].replaceWith(body) : node.append(body);
      node.querySelectorAll("th").forEach((th, k) => {
        if (by && by[0] === k) th.setAttribute("aria-sort", by[1] ? "descending" : "ascending");
        else th.removeAttribute("aria-sort");
      });
      return shown;
    };
    const heads = make("tr");
    columns.forEach((column, k) => {
      const th = make("th", undefined, column[3] ? "text" : ""), button = make("button", column[0]);
      button.addEventListener("click", () => { by = [k, by && by[0] === k ? !by[1] : !column[3]]; fill(); });
      th.append(button);
      heads.append(th);
    });
    const head = make("thead");
    head.append(heads);
    node.append(head);
    fill();
    return (test) => { kept = test; return fill(); };
  }

  function profileTable(profile) {
    const dash = (show) => (x) => (x === null ? "-" : show(x));
    const columns = [
      ["policy", "policy", String, true], ["peak", "peak_bytes", bytes], ["predicted", "predicted_bytes", bytes],
      ["seconds", "seconds", seconds], ["CPU x plain", "ratio", dash(three)], ["forward steps", "n_forward", dash(String)],
      ["recompute factor", "recompute_factor", dash(three)], ["snapshots", "snapshots", String], ["RSS", "rss_bytes", dash(bytes)],
      ["Taylor rate", "taylor_rate", dash(three)], ["dot-product error", "dot_product_error", dash((x) => x.toExponential(1))],
      ["same bits", "same_bits", (same) => (same ? "yes" : "NO")],
    ].filter(([, key]) => profile.rows.some((row) => row[key] !== null));
    table($("#profile table"), columns, profile.rows, null);
    $("#profile .notes").append(...profile.notes.map((note) => make("div", note)));
  }

  function savedTable(saved) {
    $("#saved .total").textContent = `${bytes(saved.total_bytes)} between forward and reverse under ${saved.policy}, ` +
      `${bytes(saved.argument_bytes)} of it the arguments' own memory` +
      (saved.rows.length < saved.n_rows ? `; ${saved.n_rows} rows are folded into ${saved.rows.length}, by line, operation, slot, value, reason and spec` : "");
    const steps = (row) => (row.first_step === null ? "" : row.first_step === row.last_step ? String(row.first_step) : `${row.first_step}-${row.last_step}`);
    const columns = [
      ["bytes", "nbytes", bytes], ["buffers", "buffers", String], ["at steps", steps, String, true], ["spec", (row) => row.spec || "opaque", String, true],
      ["primitive", "primitive", String, true], ["slot", "name", String, true], ["value", "origin", String, true],
      ["reason", "reason", String, true], ["line", "where", String, true], ["read by", (row) => row.readers.join(", "), String, true],
    ];
    const refill = table($("#saved table"), columns, saved.rows, [0, true]);
    const input = $("#saved input"), count = $("#saved .count");
    const filter = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const text = (row) => [row.primitive, row.name, row.origin, row.reason, row.where, row.loop, row.spec, ...row.readers].join(" ").toLowerCase();
      const shown = refill((row) => words.every((word) => text(row).includes(word)));
      count.textContent = `${shown.length} of ${saved.rows.length} rows, ${bytes(shown.reduce((sum, row) => sum + row.nbytes, 0))}`;
    };
    input.addEventListener("input", filter);
    filter();
    $("#saved .notes").append(...saved.choices.map((choice) => make("div", choice)));
    return (where) => { input.value = where; filter(); $("#saved").scrollIntoView({ behavior: "smooth" }); };
  }

  // ------------------------------------------------------------------------------------------------------------ charts

  const charts = [];
  function chart(node, height, options, values) {
    let drawn = null;
    const draw = () => {
      if (drawn) drawn.destroy();
      drawn = new uPlot({ width: node.clientWidth, height, legend: { show: false }, ...options() }, values(), node);
    };
    draw();
    charts.push(draw);
    let width = node.clientWidth;
    new ResizeObserver(() => {
      if (node.clientWidth !== width) { width = node.clientWidth; drawn.setSize({ width, height }); }
    }).observe(node);
    return draw;
  }
  const axis = (more) => ({ stroke: css("ink"), font: "12px system-ui", grid: { stroke: css("rule"), width: 1 }, ticks: { stroke: css("rule") }, ...more });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((draw) => draw()));

  function curveChart(rows, budgets, forward) {
    const points = [...rows.map((row) => ({ ...row, predicted_seconds: null })), ...budgets].sort((a, b) => a.peak_bytes - b.peak_bytes);
    const xs = [...new Set(points.flatMap((p) => [p.peak_bytes, p.predicted_bytes]))].filter((x) => x > 0).sort((a, b) => a - b);
    if (!xs.length) { hide("curve"); return; }
    const at = (x, key) => points.filter((p) => p[key] === x);
    let best = Infinity;
    const measured = xs.map((x) => at(x, "peak_bytes").reduce((least, p) => Math.min(least, p.seconds), Infinity)).map((s) => (s === Infinity ? null : s));
    const predicted = xs.map((x) => { const p = at(x, "predicted_bytes").find((q) => q.predicted_seconds !== null); return p ? p.predicted_seconds : null; });
    const frontier = measured.map((s) => (s !== null && s < best ? (best = s) : null));
    const readout = $("#curve .readout");
    const tell = (u) => {
      const k = u.cursor.idx;
      const here = k === null || k === undefined ? [] : at(xs[k], "peak_bytes");
      readout.textContent = here.length
        ? here.map((p) => `${p.policy}: ${bytes(p.peak_bytes)}, ${seconds(p.seconds)}` + (p.predicted_seconds !== null ? ` (predicted ${seconds(p.predicted_seconds)})` : "") + `, ${p.n_forward || 0} forward steps`).join("; ")
        : `one plain forward run takes ${seconds(forward)}; point at a policy`;
    };
    const dots = (name, size) => ({ stroke: css(name), paths: () => null, points: { show: true, size, fill: css(name), stroke: css(name) } });
    chart($("#curve .chart"), 300, () => ({
      scales: { x: { time: false, distr: 3, range: wider }, y: { distr: 3, range: wider } },
      axes: [axis({ values: (u, splits) => splits.map((x) => (x === null ? "" : bytes(x))), splits: (u, i, low, high) => powers(2, low, high, innerWidth < 600 ? 4 : 9), filter: (u, splits) => splits }),
        axis({ values: (u, splits) => splits.map((y) => (y === null ? "" : seconds(y))), splits: (u, i, low, high) => decades(low, high), filter: (u, splits) => splits, size: 66 })],
      series: [{}, { stroke: css("frontier"), width: 1.5, spanGaps: true, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }, dots("measured", 9), dots("predicted", 5)],
      cursor: { y: false, points: { show: false } }, hooks: { setCursor: [tell], ready: [tell] },
    }), () => [xs, frontier, measured, predicted]);
    const legend = make("div", undefined, "legend");
    legend.append(swatch("measured", "measured"), swatch("predicted", "predicted"));
    $("#curve .chart").before(legend);
  }

  // Where a logarithmic axis has its marks: powers, few enough to be read; within a few decades 1, 2 and 5 of each.
  function powers(base, low, high, most) {
    const first = Math.ceil(Math.log(low) / Math.log(base)), last = Math.floor(Math.log(high) / Math.log(base));
    const by = Math.max(1, Math.ceil((last - first) / most));
    const marks = [];
    for (let k = first; k <= last; k += by) marks.push(base ** k);
    return marks;
  }
  function decades(low, high) {
    const tens = powers(10, low / 10, high, 8);
    return high / low > 1e4 ? tens : tens.flatMap((x) => [x, 2 * x, 5 * x]).filter((x) => x >= low && x <= high);
  }
  const wider = (u, low, high) => [(low || 1e-9) / 1.4, (high || 1) * 1.4];

  function swatch(colour, text) {
    const node = make("span"), square = make("i");
    square.style.background = `var(--${colour})`;
    node.append(square, text);
    return node;
  }

  function timelineChart(lines) {
    const select = $("#timeline select"), readout = $("#timeline .readout"), legend = $("#timeline .legend");
    select.append(...lines.map((line, k) => new Option(line.policy, k)));
    const now = () => lines[select.value];
    const reasons = () => Object.keys(now().held);
    const stacked = () => {  // the sum of a reason and all below it: drawn from the top, each covers what it stands on
      const sums = [], line = now();
      let below = line.seconds.map(() => 0);
      for (const reason of reasons()) { below = below.map((n, k) => n + line.held[reason][k]); sums.push(below); }
      return [line.seconds, ...sums.reverse()];
    };
    const tell = (u) => {
      const k = u.cursor.idx, line = now();
      if (k === null || k === undefined) { readout.textContent = "point at a moment"; return; }
      const total = reasons().reduce((sum, reason) => sum + line.held[reason][k], 0);
      const parts = reasons().filter((reason) => line.held[reason][k]).map((reason) => `${reason} ${bytes(line.held[reason][k])}`);
      readout.textContent = `${seconds(line.seconds[k])}, ${line.phase[k]}` + (line.step[k] === null ? "" : `, step ${line.step[k]}`) +
        `: ${bytes(total)}` + (parts.length ? ` (${parts.join(", ")})` : "") + `; ${line.n_forward[k]} forward steps so far`;
    };
    const strip = (u) => {  // which phase each moment belongs to, along the foot of the chart
      const line = now(), y = u.bbox.top + u.bbox.height - 5 * devicePixelRatio;
      for (let k = 1; k < line.seconds.length; k += 1) {
        const from = u.valToPos(line.seconds[k - 1], "x", true), to = u.valToPos(line.seconds[k], "x", true);
        u.ctx.fillStyle = css(line.phase[k]);
        u.ctx.fillRect(from, y, to - from, 5 * devicePixelRatio);
      }
    };
    const draw = chart($("#timeline .chart"), 320, () => ({
      scales: { x: { time: false }, y: { range: (u, low, high) => [0, (high || 1) * 1.06] } },
      axes: [axis({ values: (u, splits) => splits.map(seconds), space: 70 }), axis({ values: (u, splits) => splits.map(bytes), size: 74, incrs: [...Array(50).keys()].map((k) => 2 ** k) })],
      series: [{}, ...reasons().reverse().map((reason) => ({ stroke: css(reason), width: 1, fill: css(reason), paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }))],
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false } }, hooks: { setCursor: [tell], ready: [tell], draw: [strip] },
    }), stacked);
    const show = () => {
      $("#timeline .peak").textContent = now().peak;
      legend.replaceChildren(...reasons().map((reason) => swatch(reason, reason)), ...["forward", "recompute", "reverse"].map((phase) => swatch(phase, `${phase} (foot)`)));
      draw();
    };
    select.addEventListener("change", show);
    show();
  }

  // --------------------------------------------------------------------------------------------- schedules and sources

  function schedulePicture(lines) {
    const select = $("#schedule select"), picture = $("#schedule .picture");
    select.append(...lines.map((line, k) => new Option(line.policy, k)));
    const show = () => {
      const { picture: svg, policy } = lines[select.value];
      if (!svg.startsWith("<svg")) { picture.replaceChildren(make("p", svg)); return; }
      const image = make("img");  // as an image its style stays its own
      image.alt = `the schedule of ${policy}: steps across, work downwards`;
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
      picture.replaceChildren(image);
    };
    const first = lines.findIndex((line) => line.picture.startsWith("<svg"));
    select.value = Math.max(0, first);
    select.addEventListener("change", show);
    show();
  }

  function sourceText(sources, total, select) {
    for (const { shown, name, lines } of sources) {
      const heading = make("p", shown), block = make("div", undefined, "source");
      let largest = null, most = 0;
      for (const [number, text, held, rows] of lines) {
        const line = make("div", undefined, held ? "held" : "");
        const margin = make("span", held ? bytes(held) : "", "bytes");
        margin.style.setProperty("--share", `${total ? Math.round((100 * held) / total) : 0}%`);
        line.append(margin, make("span", number || "...", "number"), make("code", text));
        if (held) {
          line.title = `${rows} saved ${rows === 1 ? "buffer" : "buffers"}: show ${rows === 1 ? "it" : "them"}`;
          line.addEventListener("click", () => select(`${name}:${number}`));
        }
        if (held > most) { most = held; largest = line; }
        block.append(line);
      }
      $("#source").append(heading, block);
      if (largest) block.scrollTop = Math.max(0, largest.offsetTop - block.offsetTop - 160);
    }
  }

  $("#name").textContent = data.name;
  $("#call").textContent = `gradient with arguments ${data.call}`;
  $("#answer").append(...data.answer.map((text) => make("li", text)));
  if (data.failed) { $("#failed").hidden = false; $("#failed").textContent = `This report ends where an error did. ${data.failed}`; }
  data.profile ? profileTable(data.profile) : hide("profile");
  data.profile ? curveChart(data.profile.rows, data.curve || [], data.profile.forward_seconds) : hide("curve");
  if (data.timelines && data.timelines.length) { timelineChart(data.timelines); schedulePicture(data.timelines); }
  else { hide("timeline"); hide("schedule"); }
  const select = data.saved ? savedTable(data.saved) : hide("saved");
  data.sources && data.sources.length ? sourceText(data.sources, data.saved.total_bytes, select) : hide("source");
})();
