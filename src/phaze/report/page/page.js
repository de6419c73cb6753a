"use strict";
(() => {
  const say = (event) => {
    const shape = event.target.closest && event.target.closest("[data-say]");
    if (!shape) return;
    const line = shape.closest("section").querySelector(".say");
    if (line) line.textContent = shape.dataset.say;
  };
  document.addEventListener("pointerover", say);
  document.addEventListener("click", say);

  document.addEventListener("click", (event) => {
    const button = event.target.closest && event.target.closest("[data-copies]");
    if (!button) return;
    const text = document.getElementById(button.dataset.copies);
    const told = () => { button.textContent = "copied"; setTimeout(() => { button.textContent = "copy"; }, 1500); };
    const byHand = () => {
      const range = document.createRange();
      range.selectNodeContents(text);
      const chosen = getSelection();
      chosen.removeAllRanges();
      chosen.addRange(range);
      if (document.execCommand("copy")) told();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text.textContent).then(told, byHand);
    else byHand();
  });

  const numbers = document.getElementById("chips");
  if (!numbers) return;
  const all = JSON.parse(numbers.textContent);
  const unpack = (packed) => {
    const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
    return packed.bytes === 2 ? new Uint16Array(bytes.buffer) : packed.bytes === 4 ? new Uint32Array(bytes.buffer) : bytes;
  };
  const levels = 65535;
  const height = unpack(all.height), closed = unpack(all.closed), exact = unpack(all.exact);
  const axes = all.axes.map((axis) => ({ ...axis, at: unpack(axis) }));
  const fields = all.fields.map((field) => ({ ...field, at: unpack(field) }));
  const numbered = all.numbers ? unpack(all.numbers) : null, stands = all.stands ? unpack(all.stands) : null;
  const real = (scale, step) => scale.least + (scale.most - scale.least) * step / levels;
  const shown = (value) => value >= 1000 ? Math.round(value).toLocaleString("en") : value.toPrecision(4).replace(/\.?0+$/, "");
  const part = (scale, value) => (value - scale.least) / (scale.most - scale.least || 1);
  const ticks = (scale) => {
    const span = (scale.most - scale.least || 1) / 4, ten = 10 ** Math.floor(Math.log10(span));
    const step = ten * [1, 2, 5, 10].find((times) => ten * times >= span), found = [];
    for (let value = Math.ceil(scale.least / step - 1e-9) * step; value <= scale.most * (1 + 1e-9); value += step) found.push(value);
    return found;
  };
  const canvas = document.getElementById("cloud"), panel = document.getElementById("picked");
  const tabs = [...document.querySelectorAll("[data-axis]")];
  let axis = 0, picked = all.best, hovered = -1;

  const fronts = axes.map(({ at }) => {
    const order = [...height.keys()].sort((a, b) => at[a] - at[b] || height[b] - height[a]);
    const front = [];
    let most = -1;
    for (const chip of order) if (height[chip] > most) { most = height[chip]; front.push(chip); }
    return front;
  });
  const light = { ink: "#000", soft: "#444", point: "#7b8797", good: "#15803d", bad: "#b42318", front: "#d97706", link: "#1d5fc4" };
  const colours = (forPaper) => {
    if (forPaper) return light;
    const style = getComputedStyle(document.documentElement);
    return Object.fromEntries(Object.keys(light).map((name) => [name, style.getPropertyValue("--" + name).trim()]));
  };
  const edge = { left: 62, right: 14, top: 26, bottom: 40 };
  const place = () => {
    const wide = canvas.clientWidth - edge.left - edge.right, high = canvas.clientHeight - edge.top - edge.bottom;
    return { x: (chip) => edge.left + axes[axis].at[chip] / levels * wide, y: (chip) => edge.top + (1 - height[chip] / levels) * high, wide, high };
  };

  const draw = (forPaper) => {
    const ratio = window.devicePixelRatio || 1, wide = canvas.clientWidth, high = canvas.clientHeight;
    if (!wide) return;
    canvas.width = wide * ratio; canvas.height = high * ratio;
    const pen = canvas.getContext("2d"), tint = colours(forPaper === true), at = place(), scale = axes[axis];
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif"; pen.lineWidth = 1;
    const tick = (value, text, x, y, across) => {
      pen.strokeStyle = tint.soft; pen.globalAlpha = 0.25; pen.beginPath();
      pen.moveTo(x, y); pen.lineTo(across ? edge.left + at.wide : x, across ? y : edge.top); pen.stroke();
      pen.globalAlpha = 1; pen.fillStyle = tint.soft; pen.textAlign = across ? "right" : "center";
      pen.fillText(text, across ? x - 7 : x, across ? y + 4 : y + 16);
    };
    for (const value of ticks(all.height)) tick(value, shown(value), edge.left, edge.top + at.high * (1 - part(all.height, value)), true);
    for (const value of ticks(scale)) tick(value, shown(value), edge.left + at.wide * part(scale, value), edge.top + at.high, false);
    pen.textAlign = "right"; pen.fillText(scale.name + ", " + scale.unit, edge.left + at.wide, edge.top + at.high + 32);
    pen.textAlign = "left"; pen.fillText(all.height.name, 8, 15);
    pen.fillStyle = tint.point; pen.globalAlpha = height.length > 4000 ? 0.35 : 0.7;
    for (let chip = 0; chip < height.length; chip++) if (!exact[chip]) pen.fillRect(at.x(chip) - 1, at.y(chip) - 1, 2, 2);
    pen.globalAlpha = 1; pen.strokeStyle = tint.front; pen.lineWidth = 1.5; pen.beginPath();
    fronts[axis].forEach((chip, step) => { const x = at.x(chip), y = at.y(chip);
      if (step) { pen.lineTo(x, at.y(fronts[axis][step - 1])); pen.lineTo(x, y); } else pen.moveTo(x, y); });
    pen.stroke();
    const disc = exact.reduce((sum, one) => sum + one, 0) > 500 ? 1.4 : 3.5;
    for (let chip = 0; chip < height.length; chip++) if (exact[chip]) {
      pen.fillStyle = tint.good; pen.beginPath(); pen.arc(at.x(chip), at.y(chip), disc, 0, 7); pen.fill(); }
    const ring = (chip, colour, size) => { if (chip < 0) return; pen.strokeStyle = colour; pen.lineWidth = 2; pen.beginPath(); pen.arc(at.x(chip), at.y(chip), size, 0, 7); pen.stroke(); };
    ring(all.best, tint.bad, 8); ring(hovered, tint.ink, 6); if (picked !== all.best) ring(picked, tint.link, 7);
  };

  const tell = (chip) => {
    const list = document.createElement("dl"), name = document.createElement("b");
    name.textContent = (chip === all.best ? "the answer: chip " : "chip ") + (numbered ? numbered[chip] : chip);
    const add = (term, value) => {
      const dt = document.createElement("dt"), dd = document.createElement("dd"), both = document.createElement("div");
      dt.textContent = term; dd.textContent = value; both.append(dt, dd); list.append(both);
    };
    add(all.height.name.replace(/,.*/, ""), (exact[chip] ? "" : "at most ") + shown(real(all.height, height[chip])) + " " + all.height.unit);
    for (const scale of axes) add(scale.name, shown(real(scale, scale.at[chip])) + " " + scale.unit);
    for (const field of fields) add(field.name, field.values[field.at[chip]]);
    add("excluded by", all.reasons[closed[chip]] + (exact[chip] ? ", exact" : ""));
    if (stands && stands[chip] > 1) add("drawn for", stands[chip].toLocaleString("en") + " chips alike");
    panel.replaceChildren(name, list);
    panel.dataset.chip = chip;
  };
  const nearest = (event) => {
    const box = canvas.getBoundingClientRect(), at = place();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    let found = -1, least = 900;
    for (let chip = 0; chip < height.length; chip++) {
      const far = (at.x(chip) - x) ** 2 + (at.y(chip) - y) ** 2 - (exact[chip] ? 16 : 0);
      if (far < least) { least = far; found = chip; }
    }
    return found;
  };
  const pick = (chip) => { if (chip >= 0) { picked = chip; tell(chip); draw(); } };
  canvas.addEventListener("pointermove", (event) => { const chip = nearest(event); if (chip !== hovered) { hovered = chip; tell(chip < 0 ? picked : chip); draw(); } });
  canvas.addEventListener("pointerleave", () => { hovered = -1; tell(picked); draw(); });
  canvas.addEventListener("click", (event) => pick(nearest(event)));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const front = fronts[axis], now = front.indexOf(picked);
    pick(front[Math.max(0, Math.min(front.length - 1, now < 0 ? front.length - 1 : now + step))]);
  });
  for (const row of document.querySelectorAll("tr[data-chip]")) row.addEventListener("click", () => pick(Number(row.dataset.chip)));
  for (const tab of tabs) tab.addEventListener("click", () => {
    axis = Number(tab.dataset.axis);
    for (const other of tabs) other.setAttribute("aria-pressed", other === tab);
    draw();
  });
  addEventListener("resize", draw);
  addEventListener("beforeprint", () => draw(true));
  addEventListener("afterprint", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  tell(picked); draw();
})();
