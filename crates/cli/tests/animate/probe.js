// Uses an animated map as a person would, and logs what it found in one line. Runs in front of the page's script.
"use strict";
const found = { errors: [], painted: [] };
addEventListener("error", (event) => found.errors.push(event.message));
addEventListener("unhandledrejection", (event) => found.errors.push(String(event.reason)));
console.error = (...what) => found.errors.push(what.join(" "));
// No finger has touched the screen.
Element.prototype.setPointerCapture = () => {};

// What each frame paints.
let painted = 0;
for (const name of ["stroke", "fill", "fillRect", "strokeText", "fillText"]) {
  const paint = CanvasRenderingContext2D.prototype[name];
  CanvasRenderingContext2D.prototype[name] = function (...what) {
    painted += 1;
    return paint.apply(this, what);
  };
}

// The words on the map: in one frame, and of all frames the words, and those that lay on each other.
let written = [];
const words = new Set(), covered = new Set();
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  if (this.canvas.id === "map") {
    const { actualBoundingBoxLeft: left, actualBoundingBoxRight: right, actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } = this.measureText(text);
    const box = { text, left: x - left, right: x + right, top: y - up, bottom: y + down };
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (box.left < width && box.right > 0 && box.top < height && box.bottom > 0) {
      for (const other of written) {
        const apart = box.left >= other.right || box.right <= other.left || box.top >= other.bottom || box.bottom <= other.top;
        if (!apart) covered.add(`${text} on ${other.text} at ${clock()} s`);
      }
      written.push(box);
      words.add(text);
    }
  }
  return write.call(this, text, x, y);
};
const request = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (draw) => request((now) => {
  painted = 0;
  written = [];
  draw(now);
  found.painted.push(painted);
});

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const clock = () => parseFloat(document.querySelector("#clock").textContent);
const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
/** Waits until the map has been drawn so often again. */
async function drawn(times) {
  const since = found.painted.length;
  for (let n = 0; n < 300 && found.painted.length < since + times; n++) await wait(100);
}
function pointer(type, element, [x, y]) {
  const { left, top } = element.getBoundingClientRect();
  element.dispatchEvent(new PointerEvent(type, { clientX: left + x, clientY: top + y, buttons: 1, pointerId: 1, bubbles: true }));
}
function ink() {
  const map = document.querySelector("#map");
  const { data } = map.getContext("2d").getImageData(0, 0, map.width, map.height);
  let count = 0;
  for (let i = 3; i < data.length; i += 4) count += data[i] > 0;
  return count / (data.length / 4);
}

async function probe() {
  const timeline = document.querySelector("#timeline"), map = document.querySelector("#map");
  await drawn(1);
  found.start = clock();
  press(" ");
  // At most 5 s of the run: a frame counts for a quarter of a second, however late it is.
  await drawn(20);
  found.played = clock();
  found.label = document.querySelector("#play").textContent;
  press(" ");
  await wait(100);
  found.paused = clock();
  await wait(300);
  found.still = clock();
  pointer("pointerdown", timeline, [timeline.clientWidth / 2, 40]);
  await wait(200);
  found.scrubbed = clock();
  press("ArrowRight");
  await wait(200);
  found.further = clock();
  press(".");
  await wait(200);
  found.stepped = clock();
  press("Home");
  await wait(200);
  found.home = clock();
  pointer("pointerdown", timeline, [timeline.clientWidth / 2, 40]);
  for (let n = 0; n < 4; n++) press("-");
  found.speed = document.querySelector("#speed").textContent;
  document.querySelector("#flows button").click();
  await wait(200);
  found.flows = [...document.querySelectorAll("#flows button")].map((row) => row.textContent);
  found.ink = ink();
  found.width = document.documentElement.scrollWidth;
  found.room = innerWidth;
  found.map = [map.clientWidth, map.clientHeight];
  found.words = [...words];
  found.covered = [...covered].slice(0, 10);
  found.overlap = document.querySelector("#controls").scrollWidth > document.querySelector("#controls").clientWidth;
  found.resources = performance.getEntriesByType("resource").map((entry) => entry.name);
}
addEventListener("load", () => probe().catch((error) => found.errors.push(String(error)))
  .then(() => console.log("found " + JSON.stringify({ ...found, frames: found.painted.length, painted: Math.max(...found.painted) }))));
