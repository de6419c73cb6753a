// One state for the whole page: the plan that is shown (its key in the address), the calculator, deltas of the waterfall.
const blocks = [...document.querySelectorAll("[data-plan]")], keys = [...new Set(blocks.map((block) => block.dataset.plan))];
const chooser = document.getElementById("plan"), radios = [...document.querySelectorAll('input[name="plan"]')];
const { shown } = window.phaze, facts = window.phaze.numbers.plans || {};
const first = keys[0] || "best";
let current = first;
const counts = { k: 1e3, M: 1e6, B: 1e9, G: 1e9, T: 1e12 };
const parsed = (text) => { const match = /^\s*([\d.]+)\s*([kMBGT]?)\s*$/.exec(text); return match ? Number(match[1]) * (counts[match[2]] || 1) : NaN; };
const priced = () => {
  const of = (name) => parsed(document.getElementById("cost-" + name).value);
  const fact = facts[current];
  if (!fact || !document.getElementById("cost-tokens")) return;
  const days = of("tokens") / fact.tokens_per_s / 86400, hours = days * 24 * fact.devices;
  const usd = hours * of("usd"), mwh = hours * of("watts") * of("pue") / 1e6;
  const put = (name, text) => { for (const node of document.querySelectorAll('[data-cost="' + name + '"]')) node.textContent = text; };
  const three = (value) => Number.isFinite(value) ? shown(Number(value.toPrecision(3))) : "unknown";
  put("days", three(days)); put("hours", three(hours)); put("usd", three(usd)); put("mwh", three(mwh));
};
const deltas = () => {
  const select = document.getElementById("against");
  if (!select) return;
  const base = document.querySelector('[data-fall="' + select.value + '"]');
  for (const fall of document.querySelectorAll("[data-fall]")) for (const row of fall.querySelectorAll("[data-step]")) {
    const cell = row.querySelector(".delta");
    if (!base || select.value === fall.dataset.fall) { cell.textContent = ""; continue; }
    const other = [...base.querySelectorAll("[data-step]")].find((one) => one.dataset.step === row.dataset.step);
    const gap = Number(row.dataset.s) - (other ? Number(other.dataset.s) : 0);
    cell.textContent = Math.abs(gap) < 5e-4 * Number(fall.dataset.total || 1) ? "" : (gap > 0 ? "+" : "-") + shown(Math.abs(gap)) + " s";
    cell.className = "r delta " + (gap < 0 ? "good" : "bad");
  }
};
const show = (key, keep) => {
  if (!keys.includes(key)) key = first;
  current = key;
  for (const block of blocks) block.hidden = block.dataset.plan !== key;
  for (const radio of radios) { radio.checked = radio.value === key; radio.closest("tr").classList.toggle("on", radio.checked); }
  if (chooser) chooser.value = key;
  for (const link of document.querySelectorAll("nav a[data-part]")) link.setAttribute("href", "#" + link.dataset.part + (key === first ? "" : "-" + key));
  if (!keep) window.phaze.address.set("plan", key === first ? null : key);
  priced(); deltas();
  for (const draw of window.phaze.redraw) draw();
};
const addressed = () => {
  const part = /^#[a-z]+-([a-z0-9]+)$/.exec(location.hash), found = window.phaze.address.get("plan") || (part && part[1]);
  return keys.includes(found) ? found : null;
};
if (chooser) chooser.addEventListener("change", () => show(chooser.value));
for (const radio of radios) radio.addEventListener("change", () => show(radio.value));
addEventListener("hashchange", () => { const key = addressed(); if (key && key !== current) show(key, true); });
for (const field of document.querySelectorAll("[id^=cost-]")) field.addEventListener("input", priced);
const select = document.getElementById("against");
if (select) select.addEventListener("change", deltas);
for (const tab of document.querySelectorAll("[data-tab]")) tab.addEventListener("click", () => {
  for (const other of tab.closest("[data-part]").querySelectorAll("[data-tab]")) {
    other.setAttribute("aria-pressed", other === tab);
    document.getElementById(other.dataset.tab).hidden = other !== tab;
  }
});
show(addressed() || first, true);
