// Two rows of a list that are picked open their comparison.
for (const button of document.querySelectorAll("[data-compares]")) {
  const table = document.getElementById(button.dataset.of), line = button.nextElementSibling, boxes = [...table.querySelectorAll("[data-pick]")];
  const picked = () => boxes.filter((box) => box.checked).map((box) => box.dataset.pick);
  const tell = () => { const keys = picked(); button.disabled = keys.length !== 2; line.textContent = keys.length === 2 ? "" : keys.length + " of 2 chosen"; };
  for (const box of boxes) { box.checked = false; box.addEventListener("change", tell); }
  button.addEventListener("click", () => { const [a, b] = picked(); location.href = button.dataset.compares + "?a=" + a + "&b=" + b; });
}
