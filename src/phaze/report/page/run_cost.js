// What a training run takes, reckoned anew when a term is changed; all of a page have the same terms.
const prefixes = { k: 1e3, M: 1e6, B: 1e9, G: 1e9, T: 1e12 };
const parsed = (text) => { const match = /^\s*([\d.]+)\s*([kMBGT]?)\s*$/.exec(text); return match ? Number(match[1]) * (prefixes[match[2]] || 1) : NaN; };
const costs = [...document.querySelectorAll("[data-run-cost]")];
const reckon = (cost) => {
  const term = (name) => parsed(cost.querySelector('[data-term="' + name + '"]').value);
  const days = term("tokens") / Number(cost.dataset.rate) / 86400, hours = days * 24 * Number(cost.dataset.devices);
  const amounts = { days, "device hours": hours, USD: hours * term("usd"), MWh: hours * term("watts") * term("pue") / 1e6 };
  for (const [name, amount] of Object.entries(amounts)) {
    cost.querySelector('[data-cost="' + name + '"]').textContent = Number.isFinite(amount) ? window.phaze.shown(Number(amount.toPrecision(3))) : "unknown";
  }
};
for (const cost of costs) cost.addEventListener("input", (event) => {
  for (const other of costs) other.querySelector('[data-term="' + event.target.dataset.term + '"]').value = event.target.value;
  costs.forEach(reckon);
});
