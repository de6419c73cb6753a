// Timelines that can be zoomed and moved: numbers.timelines[key] holds the blocks of every lane, times in steps of end / 2^32.
const { unpack, colour, redraw } = window.phaze, lines = window.phaze.numbers.timelines || {};
const seconds = (value) => value === 0 ? "0" : value >= 1 ? value.toPrecision(4) + " s" : value >= 1e-3 ? (value * 1e3).toPrecision(4) + " ms" : (value * 1e6).toPrecision(3) + " us";
for (const canvas of document.querySelectorAll("canvas[data-timeline]")) {
  const given = lines[canvas.dataset.timeline], said = document.getElementById("said-" + canvas.dataset.timeline);
  const lanes = given.lanes.length, scale = given.end / 4294967295, total = given.end;
  const [lane, start, length, kind, pale, word] = ["lane", "start", "length", "kind", "pale", "word"].map((name) => unpack(given[name]));
  const events = Array.from(lane, (row, index) => ({
    lane: row, from: start[index] * scale, to: (start[index] + length[index]) * scale,
    colour: given.colours[kind[index]], alpha: 1 - pale[index] / 255, name: given.words[word[index]][0], symbol: given.words[word[index]][1],
  }));
  let from = 0, to = total, hovered = null;
  const left = 58, top = 20;
  const box = () => ({ wide: canvas.clientWidth, high: canvas.clientHeight, tall: (canvas.clientHeight - top) / lanes });
  const x = (time, wide) => left + (time - from) / (to - from) * (wide - left);
  const draw = () => {
    const ratio = window.devicePixelRatio || 1, { wide, high, tall } = box();
    if (!wide) return;
    canvas.width = wide * ratio; canvas.height = high * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio); pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = colour("soft"); pen.textAlign = "left";
    for (let step = 0; step < 5; step++) {
      const time = from + (to - from) * step / 5, place = x(time, wide);
      pen.fillText(seconds(time), place + 2, 12); pen.fillRect(place, 0, 1, high);
    }
    const every = Math.max(1, Math.ceil(14 / tall));
    for (let row = 0; row < lanes; row += every) pen.fillText(given.lanes[row], 2, top + row * tall + Math.min(tall, 18) / 2 + 4);
    for (const event of events) {
      if (event.to < from || event.from > to) continue;
      const begin = Math.max(left, x(event.from, wide)), end = x(event.to, wide);
      pen.globalAlpha = event.alpha; pen.fillStyle = colour(event.colour);
      pen.fillRect(begin, top + event.lane * tall, Math.max(0.6, end - begin - (end - begin > 3 ? 1 : 0)), Math.max(1, tall - 1));
      if (event.symbol && end - begin > 26 && tall > 13) { pen.globalAlpha = 1; pen.fillStyle = colour("paper"); pen.fillText(event.symbol, begin + 4, top + event.lane * tall + tall / 2 + 4); }
    }
    pen.globalAlpha = 1;
    if (given.skipped) {
      const [first, last] = given.skipped, begin = Math.max(left, x(first, wide)), end = Math.min(wide, x(last, wide));
      if (end > begin) { pen.fillStyle = colour("groove"); pen.fillRect(begin, top, end - begin, high - top); pen.fillStyle = colour("ink"); pen.textAlign = "center"; if (end - begin > 150) pen.fillText("the same pattern, not drawn", (begin + end) / 2, top + (high - top) / 2); pen.textAlign = "left"; }
    }
    if (hovered) { pen.strokeStyle = colour("ink"); pen.lineWidth = 2; const begin = Math.max(left, x(hovered.from, wide)); pen.strokeRect(begin, top + hovered.lane * tall, x(hovered.to, wide) - begin, tall - 1); }
  };
  const show = (begin, end) => {
    const span = Math.min(total, Math.max(total / 5000, end - begin));
    from = Math.max(0, Math.min(total - span, begin)); to = from + span; draw();
    canvas.dataset.from = from; canvas.dataset.to = to;
  };
  const zoom = (factor, middle = (from + to) / 2) => show(middle - (middle - from) * factor, middle + (to - middle) * factor);
  const warm = Math.min(total, given.zoom);
  const act = { in: () => zoom(0.5), out: () => zoom(2), all: () => show(0, total), start: () => show(0, warm), end: () => show(total - warm, total) };
  for (const button of document.querySelectorAll('[data-line="' + canvas.dataset.timeline + '"]')) button.addEventListener("click", () => act[button.dataset.zoom]());
  canvas.addEventListener("keydown", (event) => {
    const span = to - from, move = { ArrowRight: 0.2, ArrowLeft: -0.2 }[event.key];
    if (move) show(from + move * span, to + move * span);
    else if (event.key === "+" || event.key === "=") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (event.key === "Home") act.start(); else if (event.key === "End") act.end(); else if (event.key === "Escape") act.all();
    else return;
    event.preventDefault();
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const { wide } = box(), share = (event.offsetX - left) / (wide - left);
    zoom(event.deltaY > 0 ? 1.25 : 0.8, from + share * (to - from));
  }, { passive: false });
  let dragged = null;
  canvas.addEventListener("pointerdown", (event) => { dragged = { x: event.offsetX, from, to }; });
  addEventListener("pointerup", () => { dragged = null; });
  canvas.addEventListener("pointermove", (event) => {
    const { wide, tall } = box();
    if (dragged) { const moved = (dragged.x - event.offsetX) / (wide - left) * (dragged.to - dragged.from); show(dragged.from + moved, dragged.to + moved); return; }
    const time = from + (event.offsetX - left) / (wide - left) * (to - from), row = Math.floor((event.offsetY - top) / tall);
    const block = events.find((event) => event.lane === row && event.from <= time && time <= event.to) || null;
    if (block === hovered) return;
    hovered = block; draw();
    if (block) said.textContent = given.lanes[block.lane] + ", " + block.name + ": " + seconds(block.from) + " to " + seconds(block.to);
  });
  redraw.push(draw);
  if (warm < total / 3) show(0, warm * 1.5); else show(0, total);
}
