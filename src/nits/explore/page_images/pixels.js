// Pixels on canvases.

// Draws an image of known pixels, one to one.
export function painted(canvas, model, pixels) {
  const { channels, height, width, levels } = model;
  canvas.width = width;
  canvas.height = height;
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(width, height);
  for (let k = 0; k < width * height; k += 1) {
    for (let c = 0; c < 3; c += 1) {
      image.data[4 * k + c] = (255 * pixels[k * channels + (channels === 3 ? c : 0)]) / (levels - 1);
    }
    image.data[4 * k + 3] = 255;
  }
  pen.putImageData(image, 0, 0);
}

// Draws an image at the canvas's size; unknown pixels are hatched, and a frame stands around `at`.
export function hatched(canvas, model, pixels, { ground, line, focus, at }) {
  const { channels, height, width, levels } = model;
  const box = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  const size = Math.max(1, Math.round((box.width * ratio) / width));
  canvas.width = size * width;
  canvas.height = size * height;
  const pen = canvas.getContext("2d");
  pen.fillStyle = ground;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.strokeStyle = line;
  pen.lineWidth = Math.max(1, size / 14);
  for (let i = 0; i < height; i += 1) {
    for (let j = 0; j < width; j += 1) {
      const k = (i * width + j) * channels;
      if (pixels[k] === null) {
        pen.beginPath();
        pen.moveTo(j * size, (i + 1) * size);
        pen.lineTo((j + 1) * size, i * size);
        pen.stroke();
        continue;
      }
      const rgb = [0, 1, 2].map((c) => Math.round((255 * pixels[k + (channels === 3 ? c : 0)]) / (levels - 1)));
      pen.fillStyle = `rgb(${rgb.join(" ")})`;
      pen.fillRect(j * size, i * size, size, size);
    }
  }
  if (!at) return;
  pen.strokeStyle = focus;
  pen.lineWidth = Math.max(2, size / 8);
  pen.strokeRect(at[1] * size, at[0] * size, size, size);
}

// Draws a number for each pixel, from one colour to another.
export function heat(canvas, model, each, ends) {
  const { height, width } = model;
  canvas.width = width;
  canvas.height = height;
  const pen = canvas.getContext("2d");
  const most = Math.max(...each, 1e-9);
  each.forEach((x, k) => {
    const [i, j] = [Math.floor(k / width), k % width];
    pen.globalAlpha = 1;
    pen.fillStyle = ends[0];
    pen.fillRect(j, i, 1, 1);
    pen.globalAlpha = Math.min(1, x / most);
    pen.fillStyle = ends[1];
    pen.fillRect(j, i, 1, 1);
  });
  pen.globalAlpha = 1;
}
