// The chip that all ratios are to: choosing another changes the title, the bars, the outline and the tables at once.
const besides = [...document.querySelectorAll("[data-baseline]")], names = [...new Set(besides.map((block) => block.dataset.baseline))];
const pick = document.getElementById("baseline"), { address } = window.phaze;
const beside = (name, keep) => {
  const chosen = names.includes(name) ? name : names[0];
  for (const block of besides) block.toggleAttribute("hidden", block.dataset.baseline !== chosen);
  if (pick) pick.value = chosen;
  if (!keep) address.set("baseline", chosen === names[0] ? null : chosen);
};
if (pick) {
  pick.addEventListener("change", () => beside(pick.value));
  addEventListener("hashchange", () => { const name = address.get("baseline"); if (name) beside(name, true); });
  beside(address.get("baseline"), true);
}
