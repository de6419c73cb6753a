// A design has its own address: #design=12 shows it whole and pins it.
const boxes = [...document.querySelectorAll("[data-design]")], place = document.getElementById("design");
const addressed = () => {
  const found = /^#design=(\d+)$/.exec(location.hash);
  for (const box of boxes) box.hidden = !found || box.dataset.design !== found[1];
  place.hidden = !found;
  if (!found) return;
  if (window.phaze.pin) window.phaze.pin(Number(found[1]));
  place.scrollIntoView();
};
addEventListener("hashchange", addressed);
addressed();
