// Two columns together, as a picture of cells.

import { byId, color, visible } from "./dom.js";
import { place, shown, ticks } from "./format.js";

const LEFT = 96, BOTTOM = 44, MARGIN = 8;

export function draw(panels, pair, joint) {
  const canvas = byId("joint");
  const { width, height } = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const box = { x: LEFT, y: MARGIN, width: width - LEFT - MARGIN, height: height - BOTTOM - MARGIN };
  cells(pen, box, joint.cells);
  labels(pen, box, panels[pair[0]], joint.across, true);
  labels(pen, box, panels[pair[1]], joint.down, false);
  const [a, b] = pair.map((i) => panels[i].name);
  const said = `joint distribution of ${a} and ${b}; the densest cell is at ${densest(panels, pair, joint)}`;
  canvas.setAttribute("aria-label", visible(said));
}

function cells(pen, box, rows) {
  const [wide, high] = [box.width / rows[0].length, box.height / rows.length];
  pen.fillStyle = color("wash");
  pen.fillRect(box.x, box.y, box.width, box.height);
  pen.fillStyle = color("now");
  rows.forEach((row, j) => row.forEach((p, i) => {
    if (!p) return;
    pen.globalAlpha = Math.sqrt(p / 1000);
    const [x, y] = [Math.round(box.x + i * wide), Math.round(box.y + box.height - (j + 1) * high)];
    pen.fillRect(x, y, Math.round(box.x + (i + 1) * wide) - x, Math.round(box.y + box.height - j * high) - y);
  }));
  pen.globalAlpha = 1;
}

// Positions from 0 to 1 and their texts, along an axis or in the middle of each level.
function named(panel, part, most) {
  if (Array.isArray(part)) {
    return part.map((k, i) => [(i + 0.5) / part.length, panel.levels[k] ?? "other"]);
  }
  if (panel.whole) {
    const every = Math.ceil(panel.marks.length / most);
    return panel.marks.map((x, i) => [(i + 0.5) / panel.marks.length, shown(panel, x)])
      .filter((_, i) => i % every === 0);
  }
  return ticks(panel, most).map((x) => [place(panel, x), shown(panel, x)]);
}

function labels(pen, box, panel, part, across) {
  pen.fillStyle = color("soft");
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const room = across ? box.width / (Array.isArray(part) ? part.length : 6) - 6 : LEFT - 30;
  for (const [share, text] of named(panel, part, across ? 6 : 5)) {
    pen.textAlign = across ? "center" : "right";
    const said = cut(pen, visible(text), room);
    if (across) pen.fillText(said, box.x + share * box.width, box.y + box.height + 13);
    else pen.fillText(said, box.x - 7, box.y + (1 - share) * box.height);
  }
  pen.fillStyle = color("ink");
  pen.font = "600 12px system-ui, sans-serif";
  pen.textAlign = "center";
  if (across) {
    pen.fillText(cut(pen, visible(panel.name), box.width), box.x + box.width / 2, box.y + box.height + 33);
    return;
  }
  pen.save();
  pen.translate(10, box.y + box.height / 2);
  pen.rotate(-Math.PI / 2);
  pen.fillText(cut(pen, visible(panel.name), box.height), 0, 0);
  pen.restore();
}

function cut(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let short = text;
  while (short.length > 1 && pen.measureText(`${short}…`).width > room) short = short.slice(0, -1);
  return `${short}…`;
}

function densest(panels, pair, joint) {
  let [best, at] = [-1, [0, 0]];
  joint.cells.forEach((row, j) => row.forEach((p, i) => { if (p > best) [best, at] = [p, [i, j]]; }));
  const counts = [joint.cells[0].length, joint.cells.length];
  return pair.map((index, turn) => {
    const panel = panels[index];
    const part = turn ? joint.down : joint.across;
    if (Array.isArray(part)) return panel.levels[part[at[turn]]] ?? "other";
    if (panel.whole) return shown(panel, panel.marks[at[turn]]);
    const s = panel.low + ((at[turn] + 0.5) / counts[turn]) * (panel.high - panel.low);
    return shown(panel, panel.log ? 10 ** s : s);
  }).join(", ");
}
