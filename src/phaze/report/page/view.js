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
  let rows = [], at = {};
  const draw = () => {
    const ratio = window.devicePixelRatio || 1, wide = plot.clientWidth, high = plot.clientHeight;
    if (!wide) return;
    plot.width = wide * ratio; plot.height = high * ratio;
    const pen = plot.getContext("2d"); pen.scale(ratio, ratio); pen.font = "12px system-ui, sans-serif";
    const values = rows.flatMap((row) => [row[at.best], row[at.lower]]).filter((value) => value !== null);
    if (!values.length) return;
    const low = Math.min(...values) * 0.98, top = Math.max(...values) * 1.02, end = Math.max(1, rows[rows.length - 1][at.seconds]);
    const x = (time) => 62 + time / end * (wide - 76), y = (value) => high - 30 - (value - low) / (top - low || 1) * (high - 50);
    pen.fillStyle = colour("soft");
    for (let step = 0; step <= 4; step++) { const value = low + (top - low) * step / 4; pen.textAlign = "right"; pen.fillText(shown(value), 56, y(value) + 4); pen.textAlign = "center"; pen.fillText(shown(end * step / 4) + " s", x(end * step / 4), high - 10); }
    for (const [name, tint] of [["best", "tensor"], ["lower", "front"]]) {
      pen.strokeStyle = colour(tint); pen.lineWidth = 2; pen.beginPath();
      let drawn = false;
      for (const row of rows) if (row[at[name]] !== null) { if (drawn) pen.lineTo(x(row[at.seconds]), y(row[at[name]])); else pen.moveTo(x(row[at.seconds]), y(row[at[name]])); drawn = true; }
      if (rows.length === 1 && drawn) pen.lineTo(x(end), y(rows[0][at[name]]));
      pen.stroke();
    }
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
        put("gap", best && lower ? shown(Math.max(0, 1 - lower / best) * 100) + " %" : "-");
        for (const name of ["evaluated", "bound", "open"]) put(name, last[at[name]].toLocaleString("en"));
      }
      draw();
      if (found.status === "stopped") { document.getElementById("live-title").textContent = document.getElementById("live-title").textContent.replace(/running$/, "stopped"); return; }
    } catch { return; }
    setTimeout(ask, 1000);
  };
  redraw.push(draw);
  ask();
}
