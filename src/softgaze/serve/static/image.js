/* A picture and what a model says about it: words point at regions, regions at words. */

import { sendForm, tell, telling } from "./api.js";
import { dropped } from "./drop.js";
import { fill } from "./pair.js";
import { isolated, say, whenSpoken } from "./say.js";

const find = (id) => document.getElementById(id);
const OTHERS = 3;
const WHOLE = [0, 0, 1, 1]; // of a picture: left, top, right, bottom
const SHADE = [10, 14, 20], DIMMED = 0.72; // over what was not looked at
const ROOM = 0.9; // of what a server takes at once, for the picture itself
const LONGEST = 1024; // pixels of a side of a picture that has to be made smaller; models see fewer
const SEEN = 0.02; // of a region's share, from where on a word is lit

export class Images {
  constructor(captioners, limit) {
    Object.assign(this, { limit, caption: null, pinned: null, word: null, region: null });
    fill(find("captioner"), captioners.map(({ id }) => [id, id]), captioners[0].id);
    find("captioner-field").hidden = captioners.length < 2;
    find("captioner").addEventListener("change", () => this.file && this.send(this.file));
    dropped(find("image-drop"), find("image"), (file) => this.send(file));
    this.listen();
    whenSpoken(() => this.show());
  }

  listen() {
    const frame = find("frame"), words = find("caption");
    frame.addEventListener("pointermove", (event) => this.point(this.regionAt(event)));
    frame.addEventListener("pointerleave", () => this.point(null));
    frame.addEventListener("keydown", (event) => this.onKey(event));
    frame.addEventListener("blur", () => this.point(null));
    for (const name of ["pointerover", "focusin"]) words.addEventListener(name, (event) => this.lightWord(event.target.closest(".word")));
    for (const name of ["pointerout", "focusout"]) words.addEventListener(name, () => this.lightWord(null));
    words.addEventListener("click", (event) => this.pin(event.target.closest(".word")));
    words.addEventListener("keydown", (event) => this.move(event));
    new ResizeObserver(() => this.paint()).observe(frame);
  }

  // --- asking

  async send(file) {
    this.asking?.abort();
    const { signal } = (this.asking = new AbortController());
    this.file = file;
    if (!(await this.preview(file))) return tell(say("cannot-show", { name: isolated(file.name) }));
    if (signal.aborted) return;
    this.take(null);
    find("caption-sentence").textContent = say("image-working", { name: isolated(file.name) });
    const image = file.size < ROOM * this.limit ? file : await shrunk(find("photo"));
    const fields = { image, model: find("captioner").value, attention: "true", alternatives: String(OTHERS) };
    const answer = await telling(() => sendForm("v1/caption", fields, signal));
    if (!signal.aborted) this.take(answer?.captions[0] ?? null);
  }

  async preview(file) {
    const photo = find("photo"), before = photo.src;
    photo.src = URL.createObjectURL(file);
    if (before) URL.revokeObjectURL(before);
    const isShown = await photo.decode().then(() => true, () => false);
    find("picture").hidden = !isShown;
    find("image-drop").classList.toggle("small", isShown);
    return isShown;
  }

  take(caption) {
    Object.assign(this, { caption, pinned: null, word: null, region: null });
    this.show();
  }

  // --- pointing

  get attention() { return this.caption?.attention; }

  /* The region under a pointer, counted row by row; null outside what the model saw. */
  regionAt(event) {
    if (!this.attention) return null;
    const box = find("frame").getBoundingClientRect(), [left, top, right, bottom] = this.crop, { rows, columns } = this.attention.grid;
    const across = ((event.clientX - box.left) / box.width - left) / (right - left), down = ((event.clientY - box.top) / box.height - top) / (bottom - top);
    if (across < 0 || across >= 1 || down < 0 || down >= 1) return null;
    return Math.floor(down * rows) * columns + Math.floor(across * columns);
  }

  get crop() { return this.attention?.grid.crop ?? WHOLE; }

  point(region) {
    if (region === this.region) return;
    this.region = region;
    this.light();
  }

  onKey(event) {
    if (!this.attention) return;
    const { rows, columns } = this.attention.grid, region = this.region ?? 0, row = Math.floor(region / columns), column = region % columns;
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key === "Escape") return this.point(null);
    if (!steps[event.key]) return;
    event.preventDefault();
    const [down, across] = this.region === null ? [0, 0] : steps[event.key];
    this.point(within(row + down, rows) * columns + within(column + across, columns));
  }

  lightWord(element) {
    this.word = element ? Number(element.dataset.number) : null;
    this.light();
  }

  pin(element) {
    const number = element && Number(element.dataset.number);
    this.pinned = number === this.pinned ? null : number;
    this.light();
  }

  move(event) {
    const words = [...find("caption").children], place = arrowed(event.key, words.indexOf(document.activeElement), words.length);
    if (place === null) return;
    event.preventDefault();
    setRoving(words, place);
    words[place].focus();
  }

  // --- showing

  show() {
    const words = this.attention?.target_words ?? (this.caption ? [this.caption.text] : []);
    const buttons = words.map((text, number) => make("button", { type: "button", class: "word", "data-number": number }, make("span", { dir: "auto" }, text)));
    setRoving(buttons, 0);
    find("caption").replaceChildren(...buttons);
    find("photo").alt = this.caption ? say("photo-alt", { caption: this.caption.text }) : "";
    const others = this.caption?.alternatives ?? [];
    find("caption-alternatives").hidden = !others.length;
    find("caption-alternatives").replaceChildren(...others.map(({ text }) => make("li", { dir: "auto" }, text)));
    this.light();
  }

  light() {
    const word = this.word ?? this.pinned, { region } = this;
    [...find("caption").children].forEach((element, number) => {
      const weight = this.attention && region !== null ? this.shareOf(number, region) : number === word ? 1 : 0;
      element.style.setProperty("--weight", weight.toFixed(3));
      element.classList.toggle("on", weight > SEEN);
      element.setAttribute("aria-pressed", String(number === this.pinned));
    });
    find("caption").classList.toggle("lit", region !== null);
    if (this.attention) find("caption-sentence").replaceChildren(...this.inWords(word));
    else find("caption-sentence").textContent = "";
    this.paint();
  }

  /* How much a word looked at a region, against the region it looked at most. */
  shareOf(number, region) {
    const weights = this.attention.weights[number];
    return weights[region] / Math.max(...weights, 1e-9);
  }

  inWords(number) {
    const { target_words: words, weights, grid } = this.attention, { region } = this;
    const place = (each) => say("region-words", { row: Math.floor(each / grid.columns) + 1, column: (each % grid.columns) + 1 });
    if (region !== null) return [place(region), " → ", ...joined(topOf(weights.map((own) => own[region])).map(([each, weight]) => [word(words[each]), ` ${two(weight)}`]))];
    if (number === null || number === undefined) return [];
    return [word(words[number]), " ← ", ...joined(topOf(weights[number]).map(([each, weight]) => [place(each), ` ${two(weight)}`]))];
  }

  /* The picture is dimmed where a word did not look; a region that is pointed at is framed. */
  paint() {
    const canvas = find("regions"), { width, height } = find("frame").getBoundingClientRect(), brush = canvas.getContext("2d");
    [canvas.width, canvas.height] = [width, height];
    if (!this.attention || !width) return;
    const { rows, columns } = this.attention.grid, [left, top, right, bottom] = this.crop, number = this.word ?? this.pinned;
    const cell = { width: ((right - left) * width) / columns, height: ((bottom - top) * height) / rows };
    const corner = (region) => [left * width + (region % columns) * cell.width, top * height + Math.floor(region / columns) * cell.height];
    if (number !== null && number !== undefined && this.region === null) {
      brush.fillStyle = `rgb(${SHADE.join(" ")} / ${DIMMED})`;
      brush.fillRect(0, 0, width, height);
      brush.clearRect(...corner(0), cell.width * columns, cell.height * rows);
      brush.imageSmoothingQuality = "high";
      brush.drawImage(this.veil(number), ...corner(0), cell.width * columns, cell.height * rows);
    }
    if (this.region !== null) frameCell(brush, corner(this.region), cell);
  }

  /* One pixel a region, the darker the less a word looked there; made larger, it is smooth. */
  veil(number) {
    const { rows, columns } = this.attention.grid, canvas = make("canvas", { width: columns, height: rows });
    const image = new ImageData(columns, rows);
    for (let region = 0; region < rows * columns; region++) image.data.set([...SHADE, 255 * DIMMED * (1 - this.shareOf(number, region))], 4 * region);
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }
}

/* The photo of a camera is far larger than what a model sees, or a server takes. */
function shrunk(photo) {
  const scale = Math.min(1, LONGEST / Math.max(photo.naturalWidth, photo.naturalHeight));
  const [width, height] = [photo.naturalWidth, photo.naturalHeight].map((side) => Math.max(1, Math.round(side * scale)));
  const canvas = make("canvas", { width, height });
  canvas.getContext("2d").drawImage(photo, 0, 0, width, height);
  return new Promise((resolve) => { canvas.toBlob(resolve, "image/jpeg", 0.9); });
}

const within = (number, count) => Math.min(Math.max(number, 0), count - 1);

function frameCell(brush, [x, y], cell) {
  for (const [colour, width] of [["#ffffff", 5], ["#1d4e89", 2.5]]) {
    Object.assign(brush, { strokeStyle: colour, lineWidth: width });
    brush.strokeRect(x + 2.5, y + 2.5, cell.width - 5, cell.height - 5);
  }
}
