// Tables that are sorted by a click on a column, searched, saved, paged; one whose rows can be pinned shows what the plot shows.
for (const table of document.querySelectorAll("table[data-paged]")) {
  const body = table.tBodies[0], rows = [...body.rows], each = Math.ceil(Number(table.dataset.paged) / (innerWidth < 740 ? 2 : 1)), pager = document.getElementById(table.dataset.pager);
  const before = pager.querySelector("[data-go=before]"), after = pager.querySelector("[data-go=after]"), place = pager.querySelector("[data-place]");
  let page = 0, order = rows, kept = null;
  const show = () => {
    const there = order.filter((row) => !kept || kept.has(Number(row.dataset.at)));
    const pages = Math.max(1, Math.ceil(there.length / each));
    page = Math.max(0, Math.min(pages - 1, page));
    body.replaceChildren(...there.slice(page * each, (page + 1) * each));
    place.textContent = "Page " + (page + 1) + " of " + pages + ", " + there.length.toLocaleString("en") + " rows";
    before.disabled = page === 0; after.disabled = page === pages - 1;
  };
  before.addEventListener("click", () => { page--; show(); });
  after.addEventListener("click", () => { page++; show(); });
  const sorted = (head) => {
    const at = head.cellIndex, down = head.getAttribute("aria-sort") !== "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => { const cell = row.cells[at], number = Number(cell.dataset.value); return cell.dataset.value !== undefined && Number.isFinite(number) ? number : cell.textContent.trim(); };
    order = [...rows].sort((a, b) => { const u = value(a), v = value(b), gap = typeof u === "number" && typeof v === "number" ? u - v : String(u).localeCompare(String(v)); return down ? -gap : gap; });
    page = 0; show();
  };
  for (const button of table.querySelectorAll("th button")) button.addEventListener("click", () => sorted(button.closest("th")));
  if (table.dataset.sorted) sorted(table.tHead.rows[0].cells[Number(table.dataset.sorted)]);
  const seek = document.querySelector('[data-seeks="' + table.id + '"]');
  let words = "";
  const sifted = (set) => { const text = words; kept = !set && !text ? null : new Set(rows.filter((row) => (!set || set.has(Number(row.dataset.at))) && (!text || row.textContent.toLowerCase().includes(text))).map((row) => Number(row.dataset.at))); page = 0; show(); };
  let last = null;
  if (body.querySelector("[data-pin]")) window.phaze.filtered = (set) => { last = set; sifted(set); };
  if (seek) seek.addEventListener("input", () => { words = seek.value.toLowerCase(); sifted(last); });
  const saves = document.querySelector('[data-csv="' + table.id + '"]');
  if (saves) saves.addEventListener("click", () => {
    const quoted = (text) => /[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text, line = (row) => [...row.cells].map((cell) => quoted(cell.textContent.trim())).join(",");
    window.phaze.save(saves.dataset.file, [table.tHead.rows[0], ...order].map(line).join("\n") + "\n", "text/csv");
  });
  show();
  if (window.phaze.filtered) window.phaze.ready();
}
