// Designs on free axes: filters, colour, two pinned designs side by side, the staircase of the best.
// numbers.scatter: columns {name, unit, more, values | packed}, fields {name, values, packed}, exact, names, numbers, best, x, y.
const { unpack, colour, shown, made, redraw, save } = window.phaze, all = window.phaze.numbers.scatter;
if (all) {
  const canvas = document.getElementById("plot"), panel = document.getElementById("pinned"), told = document.getElementById("shown-count");
  const levels = 65535;
  const columns = all.columns.map((one) => {
    if (one.values) return { ...one, at: one.values, least: Math.min(...one.values), most: Math.max(...one.values) };
    const steps = unpack(one), at = Float64Array.from(steps, (step) => one.least + (one.most - one.least) * step / levels);
    return { ...one, at };
  });
  const fields = all.fields.map((one) => ({ ...one, at: unpack(one) }));
  const count = columns[0].at.length, exact = all.exact ? unpack(all.exact) : new Uint8Array(count).fill(1);
  const numbered = Array.isArray(all.numbers) ? all.numbers : all.numbers ? unpack(all.numbers) : null, stands = all.stands ? unpack(all.stands) : null, closed = all.closed ? unpack(all.closed) : null;
  const nameOf = (at) => all.names ? all.names[at] : "chip " + (numbered ? numbered[at] : at);
  const pick = { x: document.getElementById("axis-x"), y: document.getElementById("axis-y"), colour: document.getElementById("axis-colour") };
  const boxes = [...document.querySelectorAll("[data-pin]")];
  let x = columns[all.x], y = columns[all.y], tint = "known", pins = all.pins || [all.best], slot = 0, hovered = -1, visible = [], line = [];
  const onlyExact = document.getElementById("only-exact"), limits = new Map();
  const passes = (at) => {
    if (onlyExact && onlyExact.checked && !exact[at]) return false;
    for (const [test, value] of limits.values()) if (!test(at, value)) return false;
    return true;
  };
  const sift = () => {
    visible = [];
    for (let at = 0; at < count; at++) if (passes(at)) visible.push(at);
    const worse = x.more ? -1 : 1, better = y.more ? 1 : -1;
    const order = [...visible].sort((a, b) => worse * (x.at[a] - x.at[b]) || better * (y.at[b] - y.at[a]));
    line = [];
    let most = -Infinity;
    for (const at of order) if (better * y.at[at] > most) { most = better * y.at[at]; line.push(at); }
    const stood = stands ? visible.reduce((sum, at) => sum + stands[at], 0) : visible.length;
    if (told) told.textContent = stood.toLocaleString("en") + " of " + (stands ? stands.reduce((a, b) => a + b, 0) : count).toLocaleString("en") + " shown";
    if (window.phaze.filtered) window.phaze.filtered(new Set(visible));
  };
  const span = (column) => { let low = Infinity, high = -Infinity; for (const at of visible) { low = Math.min(low, column.at[at]); high = Math.max(high, column.at[at]); }
    if (!(high > low)) { low = (low || 0) - 0.5; high = low + 1; } const room = (high - low) * 0.04; return { low: column.floor !== undefined && low > 0 ? Math.min(low - room, column.floor) : low - room, high: high + room }; };
  const ticks = ({ low, high }) => { const wide = (high - low) / 5, ten = 10 ** Math.floor(Math.log10(wide)), step = ten * [1, 2, 5, 10].find((times) => ten * times >= wide), found = [];
    for (let value = Math.ceil(low / step) * step; value <= high; value += step) found.push(Math.abs(value) < step / 1e6 ? 0 : value); return found; };
  const edge = { left: 66, right: 14, top: 24, bottom: 38 };
  const hues = ["tensor", "vector", "buffer", "network", "hbm", "links", "peak", "other"];
  const shades = (share) => { const dark = matchMedia("(prefers-color-scheme: dark)").matches, low = dark ? [35, 64, 111] : [176, 204, 245], high = dark ? [200, 222, 255] : [8, 42, 110];
    return "rgb(" + low.map((one, at) => Math.round(one + (high[at] - one) * share)).join(",") + ")"; };
  let placed = null;
  const draw = () => {
    const ratio = window.devicePixelRatio || 1, wide = canvas.clientWidth, high = canvas.clientHeight;
    if (!wide) return;
    canvas.width = wide * ratio; canvas.height = high * ratio;
    const pen = canvas.getContext("2d"), sx = span(x), sy = span(y);
    pen.scale(ratio, ratio); pen.font = "12px system-ui, sans-serif";
    const px = (at) => edge.left + (x.at[at] - sx.low) / (sx.high - sx.low) * (wide - edge.left - edge.right);
    const py = (at) => high - edge.bottom - (y.at[at] - sy.low) / (sy.high - sy.low) * (high - edge.top - edge.bottom);
    placed = { px, py };
    const soft = colour("soft"), grid = colour("line");
    for (const value of ticks(sx)) { const at = edge.left + (value - sx.low) / (sx.high - sx.low) * (wide - edge.left - edge.right);
      pen.fillStyle = grid; pen.fillRect(at, edge.top, 1, high - edge.top - edge.bottom); pen.fillStyle = soft; pen.textAlign = "center"; pen.fillText(shown(value), at, high - edge.bottom + 15); }
    for (const value of ticks(sy)) { const at = high - edge.bottom - (value - sy.low) / (sy.high - sy.low) * (high - edge.top - edge.bottom);
      pen.fillStyle = grid; pen.fillRect(edge.left, at, wide - edge.left - edge.right, 1); pen.fillStyle = soft; pen.textAlign = "right"; pen.fillText(shown(value), edge.left - 6, at + 4); }
    pen.fillStyle = soft; pen.textAlign = "right"; pen.fillText(x.name + (x.unit ? ", " + x.unit : ""), wide - edge.right, high - 6);
    pen.textAlign = "left"; pen.fillText(y.name + (y.unit ? ", " + y.unit : ""), 6, 14);
    const field = tint[0] === "f" ? fields[Number(tint.slice(1))] : null, scale = tint[0] === "c" ? columns[Number(tint.slice(1))] : null, ss = scale ? span(scale) : null;
    const points = colour("point"), good = colour("good"), cached = hues.map(colour);
    const many = visible.length > 4000;
    for (const at of visible) {
      pen.fillStyle = field ? cached[field.at[at] % cached.length] : scale ? shades((scale.at[at] - ss.low) / (ss.high - ss.low)) : exact[at] ? good : points;
      if (!exact[at]) { pen.globalAlpha = many ? 0.4 : 0.75; pen.fillRect(px(at) - 1.2, py(at) - 1.2, 2.4, 2.4); }
    }
    pen.globalAlpha = 1;
    pen.strokeStyle = colour("front"); pen.lineWidth = 1.5; pen.beginPath();
    line.forEach((at, step) => { if (step) { pen.lineTo(px(at), py(line[step - 1])); pen.lineTo(px(at), py(at)); } else pen.moveTo(px(at), py(at)); });
    pen.stroke();
    for (const at of visible) if (exact[at]) { pen.fillStyle = field ? cached[field.at[at] % cached.length] : scale ? shades((scale.at[at] - ss.low) / (ss.high - ss.low)) : good;
      pen.beginPath(); pen.arc(px(at), py(at), visible.length > 600 ? 3 : 4.2, 0, 7); pen.fill(); }
    pen.font = "600 13px system-ui, sans-serif"; pen.textAlign = "center";
    pins.forEach((at, step) => { if (at === undefined || at < 0 || !visible.includes(at)) return; pen.strokeStyle = colour("ink"); pen.lineWidth = 2; pen.beginPath(); pen.arc(px(at), py(at), 8, 0, 7); pen.stroke();
      pen.fillStyle = colour("ink"); pen.fillText("AB"[step], px(at), py(at) - 12); });
    if (hovered >= 0) { pen.strokeStyle = colour("link"); pen.lineWidth = 2; pen.beginPath(); pen.arc(px(hovered), py(hovered), 7, 0, 7); pen.stroke(); }
  };
  const tell = () => {
    const table = made("table"), head = made("tr"), body = made("tbody"), top = made("thead");
    const [a, b] = [pins[0], pins[1]], both = a !== undefined && b !== undefined;
    const cell = (text, kind, tag) => made(tag || "td", text, kind);
    head.append(cell("", "", "td"), cell("A", "r", "th")); head.children[1].scope = "col";
    if (both) { head.append(cell("B", "r", "th"), cell("B vs A", "r", "th")); head.children[2].scope = head.children[3].scope = "col"; }
    top.append(head);
    const row = (name, of, gap) => { const tr = made("tr"), th = made("th", name), kind = gap ? "r" : "r words"; th.scope = "row"; tr.append(th, cell(of(a), kind)); if (both) tr.append(cell(of(b), kind), cell(gap ? gap() : "", "r")); body.append(tr); };
    row("design", nameOf);
    for (const column of columns) row(column.name + (column.unit ? ", " + column.unit : ""), (at) => (exact[at] || !column.bound ? "" : "at most ") + shown(column.at[at]),
      () => column.at[a] ? (column.at[b] / column.at[a] >= 1 ? "+" : "") + ((column.at[b] / column.at[a] - 1) * 100).toFixed(1) + " %" : "");
    for (const one of fields) row(one.name, (at) => one.values[one.at[at]]);
    if (closed) row("decided by", (at) => all.reasons[closed[at]] + (exact[at] ? ", exact" : ""));
    if (stands) row("drawn for", (at) => stands[at].toLocaleString("en"));
    if (all.links) { const tr = made("tr"), th = made("th", "page"); th.scope = "row"; tr.append(th); for (const at of both ? [a, b] : [a]) { const td = made("td", "", "r"); if (all.links[at]) { const link = made("a", "Open"); link.href = all.links[at]; td.append(link); } tr.append(td); } if (both) tr.append(made("td", "")); body.append(tr); }
    table.append(top, body); panel.replaceChildren(table); panel.dataset.pins = pins.join(" ");
    for (const box of boxes) { box.checked = pins.includes(Number(box.dataset.pin)); box.closest("tr,.card").classList.toggle("on", box.checked); }
  };
  const pin = (at) => { if (at < 0) return; pins[slot] = at; if (slot === 0 && pins.length === 1) slot = 1; press(); tell(); draw(); };
  const slots = [...document.querySelectorAll("[data-slot]")];
  const press = () => { for (const button of slots) button.setAttribute("aria-pressed", Number(button.dataset.slot) === slot); };
  for (const button of slots) button.addEventListener("click", () => { slot = Number(button.dataset.slot); press(); });
  const unpin = (at) => { pins = pins.filter((one) => one !== at); if (!pins.length) pins = [all.best]; slot = pins.length > 1 ? 1 : 0; press(); tell(); draw(); };
  for (const box of boxes) box.addEventListener("change", () => (box.checked ? pin : unpin)(Number(box.dataset.pin)));
  document.addEventListener("chosen", ({ detail }) => { if (detail.name === "design" && detail.key !== null) pin(Number(detail.key)); });
  const nearest = (event) => {
    let found = -1, least = 500;
    if (placed) for (const at of visible) { const far = (placed.px(at) - event.offsetX) ** 2 + (placed.py(at) - event.offsetY) ** 2 - (exact[at] ? 16 : 0); if (far < least) { least = far; found = at; } }
    return found;
  };
  const said = document.getElementById("plot-said");
  const speak = (at) => { if (said && at >= 0) said.textContent = nameOf(at) + ": " + y.name + " " + (exact[at] || !y.bound ? "" : "at most ") + shown(y.at[at]) + " " + y.unit + ", " + x.name + " " + shown(x.at[at]) + " " + x.unit; };
  canvas.addEventListener("pointermove", (event) => { const at = nearest(event); if (at !== hovered) { hovered = at; speak(at); draw(); } });
  canvas.addEventListener("pointerleave", () => { hovered = -1; draw(); });
  canvas.addEventListener("click", (event) => pin(nearest(event)));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pin(hovered); return; }
    if (!step || !line.length) return;
    event.preventDefault();
    const now = line.indexOf(hovered);
    hovered = line[now < 0 ? line.length - 1 : Math.max(0, Math.min(line.length - 1, now + step))]; speak(hovered); draw();
  });
  const update = () => { x = columns[Number(pick.x.value)]; y = columns[Number(pick.y.value)]; tint = pick.colour ? pick.colour.value : "known"; hovered = -1; sift(); draw(); };
  for (const select of Object.values(pick)) if (select) select.addEventListener("change", update);
  if (onlyExact) onlyExact.addEventListener("change", update);
  for (const select of document.querySelectorAll("[data-field]")) select.addEventListener("change", () => {
    const field = fields[Number(select.dataset.field)];
    if (select.value === "") limits.delete("f" + select.dataset.field); else limits.set("f" + select.dataset.field, [(at, value) => field.at[at] === value, Number(select.value)]);
    update();
  });
  for (const input of document.querySelectorAll("[data-limit]")) input.addEventListener("input", () => {
    const column = columns[Number(input.dataset.limit)], value = Number(input.value);
    if (input.value === "" || !Number.isFinite(value)) limits.delete("c" + input.dataset.limit);
    else limits.set("c" + input.dataset.limit, [(at, most) => column.more ? column.at[at] >= most : column.at[at] <= most, value]);
    update();
  });
  const reset = document.getElementById("reset");
  if (reset) reset.addEventListener("click", () => { limits.clear(); for (const input of document.querySelectorAll("[data-field],[data-limit]")) input.value = ""; if (onlyExact) onlyExact.checked = false;
    pick.x.value = all.x; pick.y.value = all.y; if (pick.colour) pick.colour.value = "known"; update(); });
  const csv = document.getElementById("save-csv");
  if (csv) csv.addEventListener("click", () => {
    const quoted = (text) => /[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
    const head = ["design", "exact", ...columns.map((one) => one.name + (one.unit ? " (" + one.unit + ")" : "")), ...fields.map((one) => one.name)];
    const rows = visible.map((at) => [nameOf(at), exact[at] ? "yes" : "no", ...columns.map((one) => String(Number(one.at[at].toPrecision(6)))), ...fields.map((one) => one.values[one.at[at]])]);
    save(csv.dataset.file, [head, ...rows].map((row) => row.map(quoted).join(",")).join("\n") + "\n", "text/csv");
  });
  redraw.push(draw);
  window.phaze.ready = () => { sift(); press(); tell(); draw(); };
  window.phaze.ready();
}
