// Numbers, times and probabilities as people read them.

const UNITS = [[86400e3 * 366 * 4, 4], [86400e3 * 3, 10], [60e3 * 60, 16], [0, 19]];

export function number(x, digits = 4) {
  if (x == null) return "–";
  if (x !== 0 && (Math.abs(x) >= 1e9 || Math.abs(x) < 1e-4)) return x.toExponential(2);
  return new Intl.NumberFormat("en", { maximumSignificantDigits: digits }).format(x);
}

export function percent(p) {
  if (p == null) return "–";
  if (p > 0 && p < 0.0005) return "< 0.1 %";
  return `${(100 * p).toFixed(p < 0.0995 ? 1 : 0)} %`;
}

// A value of an axis, for reading.
export function shown(panel, x, span = panel.high - panel.low) {
  if (x == null) return "–";
  if (panel.what === "time") return time(x, span);
  const text = number(x);
  return panel.what === "duration" ? `${text} s` : text;
}

function time(x, span) {
  const length = UNITS.find(([least]) => span >= least)[1];
  return new Date(x).toISOString().slice(0, length).replace("T", " ");
}

// A value of an axis, as the server reads it.
export function written(panel, x) {
  if (panel.what === "time") return new Date(x).toISOString().slice(0, 19);
  return String(Number(x.toPrecision(12)));
}

export function read(panel, text) {
  const plain = text.trim();
  if (panel.what === "time") return Date.parse(/[zZ]$/.test(plain) ? plain : `${plain}Z`);
  return plain === "" ? NaN : Number(plain);
}

export const scaled = (panel, x) => (panel.log ? Math.log10(Math.max(x, 1e-300)) : x);
export const unscaled = (panel, s) => (panel.log ? 10 ** s : s);

export function place(panel, x) {
  return Math.min(1, Math.max(0, (scaled(panel, x) - panel.low) / (panel.high - panel.low)));
}

// The value at a place from 0 to 1, as round as the picture can tell apart.
export function valueAt(panel, share) {
  const at = panel.low + (panel.high - panel.low) * Math.min(1, Math.max(0, share));
  const x = unscaled(panel, at);
  if (panel.whole) return nearest(panel.marks, x);
  const step = stepAt(panel, x);
  return Math.round(x / step) * step;
}

function nearest(values, x) {
  return values.reduce((best, v) => (Math.abs(v - x) < Math.abs(best - x) ? v : best), values[0]);
}

// A step of 1, 2 or 5 times a power of ten that is about a hundredth of the axis.
export function stepAt(panel, x) {
  const width = panel.log ? Math.abs(x) * (10 ** ((panel.high - panel.low) / 120) - 1)
    : (panel.high - panel.low) / 120;
  if (panel.what === "time") return timeStep(width);
  const round = niceStep(width);
  return panel.step > 0 ? Math.max(panel.step, Math.round(round / panel.step) * panel.step) : round;
}

function timeStep(width) {
  const steps = [1e3, 10e3, 60e3, 600e3, 3600e3, 21600e3, 86400e3, 7 * 86400e3, 30 * 86400e3];
  return steps.find((step) => step >= width / 2) ?? 365 * 86400e3;
}

export function niceStep(width) {
  const power = 10 ** Math.floor(Math.log10(width));
  return [1, 2, 5, 10].find((m) => m * power >= width * 0.8) * power;
}

// Where to put labels: a few round values between the ends.
export function ticks(panel, most = 4) {
  if (panel.whole) {
    const every = Math.ceil(panel.marks.length / most);
    return panel.marks.filter((_, i) => i % every === 0);
  }
  if (panel.log) return logTicks(panel, most);
  const width = (panel.high - panel.low) / most;
  const step = panel.what === "time" ? width : niceStep(width);
  const first = panel.what === "time" ? panel.low + step / 2 : Math.ceil(panel.low / step) * step;
  const found = [];
  for (let x = first; x <= panel.high; x += step) found.push(Math.abs(x) < step / 1e6 ? 0 : x);
  return found;
}

function logTicks(panel, most) {
  const found = [];
  for (let power = Math.floor(panel.low); power <= panel.high; power += 1) {
    for (const m of [1, 2, 5]) {
      const x = m * 10 ** power;
      if (scaled(panel, x) >= panel.low && scaled(panel, x) <= panel.high) found.push(x);
    }
  }
  const every = Math.ceil(found.length / (most + 1));
  return found.filter((_, i) => i % every === 0);
}
