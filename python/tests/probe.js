// Draws all figures of a page in a frame, uses them, and puts what it found where --dump-dom shows it.
const frame = document.querySelector("iframe");
const found = { errors: [] };
const tick = () => new Promise((resolve) => setTimeout(resolve, 50));
async function probe() {
  const view = frame.contentWindow, page = frame.contentDocument;
  view.addEventListener("error", (event) => found.errors.push(event.message));
  view.dispatchEvent(new view.Event("beforeprint"));
  await tick();
  const panels = [...page.querySelectorAll(".panel")];
  found.panels = panels.length;
  found.drawn = panels.filter((panel) => panel.querySelector(".main-svg")).length;
  found.width = page.documentElement.scrollWidth;
  found.narrow = panels.filter((panel) => panel.clientWidth < 250).length;
  const curve = panels[0], range = () => curve.layout.xaxis.range.map(Number);
  found.before = range();
  curve.querySelector('[data-title="Zoom in"]').dispatchEvent(new view.MouseEvent("click", { bubbles: true }));
  await tick();
  found.after = range();
  found.together = [...curve.closest("figure").querySelectorAll(".panel")].map((panel) => panel.layout.xaxis.range.map(Number));
  view.Plotly.Fx.hover(curve, [{ curveNumber: 1, pointNumber: 5 }]);
  found.hover = curve.querySelector(".hoverlayer").textContent;
  const button = page.querySelector(".legend button");
  const visible = () => curve.data.filter((trace) => trace.meta === button.dataset.name).map((t) => t.visible);
  button.click();
  await tick();
  found.off = visible();
  button.click();
  await tick();
  found.on = visible();
  found.resources = view.performance.getEntriesByType("resource").map((entry) => entry.name);
  document.body.innerHTML = "<pre>" + JSON.stringify(found).replaceAll("<", "&lt;") + "</pre>";
}
frame.addEventListener("load", () => probe().catch((error) => {
  document.body.innerHTML = "<pre>" + JSON.stringify({ ...found, failed: String(error) }) + "</pre>";
}));
