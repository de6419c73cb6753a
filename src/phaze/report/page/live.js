// A page that phaze view makes anew while something runs: what has changed is put in its place, and nothing else is touched.
const every = Number(document.body.dataset.refresh) * 1000, told = document.getElementById("live-note");
// Rows of a list by the address of their run, all of them: those of other pages too.
const keyed = (page) => new Map([...page.querySelectorAll("tr[data-key]")].map((row) => [row.dataset.key, row]));
const rows = keyed(document);
// A list is sorted and paged here: its cells are renewed where they stand.
const renewed = (page) => {
  const fresh = keyed(page);
  if (fresh.size !== rows.size || [...fresh.keys()].some((key) => !rows.has(key))) return false;
  for (const [key, row] of fresh) [...row.cells].forEach((cell, at) => {
    const old = rows.get(key).cells[at];
    if (!cell.querySelector("input") && old.innerHTML !== cell.innerHTML) old.replaceChildren(...cell.childNodes);
  });
  return true;
};
// Sections that differ are replaced; what was unfolded, said or in focus stays so.
const reached = "summary,a,button,[tabindex]";
const replaced = (page) => {
  const main = document.querySelector("main"), next = page.querySelector("main");
  const focus = [...main.querySelectorAll(reached)].indexOf(document.activeElement);
  const kept = (kind, take) => {
    const old = [...main.querySelectorAll(kind)];
    next.querySelectorAll(kind).forEach((part, at) => { if (old[at]) take(part, old[at]); });
  };
  kept("details", (part, old) => { part.open = old.open; });
  kept(".say", (part, old) => { part.textContent = old.textContent; });
  const old = [...main.children], fresh = [...next.children];
  if (old.length !== fresh.length) main.replaceChildren(...fresh);
  else old.forEach((section, at) => { if (section.outerHTML !== fresh[at].outerHTML) section.replaceWith(fresh[at]); });
  const there = focus < 0 ? null : main.querySelectorAll(reached)[focus];
  if (there && there !== document.activeElement) there.focus({ preventScroll: true });
};
const refresh = async () => {
  try {
    const answer = await fetch(location.pathname), page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (page.body.dataset.refresh === undefined) { location.reload(); return; }
    if (!rows.size) replaced(page);
    else if (!renewed(page)) { location.reload(); return; }
  } catch { told.textContent = "The server has ended."; return; }
  setTimeout(refresh, every);
};
setTimeout(refresh, every);
