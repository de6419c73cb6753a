// Variants: of all blocks of a chooser one is shown. Choosing changes every block of that chooser, and what shows the
// choice; the address keeps it (#plan=a2), but not that of tabs.
const { address, redraw, shown } = window.phaze;
const blocks = [...document.querySelectorAll("[data-chooser]")], controls = [...document.querySelectorAll("[data-chooses]")];
const choosers = new Map();
for (const { dataset } of blocks) {
  const chooser = choosers.get(dataset.chooser) || { keys: [], optional: "optional" in dataset, local: "local" in dataset };
  if (!chooser.keys.includes(dataset.key)) chooser.keys.push(dataset.key);
  choosers.set(dataset.chooser, chooser);
}
const firstOf = (name) => choosers.get(name).optional ? null : choosers.get(name).keys[0];
const choose = (name, wanted, keep) => {
  const { keys, local } = choosers.get(name), first = firstOf(name), key = keys.includes(wanted) ? wanted : first;
  for (const block of blocks) if (block.dataset.chooser === name) block.toggleAttribute("hidden", block.dataset.key !== key);
  for (const control of controls) {
    if (control.dataset.chooses !== name) continue;
    if (control.tagName === "SELECT") control.value = key;
    else if (control.tagName === "BUTTON") control.setAttribute("aria-pressed", control.value === key);
    else { control.checked = control.value === key; control.closest("tr").classList.toggle("on", control.checked); }
  }
  for (const link of document.querySelectorAll("nav a[data-anchor]")) {
    const anchor = link.dataset.anchor, there = document.getElementById(anchor + "-" + key);
    const varies = document.getElementById(anchor).closest('[data-chooser="' + name + '"]');
    if (varies) link.setAttribute("href", "#" + (key !== first && there ? there.id : anchor));
  }
  if (!keep && !local) address.set(name, key === first ? null : key);
  document.dispatchEvent(new CustomEvent("chosen", { detail: { name, key } }));
  for (const draw of redraw) draw();
};
for (const control of controls) control.addEventListener(control.tagName === "BUTTON" ? "click" : "change", () => choose(control.dataset.chooses, control.value));
// An address names a choice, or a part: then the variants around that part are chosen.
const addressed = (again) => {
  const part = location.hash.length > 1 && !location.hash.includes("=") ? document.getElementById(location.hash.slice(1)) : null;
  for (const [name, { optional }] of choosers) {
    const around = part && part.closest('[data-chooser="' + name + '"]'), key = address.get(name) || (around && around.dataset.key);
    if (key || !again) choose(name, key, true);
    if (key && optional) document.querySelector('[data-chooser="' + name + '"]:not([hidden])').scrollIntoView();
  }
};
addEventListener("hashchange", () => addressed(true));
addressed(false);
// Rows of a breakdown compared with those of another variant.
const compare = (base) => {
  for (const fall of document.querySelectorAll("[data-fall]")) for (const row of fall.querySelectorAll("[data-step]")) {
    const cell = row.querySelector(".delta"), same = base && base.dataset.fall !== fall.dataset.fall;
    const other = same && [...base.querySelectorAll("[data-step]")].find((step) => step.dataset.step === row.dataset.step);
    const gap = same ? Number(row.dataset.s) - (other ? Number(other.dataset.s) : 0) : 0;
    const total = Number([...fall.querySelectorAll("[data-step]")].pop().dataset.s);
    cell.textContent = Math.abs(gap) < 5e-4 * total ? "" : (gap > 0 ? "+" : "-") + shown(Math.abs(gap)) + " s";
    cell.className = "r delta " + (gap < 0 ? "good" : "bad");
  }
};
const selects = [...document.querySelectorAll("select.against")];
for (const select of selects) select.addEventListener("change", () => {
  for (const other of selects) other.value = select.value;
  compare(document.querySelector('[data-fall="' + select.value + '"]'));
});
