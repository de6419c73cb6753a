// What every page does: say what is pointed at, copy, save, and offer numbers and colours to the other scripts.
const numbers = (() => { const held = document.getElementById("numbers"); return held ? JSON.parse(held.textContent) : {}; })();
window.phaze = {
  numbers,
  unpack: (packed) => {
    const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
    return packed.bytes === 2 ? new Uint16Array(bytes.buffer) : packed.bytes === 4 ? new Uint32Array(bytes.buffer) : bytes;
  },
  colour: (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(),
  shown: (value) => !Number.isFinite(value) ? "-" : Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en")
    : value === 0 ? "0" : String(Number(value.toPrecision(3))),
  made: (tag, text, kind) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  },
  save: (name, text, kind) => {
    const link = document.createElement("a"), url = URL.createObjectURL(new Blob([text], { type: kind || "text/plain" }));
    link.href = url; link.download = name; link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  },
  // What is chosen on the page, kept in its address: #plan=a2&baseline=b200. A section's own address holds no choice.
  address: {
    get: (name) => location.hash.includes("=") ? new URLSearchParams(location.hash.slice(1)).get(name) : null,
    set: (name, value) => {
      const kept = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
      if (value === null) kept.delete(name); else kept.set(name, value);
      const text = kept.toString();
      history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
    },
  },
  redraw: [],
};
const say = (event) => {
  const shape = event.target.closest && event.target.closest("[data-say]");
  if (!shape) return;
  let around = shape, line = null;
  while (around && !line) { around = around.parentElement; line = around && around.querySelector(".say"); }
  if (line) line.textContent = shape.dataset.say;
};
document.addEventListener("pointerover", say);
document.addEventListener("click", say);
document.addEventListener("click", (event) => {
  const button = event.target.closest && event.target.closest("[data-copies],[data-saves]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copies || button.dataset.saves);
  if (button.dataset.saves) { window.phaze.save(button.dataset.file, text.textContent); return; }
  const before = button.dataset.label || button.textContent;
  button.dataset.label = before;
  const told = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = before; }, 1500); };
  const byHand = () => {
    const range = document.createRange(), chosen = getSelection();
    range.selectNodeContents(text); chosen.removeAllRanges(); chosen.addRange(range);
    if (document.execCommand("copy")) told();
  };
  if (navigator.clipboard) navigator.clipboard.writeText(text.textContent).then(told, byHand); else byHand();
});
const again = () => { for (const draw of window.phaze.redraw) draw(); };
addEventListener("resize", again);
addEventListener("beforeprint", again);
addEventListener("afterprint", again);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
matchMedia("print").addEventListener("change", again);
