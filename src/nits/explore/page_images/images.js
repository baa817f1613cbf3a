// A model of images: pixels are painted or forgotten, and what is unknown is completed.

import { json } from "./api.js";
import { byId, color, make } from "./dom.js";
import { hatched, heat, painted } from "./pixels.js";

const state = { model: null, pixels: [], at: [0, 0], busy: false, seed: 0 };

start();

async function start() {
  try {
    state.model = await json("describe");
    const { title, channels, height, width, levels, images } = state.model;
    byId("title").textContent = title;
    document.title = `${title} · nits explore`;
    state.pixels = Array(channels * height * width).fill(null);
    byId("editor").style.aspectRatio = `${width} / ${height}`;
    byId("level").max = levels - 1;
    byId("level").value = levels - 1;
    byId("grey").hidden = channels === 3;
    byId("colour").hidden = channels !== 3;
    byId("folder").hidden = images === 0;
    byId("number").max = images;
    controls();
    level();
    new ResizeObserver(draw).observe(byId("editor"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    await work(fresh);
  } catch (error) {
    problem(error.message);
  }
}

function controls() {
  const editor = byId("editor");
  editor.addEventListener("pointerdown", press);
  editor.addEventListener("keydown", key);
  editor.addEventListener("focus", () => { told(); draw(); });
  editor.addEventListener("blur", draw);
  byId("level").addEventListener("input", level);
  byId("draw").addEventListener("click", () => work(fresh));
  byId("picked").addEventListener("click", () => work(async () => {
    set((await json("picked", { number: Number(byId("number").value) })).pixels);
  }));
  byId("half").addEventListener("click", () => forget((i) => i >= state.model.height / 2));
  byId("none").addEventListener("click", () => forget(() => true));
  byId("complete").addEventListener("click", () => work(complete));
  byId("measure").addEventListener("click", () => work(measure));
}

// Runs one question at a time, and says so.
async function work(task) {
  if (state.busy) return;
  state.busy = true;
  document.body.setAttribute("aria-busy", "true");
  byId("status").textContent = "Drawing …";
  try {
    await task();
    problem(null);
  } catch (error) {
    problem(error.message);
  }
  state.busy = false;
  document.body.removeAttribute("aria-busy");
  count();
  document.dispatchEvent(new CustomEvent("answered"));
}

async function fresh() {
  state.seed += 1;
  set((await json("drawn", { seed: state.seed })).pixels);
}

async function complete() {
  state.seed += 1;
  const found = await json("complete", { pixels: state.pixels, seed: state.seed });
  const shown = found.images.map((pixels, k) => ({ pixels, name: `completion ${k + 1}` }));
  shown.push({ pixels: found.mean, name: "mean of all" });
  byId("gallery").replaceChildren(...shown.map(thumbnail));
  const all = found.count;
  const worth = found.exact ? "exact: what is known comes first in reading order"
    : `effective sample size ${found.ess.toFixed(1)} at the worst pixel; what is known above the unknown is given exactly`;
  const cost = found.known ? ` The known pixels cost ${found.bits.toFixed(1)} bits${found.exact ? "" : ", estimated"}.` : "";
  byId("how").textContent = `${found.images.length} of ${all} completions; ${worth}.${cost}`;
}

function thumbnail({ pixels, name }) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  painted(canvas, state.model, pixels);
  const button = make("button", { type: "button", "aria-label": `go on with ${name}`, onclick: () => { set(pixels); count(); } }, canvas);
  return make("figure", {}, button, make("figcaption", {}, name));
}

async function measure() {
  const found = await json("bits", { pixels: state.pixels });
  const canvas = byId("bits");
  canvas.hidden = false;
  const { channels } = state.model;
  const each = [];
  for (let k = 0; k < found.each.length; k += channels) each.push(found.each.slice(k, k + channels).reduce((a, b) => a + b));
  heat(canvas, state.model, each, [color("card"), color("told")]);
  const worst = each.indexOf(Math.max(...each));
  const { width } = state.model;
  byId("total").textContent = `${found.total.toFixed(1)} bits in all, ${(found.total / found.each.length).toFixed(3)} for each value; `
    + `most, ${each[worst].toFixed(1)}, in row ${Math.floor(worst / width) + 1}, column ${(worst % width) + 1}.`;
}

function set(pixels) {
  state.pixels = [...pixels];
  stale();
  draw();
}

// What was said of the bits is no longer of these pixels.
function stale() {
  byId("bits").hidden = true;
  byId("total").textContent = "How much each pixel of a whole image surprises, given those before it.";
}

function forget(which) {
  const { channels, width } = state.model;
  state.pixels = state.pixels.map((value, k) => (which(Math.floor(k / channels / width)) ? null : value));
  stale();
  draw();
  count();
}

function count() {
  const known = state.pixels.filter((value) => value !== null).length / state.model.channels;
  const all = state.model.width * state.model.height;
  byId("status").textContent = `${known} of ${all} pixels known`;
  byId("measure").disabled = known < all;
}

function level() {
  byId("value").textContent = byId("level").value;
}

const forgetting = () => document.querySelector("input[name=tool]:checked").value === "forget";

// The values of the colour that is chosen.
function chosen() {
  if (state.model.channels === 1) return [Number(byId("level").value)];
  const hex = byId("pick").value;
  return [1, 3, 5].map((k) => Math.round((parseInt(hex.slice(k, k + 2), 16) / 255) * (state.model.levels - 1)));
}

function touch(i, j, erase, around = Number(byId("brush").value)) {
  const { channels, height, width } = state.model;
  const values = chosen();
  for (let a = Math.max(0, i - around); a <= Math.min(height - 1, i + around); a += 1) {
    for (let b = Math.max(0, j - around); b <= Math.min(width - 1, j + around); b += 1) {
      for (let c = 0; c < channels; c += 1) state.pixels[(a * width + b) * channels + c] = erase ? null : values[c];
    }
  }
  stale();
  draw();
  count();
}

function press(event) {
  if (event.button !== 0) return;
  const editor = byId("editor");
  editor.setPointerCapture(event.pointerId);
  const move = (e) => {
    const box = editor.getBoundingClientRect();
    const { height, width } = state.model;
    const i = Math.floor(((e.clientY - box.top) / box.height) * height);
    const j = Math.floor(((e.clientX - box.left) / box.width) * width);
    if (i < 0 || j < 0 || i >= height || j >= width) return;
    state.at = [i, j];
    touch(i, j, forgetting());
  };
  const stop = () => editor.removeEventListener("pointermove", move);
  editor.addEventListener("pointermove", move);
  editor.addEventListener("pointerup", stop, { once: true });
  editor.addEventListener("pointercancel", stop, { once: true });
  move(event);
}

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function key(event) {
  const { height, width } = state.model;
  if (event.key in MOVES) {
    const [a, b] = MOVES[event.key];
    state.at = [Math.min(height - 1, Math.max(0, state.at[0] + a)), Math.min(width - 1, Math.max(0, state.at[1] + b))];
    draw();
  } else if (event.key === " " || event.key === "Enter") touch(...state.at, forgetting());
  else if (event.key === "Delete" || event.key === "Backspace") touch(...state.at, true);
  else return;
  event.preventDefault();
  told();
}

function told() {
  const [i, j] = state.at;
  const { channels, width } = state.model;
  const values = state.pixels.slice((i * width + j) * channels, (i * width + j + 1) * channels);
  const said = values[0] === null ? "unknown" : values.join(", ");
  byId("cursor").textContent = `row ${i + 1}, column ${j + 1}: ${said}`;
}

function draw() {
  const canvas = byId("editor");
  hatched(canvas, state.model, state.pixels, {
    ground: color("wash"), line: color("ghost"), focus: color("told"),
    at: document.activeElement === canvas ? state.at : null,
  });
}

function problem(sentence) {
  const top = byId("error");
  top.hidden = !sentence;
  top.textContent = sentence ?? "";
}
