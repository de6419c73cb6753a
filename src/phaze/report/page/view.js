// The list of runs keeps its statuses fresh and compares two; a search under way is asked for every second.
const { shown, colour, redraw } = window.phaze;
const boxes = [...document.querySelectorAll("[data-compare]")], compare = document.getElementById("compare");
if (compare) {
  const chosen = () => boxes.filter((box) => box.checked).map((box) => box.dataset.compare);
  const tell = () => { const keys = chosen(); compare.disabled = keys.length !== 2; document.getElementById("chosen").textContent = keys.length === 2 ? "" : keys.length + " of 2 chosen"; };
  for (const box of boxes) { box.checked = false; box.addEventListener("change", tell); }
  compare.addEventListener("click", () => { const [a, b] = chosen(); location.href = "/compare?a=" + a + "&b=" + b; });
}
const table = document.querySelector("table[data-live]");
if (table) {
  const cells = new Map([...document.querySelectorAll("tr[data-key]")].map((row) => [row.dataset.key, row.querySelector(".status")]));
  const refresh = async () => {
    try {
      const { runs } = await (await fetch(table.dataset.live)).json();
      if (runs.length !== cells.size || runs.some((run) => !cells.has(run.key))) { location.reload(); return; }
      for (const run of runs) cells.get(run.key).textContent = run.status;
    } catch { document.getElementById("chosen").textContent = "The server has ended."; return; }
    setTimeout(refresh, 3000);
  };
  setTimeout(refresh, 3000);
}
const plot = document.getElementById("course-plot");
if (plot) {
  // Rows that the table keeps: as many as a screen shows.
  const kept = 15;
  let rows = [], at = {};
  const gapOf = (row) => row[at.best] && row[at.lower] !== null ? Math.max(0, 1 - row[at.lower] / row[at.best]) * 100 : null;
  // Lines over time, each (tint, value of a row); what there is not yet is left out.
  const course = (canvas, lines, floor, unit) => {
    const ratio = window.devicePixelRatio || 1, wide = canvas.clientWidth, high = canvas.clientHeight;
    if (!wide) return;
    canvas.width = wide * ratio; canvas.height = high * ratio;
    const pen = canvas.getContext("2d"); pen.scale(ratio, ratio); pen.font = "12px system-ui, sans-serif";
    const values = rows.flatMap((row) => lines.map(([, of]) => of(row))).filter((value) => value !== null);
    if (!values.length) return;
    const low = floor === null ? Math.min(...values) * 0.98 : floor, top = Math.max(...values) * 1.02 || 1, end = Math.max(1, rows[rows.length - 1][at.seconds]);
    const x = (time) => 62 + time / end * (wide - 76), y = (value) => high - 30 - (value - low) / (top - low || 1) * (high - 50), steps = high > 200 ? 4 : 2;
    pen.fillStyle = colour("soft");
    for (let step = 0; step <= steps; step++) { const value = low + (top - low) * step / steps; pen.textAlign = "right"; pen.fillText(shown(value) + unit, 56, y(value) + 4); }
    for (let step = 0; step <= 4; step++) { pen.textAlign = step === 4 ? "right" : "center"; pen.fillText(shown(end * step / 4) + " s", x(end * step / 4), high - 10); }
    for (const [tint, of] of lines) {
      pen.strokeStyle = colour(tint); pen.lineWidth = 2; pen.beginPath();
      let drawn = false;
      for (const row of rows) { const value = of(row); if (value !== null) { if (drawn) pen.lineTo(x(row[at.seconds]), y(value)); else pen.moveTo(x(row[at.seconds]), y(value)); drawn = true; } }
      pen.stroke();
      pen.fillStyle = colour(tint);
      if (rows.length < 60) for (const row of rows) if (of(row) !== null) { pen.beginPath(); pen.arc(x(row[at.seconds]), y(of(row)), 3.5, 0, 7); pen.fill(); }
    }
  };
  const draw = () => {
    course(plot, [["tensor", (row) => row[at.best]], ["front", (row) => row[at.lower]]], null, "");
    course(document.getElementById("gap-plot"), [["buffer", gapOf]], 0, " %");
    const { made } = window.phaze, cell = (text) => made("td", text, "r"), number = (value) => value === null ? "-" : shown(value);
    document.getElementById("course-rows").replaceChildren(...rows.slice(-kept).reverse().map((row) => {
      const line = made("tr"), gap = gapOf(row);
      line.append(cell(number(row[at.seconds])), cell(number(row[at.best])), cell(number(row[at.lower])), cell(gap === null ? "-" : shown(gap) + " %"), ...["evaluated", "bound", "open"].map((name) => cell(row[at[name]].toLocaleString("en"))));
      return line;
    }));
  };
  const ask = async () => {
    try {
      const found = await (await fetch(plot.dataset.live)).json();
      if (found.status === "finished") { location.reload(); return; }
      rows = found.rows; at = Object.fromEntries(found.columns.map((name, place) => [name, place]));
      const last = rows[rows.length - 1];
      if (last) {
        const put = (name, text) => { document.getElementById("live-" + name).textContent = text; };
        const best = last[at.best], lower = last[at.lower];
        put("best", best === null ? "-" : shown(best)); put("lower", lower === null ? "-" : shown(lower));
        put("gap", gapOf(last) === null ? "-" : shown(gapOf(last)) + " %");
        for (const name of ["evaluated", "bound", "open"]) put(name, last[at[name]].toLocaleString("en"));
      }
      draw();
      const title = document.getElementById("live-title");
      title.textContent = title.textContent.replace(/(running|stopped)$/, found.status);
      document.getElementById("live-note").textContent = found.status === "stopped" ? "It was stopped; the same command resumes it."
        : rows.length ? "Refreshed every second; the page of the run opens when it ends." : "Every chip of the space is bounded first: figures follow.";
      setTimeout(ask, found.status === "stopped" ? 3000 : 1000);
    } catch { document.getElementById("live-note").textContent = "The server has ended."; }
  };
  redraw.push(draw);
  ask();
}
