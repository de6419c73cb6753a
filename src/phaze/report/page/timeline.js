// The pipeline as a timeline that can be zoomed and moved: numbers.timelines[key] holds starts by stage, in steps of end / 2^32.
const { unpack, colour, redraw } = window.phaze, lines = window.phaze.numbers.timelines || {};
const seconds = (value) => value === 0 ? "0" : value >= 1 ? value.toPrecision(4) + " s" : value >= 1e-3 ? (value * 1e3).toPrecision(4) + " ms" : (value * 1e6).toPrecision(3) + " us";
for (const canvas of document.querySelectorAll("canvas[data-timeline]")) {
  const held = lines[canvas.dataset.timeline], said = document.getElementById("said-" + canvas.dataset.timeline);
  if (!held) continue;
  const stages = held.forward.length, scale = held.end / 4294967295;
  const passes = [["forward", unpack(held.forward_starts), held.forward], ["backward", unpack(held.backward_starts), held.backward]];
  if (held.weight) passes.push(["weight", unpack(held.weight_starts), held.weight]);
  const events = [];
  for (const [name, starts, lengths] of passes) {
    const each = starts.length / stages;
    for (let at = 0; at < starts.length; at++) {
      const stage = Math.floor(at / each);
      events.push({ name, stage, number: held.pieces[at % each], from: starts[at] * scale, to: starts[at] * scale + lengths[stage] });
    }
  }
  const total = held.end + held.tail;
  let from = 0, to = total, hovered = null;
  const left = 58, top = 20;
  const box = () => ({ wide: canvas.clientWidth, high: canvas.clientHeight, lane: (canvas.clientHeight - top) / stages });
  const x = (time, wide) => left + (time - from) / (to - from) * (wide - left);
  const draw = () => {
    const ratio = window.devicePixelRatio || 1, { wide, high, lane } = box();
    if (!wide) return;
    canvas.width = wide * ratio; canvas.height = high * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio); pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = colour("soft"); pen.textAlign = "left";
    for (let step = 0; step < 5; step++) {
      const time = from + (to - from) * step / 5, place = x(time, wide);
      pen.fillText(seconds(time), place + 2, 12); pen.fillRect(place, 0, 1, high);
    }
    const every = Math.max(1, Math.ceil(14 / lane));
    for (let stage = 0; stage < stages; stage += every) pen.fillText("stage " + stage, 2, top + stage * lane + Math.min(lane, 18) / 2 + 4);
    for (const event of events) {
      if (event.to < from || event.from > to) continue;
      const start = Math.max(left, x(event.from, wide)), end = x(event.to, wide);
      pen.globalAlpha = held.chunks > 1 ? 1 - 0.55 * (event.number % held.chunks) / (held.chunks - 1) : 1;
      pen.fillStyle = colour(event.name);
      pen.fillRect(start, top + event.stage * lane, Math.max(0.6, end - start - (end - start > 3 ? 1 : 0)), Math.max(1, lane - 1));
      if (end - start > 26 && lane > 13 && held.chunks === 1) { pen.globalAlpha = 1; pen.fillStyle = colour("paper"); pen.fillText(String(event.number), start + 4, top + event.stage * lane + lane / 2 + 4); }
    }
    pen.globalAlpha = 1;
    if (held.tail > 0 && to > held.end) { pen.fillStyle = colour("sync"); const start = Math.max(left, x(held.end, wide)); pen.fillRect(start, top, Math.max(1, x(total, wide) - start), high - top); }
    if (held.skipped) {
      const [begin, end] = held.skipped, start = Math.max(left, x(begin, wide)), stop = Math.min(wide, x(end, wide));
      if (stop > start) { pen.fillStyle = colour("groove"); pen.fillRect(start, top, stop - start, high - top); pen.fillStyle = colour("ink"); pen.textAlign = "center"; if (stop - start > 150) pen.fillText("the same pattern, not drawn", (start + stop) / 2, top + (high - top) / 2); pen.textAlign = "left"; }
    }
    if (hovered) { pen.strokeStyle = colour("ink"); pen.lineWidth = 2; const start = Math.max(left, x(hovered.from, wide)); pen.strokeRect(start, top + hovered.stage * lane, x(hovered.to, wide) - start, lane - 1); }
  };
  const show = (begin, end) => {
    const span = Math.min(total, Math.max(total / 5000, end - begin));
    from = Math.max(0, Math.min(total - span, begin)); to = from + span; draw();
    canvas.dataset.from = from; canvas.dataset.to = to;
  };
  const zoom = (factor, middle = (from + to) / 2) => show(middle - (middle - from) * factor, middle + (to - middle) * factor);
  const warm = Math.min(total, held.warm);
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
  let held_at = null;
  canvas.addEventListener("pointerdown", (event) => { held_at = { x: event.offsetX, from, to }; });
  addEventListener("pointerup", () => { held_at = null; });
  canvas.addEventListener("pointermove", (event) => {
    const { wide, lane } = box();
    if (held_at) { const moved = (held_at.x - event.offsetX) / (wide - left) * (held_at.to - held_at.from); show(held_at.from + moved, held_at.to + moved); return; }
    const time = from + (event.offsetX - left) / (wide - left) * (to - from), stage = Math.floor((event.offsetY - top) / lane);
    const found = events.find((one) => one.stage === stage && one.from <= time && time <= one.to) || null;
    if (found === hovered) return;
    hovered = found; draw();
    if (found && said) {
      const number = held.chunks > 1 ? Math.floor(found.number / held.chunks) + ", chunk " + found.number % held.chunks : found.number;
      said.textContent = "stage " + found.stage + ", " + found.name + " of microbatch " + number + ": " + seconds(found.from) + " to " + seconds(found.to);
    }
  });
  redraw.push(draw);
  if (warm < total / 3) show(0, warm * 1.5); else show(0, total);
}
