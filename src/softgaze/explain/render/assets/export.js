/* The shown map as files: a drawing (SVG, PNG), links (Pharaoh) and all numbers (JSON). */

// Files are made for print, so they always have light colours. Attributes instead of a style sheet: the
// content security policy of the page also applies to images made in it.
const PAPER = "#ffffff", INK = "#1d1d1b", FAINT = "#6b6b66", LINE = "#d9d9d4", HUE = "#1d4e89", GOLD = "#b45309";
const FONT = "Noto Sans, Noto Sans CJK KR, Apple SD Gothic Neo, Malgun Gothic, Segoe UI, sans-serif";
const STYLES = {
  ribbon: { fill: "none", stroke: HUE },
  matched: { fill: "none", stroke: GOLD, "stroke-opacity": 0.8 },
  missed: { fill: "none", stroke: GOLD, "stroke-dasharray": "5 4" },
  beneath: { fill: "none", stroke: PAPER, "stroke-width": 4 },
  gold: { fill: "none", stroke: GOLD, "stroke-width": 2.5 },
  "gold possible": { fill: "none", stroke: GOLD, "stroke-width": 2, "stroke-dasharray": "4 3" },
  inside: { fill: "none", stroke: PAPER },
  ring: { fill: "none", stroke: INK, "stroke-width": 1.2 },
  "ring dark": { fill: "none", stroke: PAPER, "stroke-width": 1.2 },
  number: { fill: INK, "font-size": 11 },
  "number dark": { fill: PAPER, "font-size": 11 },
};
const MARGIN = 16;
const MAX_SIDE = 12_000; // pixels; browsers reject larger canvases

function save(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000); // the browser reads it after the click
}

/* Replace characters that XML forbids. */
const printable = (text) => text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd");

const textAt = (text, x, y, attributes = {}) => makeSvg("text", { x, y, fill: INK, "font-size": 14, ...attributes }, printable(text));

/* The ribbons as the page has them. */
function drawRibbons(ribbons) {
  const box = ribbons.stage.getBoundingClientRect(), inner = ribbons.svg.getBoundingClientRect();
  const shapes = ribbons.paths.map(({ kind, d, width, opacity }) =>
    makeSvg("path", { d, "stroke-width": width.toFixed(2), "stroke-opacity": opacity?.toFixed(3), ...STYLES[kind] }));
  const words = ["column", "row"].flatMap((side) => ribbons.words[side].map((element) => {
    const own = element.getBoundingClientRect();
    const center = [(own.left + own.right) / 2 - box.left, (own.top + own.bottom) / 2 - box.top];
    return textAt(element.textContent, ...center, { "text-anchor": "middle", "dominant-baseline": "central" });
  }));
  const moved = makeSvg("g", { transform: `translate(${inner.left - box.left} ${inner.top - box.top})` }, ...shapes);
  return { group: makeSvg("g", {}, moved, ...words), width: box.width, height: ribbons.stage.scrollHeight };
}

function drawHeatmap(map, gold) {
  const size = { width: map.width > 40 ? 18 : 40, height: map.width > 40 ? 18 : 28 };
  const left = labelWidth(map.rows, "14px sans-serif") + 14, top = labelWidth(map.columns, "14px sans-serif") + 14;
  const [width, height] = [map.width * size.width, map.height * size.height];
  const cells = [];
  map.values.forEach((weight, i) => {
    const [row, column] = [Math.floor(i / map.width), i % map.width];
    if (weight >= 0.002) cells.push(makeSvg("rect", { x: column * size.width, y: row * size.height, ...size, fill: HUE, "fill-opacity": weight.toFixed(3) }));
  });
  const rows = map.rows.map((label, row) =>
    textAt(label.text, -8, (row + 0.5) * size.height, { "text-anchor": "end", "dominant-baseline": "central" }));
  const columns = map.columns.map((label, column) => { // BOS and EOS stay upright: rotated, they are other signs
    const [rotation, anchor] = isWord(label) ? ["rotate(-90)", "start"] : ["translate(0 -6)", "middle"];
    return textAt(label.text, 0, 0, { transform: `translate(${(column + 0.5) * size.width} -8) ${rotation}`, "text-anchor": anchor, "dominant-baseline": "central" });
  });
  const frame = makeSvg("rect", { width, height, fill: "none", stroke: LINE });
  const marks = cellMarks(map, size, gold ?? []).map(({ tag, text, class: name, ...attributes }) =>
    makeSvg(tag, { ...attributes, ...STYLES[name] }, ...(text ? [text] : [])));
  const group = makeSvg("g", { transform: `translate(${left} ${top})` }, ...cells, frame, ...marks, ...rows, ...columns);
  return { group, width: left + width, height: top + height };
}

/* Ribbons, heat map and notes, with the JSON that Attention.load reads. */
function drawSvg(ribbons, map, gold, notes, json) {
  const blocks = [drawRibbons(ribbons), drawHeatmap(map, gold)];
  const width = Math.max(480, ...blocks.map((block) => block.width)) + 2 * MARGIN;
  const content = [makeSvg("metadata", { id: "softgaze-attention" }, json)];
  let y = MARGIN;
  for (const block of blocks) {
    content.push(makeSvg("g", { transform: `translate(${(width - block.width) / 2} ${y})` }, block.group));
    y += block.height + 2 * MARGIN;
  }
  for (const { text, isWarning } of notes.filter((note) => note.text)) {
    const style = isWarning ? { fill: GOLD, "font-weight": 600 } : { fill: FAINT };
    for (const line of wrapText(text, Math.floor((width - 2 * MARGIN) / 6))) {
      content.push(textAt(line, MARGIN, y, { "font-size": 12, ...style }));
      y += 18;
    }
  }
  const paper = makeSvg("rect", { width: "100%", height: "100%", fill: PAPER });
  const size = { width: Math.ceil(width), height: Math.ceil(y) };
  const svg = makeSvg("svg", { viewBox: `0 0 ${size.width} ${size.height}`, ...size, "font-family": FONT }, paper, ...content);
  return new XMLSerializer().serializeToString(svg);
}

function wrapText(text, maxLength) {
  const lines = [""];
  for (const part of text.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + part.length >= maxLength) lines.push("");
    lines.push(`${lines.pop()} ${part}`.trim());
  }
  return lines;
}

async function rasterize(svg) {
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const scale = Math.min(2, MAX_SIDE / Math.max(image.width, image.height));
    const canvas = make("canvas", { width: Math.round(image.width * scale), height: Math.round(image.height * scale) });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

/* The stored record with the shown view, as Attention.to_json writes it. */
function toRecord(record, map, description) {
  const weights = map.rows.map((_, row) => Array.from(rowOf(map, row), (weight) => Number(weight.toFixed(6))));
  const texts = (labels) => labels.map((label) => label.text);
  return { ...record, shows: description, source: texts(map.columns), target: texts(map.rows), weights, view: map.view };
}
