/* An image and its caption: words highlight regions of the image, and regions highlight words. */

import { postForm, reportErrors, showError } from "./api.js";
import { acceptFile } from "./file_drop.js";
import { setOptions } from "./language_picker.js";

const find = (id) => document.getElementById(id);
const ALTERNATIVES = 3;
const WHOLE_IMAGE = [0, 0, 1, 1]; // left, top, right, bottom
const SHADE = [10, 14, 20], SHADE_ALPHA = 0.72; // over regions without attention
const MASKED = "#808080"; // over regions that get no attention
const BODY_SHARE = 0.9; // of the body limit, for the image itself
const MAX_SIDE = 1024; // pixels of an image that must be shrunk; models see fewer
const MIN_SHARE = 0.02; // of a word's largest weight, to highlight the word of a region

export class ImagePanel {
  constructor(captioners, maxBytes) {
    Object.assign(this, { maxBytes, caption: null, unmasked: null, pinned: null, word: null, region: null, masked: new Set() });
    setOptions(find("captioner"), captioners.map(({ id }) => [id, id]), captioners[0].id);
    find("captioner-field").hidden = captioners.length < 2;
    find("captioner").addEventListener("change", () => this.file && this.send(this.file));
    acceptFile(find("image-drop"), find("image"), (file) => this.send(file));
    this.addListeners();
    onLanguageChange(() => this.show());
  }

  addListeners() {
    const frame = find("frame"), words = find("caption");
    frame.addEventListener("pointermove", (event) => this.hoverRegion(this.regionAt(event)));
    frame.addEventListener("pointerleave", () => this.hoverRegion(null));
    frame.addEventListener("click", (event) => this.toggleMask(this.regionAt(event)));
    frame.addEventListener("keydown", (event) => this.onKey(event));
    frame.addEventListener("blur", () => this.hoverRegion(null));
    for (const name of ["pointerover", "focusin"]) words.addEventListener(name, (event) => this.hoverWord(event.target.closest(".word")));
    for (const name of ["pointerout", "focusout"]) words.addEventListener(name, () => this.hoverWord(null));
    words.addEventListener("click", (event) => this.pin(event.target.closest(".word")));
    words.addEventListener("keydown", (event) => this.moveFocus(event));
    new ResizeObserver(() => this.paint()).observe(frame);
  }

  // --- request

  async send(file, masked = new Set()) {
    this.request?.abort();
    const { signal } = (this.request = new AbortController());
    Object.assign(this, { file, masked });
    if (!(await this.preview(file))) return showError(t("cannot-show", { name: isolated(file.name) }));
    if (signal.aborted) return;
    this.setCaption(null);
    find("caption-weights").textContent = t("image-working", { name: isolated(file.name) });
    const image = file.size < BODY_SHARE * this.maxBytes ? file : await shrink(find("photo"));
    const fields = { image, model: find("captioner").value, attention: "true", num_hypotheses: String(1 + ALTERNATIVES), mask: [...masked].join(",") };
    const response = await reportErrors(() => postForm("v1/caption", fields, signal));
    if (signal.aborted) return;
    const caption = response?.captions[0] ?? null;
    if (!masked.size) this.unmasked = caption;
    this.setCaption(caption);
  }

  async preview(file) {
    const photo = find("photo"), previous = photo.src;
    photo.src = URL.createObjectURL(file);
    if (previous) URL.revokeObjectURL(previous);
    const isShown = await photo.decode().then(() => true, () => false);
    find("figure").hidden = !isShown;
    find("image-drop").classList.toggle("small", isShown);
    return isShown;
  }

  setCaption(caption) {
    Object.assign(this, { caption, pinned: null, word: null, region: null });
    this.show();
  }

  // --- pointer and keyboard

  get attention() { return this.caption?.attention; }

  /* The region under the pointer, counted row by row; null outside of the part that the model sees. */
  regionAt(event) {
    if (!this.attention) return null;
    const box = find("frame").getBoundingClientRect(), [left, top, right, bottom] = this.crop, { rows, columns } = this.attention.grid;
    const across = ((event.clientX - box.left) / box.width - left) / (right - left), down = ((event.clientY - box.top) / box.height - top) / (bottom - top);
    if (across < 0 || across >= 1 || down < 0 || down >= 1) return null;
    return Math.floor(down * rows) * columns + Math.floor(across * columns);
  }

  get crop() { return this.attention?.grid.crop ?? WHOLE_IMAGE; }

  hoverRegion(region) {
    if (region === this.region) return;
    this.region = region;
    this.highlight();
  }

  onKey(event) {
    if (!this.attention) return;
    const { rows, columns } = this.attention.grid, region = this.region ?? 0, row = Math.floor(region / columns), column = region % columns;
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key === "Escape") return this.hoverRegion(null);
    if (event.key === "Enter") return this.toggleMask(this.region);
    if (!steps[event.key]) return;
    event.preventDefault();
    const [down, right] = this.region === null ? [0, 0] : steps[event.key];
    this.hoverRegion(clamp(row + down, rows) * columns + clamp(column + right, columns));
  }

  /* Caption the image again without attention to a region, or with it again. */
  toggleMask(region) {
    if (region === null || !this.attention || this.masked.size >= this.attention.grid.rows * this.attention.grid.columns - 1) return;
    const masked = new Set(this.masked);
    if (!masked.delete(region)) masked.add(region);
    this.send(this.file, masked);
  }

  hoverWord(element) {
    this.word = element ? Number(element.dataset.number) : null;
    this.highlight();
  }

  pin(element) {
    const number = element && Number(element.dataset.number);
    this.pinned = number === this.pinned ? null : number;
    this.highlight();
  }

  moveFocus(event) {
    const words = [...find("caption").children], index = arrowTarget(event.key, words.indexOf(document.activeElement), words.length);
    if (index === null) return;
    event.preventDefault();
    setRoving(words, index);
    words[index].focus();
  }

  // --- display

  show() {
    const words = this.attention?.target_words ?? (this.caption ? [this.caption.text] : []);
    const buttons = words.map((text, number) => make("button", { type: "button", class: "word", "data-number": number }, make("span", { dir: "auto" }, text)));
    setRoving(buttons, 0);
    find("caption").replaceChildren(...buttons);
    find("photo").alt = this.caption ? t("image-alt", { caption: this.caption.text }) : "";
    this.compare();
    const alternatives = this.caption?.alternatives ?? [];
    find("caption-alternatives").hidden = !alternatives.length;
    find("caption-alternatives").replaceChildren(...alternatives.map(({ text }) => make("li", { dir: "auto" }, text)));
    this.highlight();
  }

  /* While regions are masked, show the caption of the whole image as well. */
  compare() {
    const { caption, unmasked } = this, isMasked = Boolean(caption && unmasked && this.masked.size);
    find("caption-unmasked").hidden = !isMasked;
    if (isMasked) find("caption-unmasked").textContent = caption.text === unmasked.text ? t("caption-same") : t("caption-before", { caption: isolated(unmasked.text) });
  }

  highlight() {
    const word = this.word ?? this.pinned, { region } = this;
    [...find("caption").children].forEach((element, number) => {
      const weight = this.attention && region !== null ? this.shareOf(number, region) : number === word ? 1 : 0;
      element.style.setProperty("--weight", weight.toFixed(3));
      element.classList.toggle("on", weight > MIN_SHARE);
      element.setAttribute("aria-pressed", String(number === this.pinned));
    });
    find("caption").classList.toggle("lit", region !== null);
    if (this.attention) find("caption-weights").replaceChildren(...this.describe(word));
    else find("caption-weights").textContent = "";
    this.paint();
  }

  /* The weight of a word on a region, relative to its largest weight. */
  shareOf(number, region) {
    const weights = this.attention.weights[number];
    return weights[region] / Math.max(...weights, 1e-9);
  }

  describe(number) {
    const { target_words: words, weights, grid } = this.attention, { region } = this;
    const regionName = (index) => t("region", { row: Math.floor(index / grid.columns) + 1, column: (index % grid.columns) + 1 });
    if (region !== null) return [regionName(region), " → ", ...joinGroups(topOf(weights.map((row) => row[region])).map(([index, weight]) => [word(words[index]), ` ${twoDecimals(weight)}`]))];
    if (number === null || number === undefined) return [];
    return [word(words[number]), " ← ", ...joinGroups(topOf(weights[number]).map(([index, weight]) => [regionName(index), ` ${twoDecimals(weight)}`]))];
  }

  /* Shade the regions without attention of the word; frame the region under the pointer. */
  paint() {
    const canvas = find("regions"), { width, height } = find("frame").getBoundingClientRect(), context = canvas.getContext("2d");
    [canvas.width, canvas.height] = [width, height];
    if (!this.attention || !width) return;
    const { rows, columns } = this.attention.grid, [left, top, right, bottom] = this.crop, number = this.word ?? this.pinned;
    const cell = { width: ((right - left) * width) / columns, height: ((bottom - top) * height) / rows };
    const corner = (region) => [left * width + (region % columns) * cell.width, top * height + Math.floor(region / columns) * cell.height];
    if (number !== null && number !== undefined && this.region === null) {
      context.fillStyle = `rgb(${SHADE.join(" ")} / ${SHADE_ALPHA})`;
      context.fillRect(0, 0, width, height);
      context.clearRect(...corner(0), cell.width * columns, cell.height * rows);
      context.imageSmoothingQuality = "high";
      context.drawImage(this.shadeImage(number), ...corner(0), cell.width * columns, cell.height * rows);
    }
    context.fillStyle = MASKED;
    for (const region of this.masked) context.fillRect(...corner(region), cell.width, cell.height);
    if (this.region !== null) frameCell(context, corner(this.region), cell);
  }

  /* One pixel per region, darker for less attention; scaled up, it is smooth. */
  shadeImage(number) {
    const { rows, columns } = this.attention.grid, canvas = make("canvas", { width: columns, height: rows });
    const image = new ImageData(columns, rows);
    for (let region = 0; region < rows * columns; region++) image.data.set([...SHADE, 255 * SHADE_ALPHA * (1 - this.shareOf(number, region))], 4 * region);
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }
}

/* Shrink a photo that exceeds the body limit of the server. */
function shrink(photo) {
  const scale = Math.min(1, MAX_SIDE / Math.max(photo.naturalWidth, photo.naturalHeight));
  const [width, height] = [photo.naturalWidth, photo.naturalHeight].map((side) => Math.max(1, Math.round(side * scale)));
  const canvas = make("canvas", { width, height });
  canvas.getContext("2d").drawImage(photo, 0, 0, width, height);
  return new Promise((resolve) => { canvas.toBlob(resolve, "image/jpeg", 0.9); });
}

const clamp = (number, count) => Math.min(Math.max(number, 0), count - 1);

function frameCell(context, [x, y], cell) {
  for (const [colour, width] of [["#ffffff", 5], ["#1d4e89", 2.5]]) {
    Object.assign(context, { strokeStyle: colour, lineWidth: width });
    context.strokeRect(x + 2.5, y + 2.5, cell.width - 5, cell.height - 5);
  }
}
