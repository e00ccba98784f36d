// Copies a diagram as SVG or PNG. Where the browser lets no page copy pictures (without https), the PNG is saved as a file.
"use strict";

const SHARPNESS = 2; // pixels of the PNG for each one of the drawing

async function asPng(address) {
  const picture = new Image();
  picture.src = address;
  await picture.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.naturalWidth * SHARPNESS, picture.naturalHeight * SHARPNESS];
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

async function copyPng(link) {
  if (navigator.clipboard && globalThis.ClipboardItem) {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": asPng(link.href) })]);
    return "Copied";
  }
  const saved = document.createElement("a");
  saved.href = URL.createObjectURL(await asPng(link.href));
  saved.download = `${link.dataset.diagram}.png`;
  saved.click();
  URL.revokeObjectURL(saved.href);
  return "Saved";
}

async function copySvg(link) {
  const response = await fetch(link.href);
  if (!response.ok) throw new Error(`status ${response.status}`);
  return copy(await response.text());
}

function addDiagramButtons() {
  for (const link of document.querySelectorAll("[data-diagram]:not([data-has-button])")) {
    link.dataset.hasButton = "";
    addButton(link, "Copy PNG", "the diagram as PNG", () => copyPng(link));
    addButton(link, "Copy SVG", "the diagram as SVG", () => copySvg(link));
  }
}

addDiagramButtons();
document.addEventListener("shown", addDiagramButtons);
