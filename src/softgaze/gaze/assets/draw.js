/* Pictures of a map: ribbons between two sentences, a heat map, and thumbnails. They draw what they are given and tell
   `listen` what a person points at; what that means is decided in page.js. Words only ever become text. */

const SVG = "http://www.w3.org/2000/svg";
const THINNEST = 0.3; // pixels; thinner ribbons cannot be seen
const SHOWN = 3; // words named before the rest is only counted
const MANY = 24; // words below each other are set tighter from here on
const READABLE = 0.1; // weights from here on have their number in the heat map
const DARK = 0.55; // from here on, what stands on a colour is light
const MARK_NAMES = { [BEGIN_MARK]: "begin of the sentence", [END_MARK]: "end of the sentence" };

// --- making elements -----------------------------------------------------------------------------------------------

function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function makeSvg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/* Words stand in their own direction, whatever is around them. */
const word = (text) => make("bdi", {}, text);

const isRightToLeft = (labels) => {
  const text = labels.filter(isWord).map((label) => label.text).join("");
  const count = (letters) => (text.match(letters) ?? []).length;
  return 2 * count(/[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/gu) > count(/\p{L}/gu);
};

const two = (value) => value.toFixed(2);

// --- sentences -----------------------------------------------------------------------------------------------------

/* [place, value] of the largest few that are worth a word. */
function topOf(values, count = SHOWN) {
  const order = values.map((value, place) => [place, value]).sort((one, other) => other[1] - one[1] || one[0] - other[0]);
  return order.slice(0, count).filter(([, value], rank) => value >= (rank ? 0.05 : 0.005));
}

const joined = (groups, between = ", ") => groups.flatMap((group, number) => (number ? [between, ...group] : group));

const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/* What stayed, and what went or came, as one text. */
function textLine(name, diff, marked, tag, empty = "nothing at all") {
  const pieces = diff.filter(([what]) => what === "same" || what === marked);
  const isSpaced = diff.some(([, text]) => /\s/.test(text)) || !UNSPACED.test(diff.map(([, text]) => text).join(""));
  const shown = pieces.flatMap(([what, text], place) => [place && isSpaced ? " " : "", what === "same" ? text : make(tag, {}, text)]);
  return make("p", { class: "said" }, make("span", { class: "faint" }, name), make("span", { dir: "auto" }, ...(shown.length ? shown : [empty])));
}

// --- one of many is in the tab order, arrows reach the others -------------------------------------------------------

function setRoving(elements, current) {
  elements.forEach((element, number) => { element.tabIndex = number === current ? 0 : -1; });
}

/* Which of `count` an arrow key leads to from `place`; null for other keys. */
function arrowed(key, place, count, isBackwards = false) {
  const step = { ArrowRight: isBackwards ? -1 : 1, ArrowLeft: isBackwards ? 1 : -1, ArrowDown: 1, ArrowUp: -1 }[key];
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  return step ? Math.min(Math.max(place + step, 0), count - 1) : null;
}

// --- ribbons -------------------------------------------------------------------------------------------------------

class Ribbons {
  /* `listen(event, side, number)`: event is "point", "leave", "focus", "blur" or "press"; side "row" or "column". */
  constructor(stage, listen = () => {}) {
    this.stage = stage;
    this.listen = listen;
    this.lines = { column: make("div", { class: "line", role: "group" }), row: make("div", { class: "line", role: "group" }) };
    this.captions = { column: make("span", { class: "faint" }), row: make("span", { class: "faint" }) };
    this.picture = makeSvg("svg", { class: "ribbons", "aria-hidden": "true" });
    stage.replaceChildren(this.captions.column, this.lines.column, make("div", { class: "between" }, this.picture), this.captions.row, this.lines.row);
    this.hear();
    new ResizeObserver(() => this.width !== stage.clientWidth && this.place()).observe(stage);
  }

  hear() {
    const tell = (name) => (event) => {
      const element = event.target.closest("[data-side]");
      if (element) this.listen(name, element.dataset.side, Number(element.dataset.number), event);
    };
    for (const [event, name] of [["pointerover", "point"], ["pointerout", "leave"], ["focusin", "focus"], ["focusout", "blur"], ["click", "press"]]) {
      this.stage.addEventListener(event, tell(name));
    }
  }

  show(map, gold, names) {
    this.map = map;
    this.gold = gold;
    this.words = {};
    for (const [side, labels] of [["column", map.columns], ["row", map.rows]]) {
      this.words[side] = labels.map((label, number) => wordButton(label, side, number));
      setRoving(this.words[side], 0);
      this.lines[side].replaceChildren(...this.words[side]);
      this.lines[side].dir = isRightToLeft(labels) ? "rtl" : "ltr";
      this.lines[side].setAttribute("aria-label", names[side]);
      this.captions[side].textContent = names[side];
    }
    this.place();
  }

  /* Side by side if both sentences fit into one line each, else one word below the other. */
  place() {
    if (!this.map || !this.stage.clientWidth) return;
    this.stage.classList.remove("down");
    const isTooLong = Object.values(this.lines).some((line) => line.scrollWidth > line.clientWidth + 1);
    this.stage.classList.toggle("down", isTooLong);
    this.stage.classList.toggle("many", Math.max(this.map.width, this.map.height) > MANY);
    this.isDown = isTooLong;
    this.draw();
    this.width = this.stage.clientWidth;
  }

  draw() {
    const box = this.picture.getBoundingClientRect();
    this.picture.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    this.paths = ribbonsOf(this.map, this.ends(box), this.gold, this.isDown, box);
    const shapes = this.paths.map((each) => {
      each.look = "";
      each.element = makeSvg("path", { class: each.kind, d: each.path, "stroke-width": each.width.toFixed(2),
        "stroke-opacity": each.opacity?.toFixed(3), "data-side": each.kind === "ribbon" && "row", "data-number": each.row });
      return each.element;
    });
    this.picture.replaceChildren(...shapes);
    this.light(this.active);
  }

  /* Where along its edge of the picture each word begins and ends. */
  ends(box) {
    const edge = (element) => {
      const own = element.getBoundingClientRect();
      return this.isDown ? [own.top - box.top, own.bottom - box.top] : [own.left - box.left, own.right - box.left];
    };
    return { column: this.words.column.map(edge), row: this.words.row.map(edge) };
  }

  /* Everything but `active` {side, number} fades; in a replay, what was written before stays and the rest waits. */
  light(active) {
    this.active = active;
    this.stage.classList.toggle("lit", Boolean(active));
    for (const each of this.paths ?? []) {
      const isOn = active ? each[active.side] === active.number : false;
      const look = isOn ? "on" : active?.isReplay && each.row < active.number ? "before" : "";
      if (look !== each.look) each.element.setAttribute("class", `${each.kind} ${look}`); // touched only if it changes: there may be thousands
      each.look = look;
    }
    for (const side of ["column", "row"]) this.words?.[side].forEach((element, number) => this.lightWord(element, side, number));
  }

  lightWord(element, side, number) {
    const { active, map } = this, isOwn = active?.side === side && active.number === number;
    const weight = !active || active.side === side ? 0
      : side === "column" ? at(map, active.number, number) : at(map, number, active.number);
    element.classList.toggle("on", isOwn || weight >= READABLE);
    element.classList.toggle("later", Boolean(active?.isReplay) && side === "row" && number > active.number);
    element.setAttribute("aria-pressed", String(Boolean(isOwn && active.isPinned)));
    element.style.setProperty("--weight", weight.toFixed(3));
  }
}

function wordButton(label, side, number) {
  const names = label.word === null ? { "aria-label": MARK_NAMES[label.text] ?? label.text } : {};
  const classes = label.word === null ? "word mark" : "word";
  const shown = make("span", { dir: "auto" }, label.text || "\u00a0");
  return make("button", { type: "button", class: classes, "data-side": side, "data-number": number, title: label.text.length > 20 && label.text, ...names }, shown);
}

/* The shapes to draw, thin ones last so that they stay visible; `gold` is a list of [row, column, is sure] or null. */
function ribbonsOf(map, ends, gold, isDown, box) {
  const unit = ribbonUnit(ends), depth = isDown ? box.width : box.height;
  const places = { row: spots(map, ends.row, unit, false), column: spots(map, ends.column, unit, true) };
  const isGold = new Map((gold ?? []).map(([row, column, isSure]) => [row * map.width + column, isSure]));
  const found = [];
  map.rows.forEach((_, row) => map.columns.forEach((_, column) => {
    const weight = at(map, row, column), isSure = isGold.get(row * map.width + column);
    const isVisible = weight * unit >= THINNEST;
    if (!isVisible && !isSure) return;
    const path = curve(places.column(row, column), places.row(row, column), depth, isDown);
    const shape = { row, column, path, width: weight * unit };
    if (isSure !== undefined) found.push(...outline(shape, weight, isSure));
    if (isVisible) found.push({ ...shape, kind: "ribbon", opacity: 0.3 + 0.5 * weight });
  }));
  const order = { right: 0, inside: 1, missed: 2, ribbon: 3 };
  return found.sort((one, other) => order[one.kind] - order[other.kind] || other.width - one.width);
}

/* A right link has golden edges; one that should have been looked at and was not is only a dashed line. */
function outline(shape, weight, isSure) {
  if (weight < READABLE) return isSure ? [{ ...shape, kind: "missed", width: 1.5 }] : [];
  return [{ ...shape, kind: "right", width: shape.width + 5 }, { ...shape, kind: "inside", width: shape.width + 1 }];
}

/* Pixels of a weight of 1: as wide as the narrowest output word. */
const ribbonUnit = (ends) => Math.min(28, ...ends.row.map(([start, end]) => Math.max(end - start - 2, 4)));

/* The middle of a ribbon at a word: ribbons lie side by side in the order of the words they lead to, and keep their
   width; where they are more than the word is wide, they overlap. */
function spots(map, ends, unit, isColumn) {
  const count = isColumn ? map.height : map.width;
  const weight = (own, other) => (isColumn ? at(map, other, own) : at(map, own, other));
  const middles = ends.map(([start, end], own) => {
    const total = unit * sum(Array.from({ length: count }, (_, other) => weight(own, other)));
    const squeeze = Math.min(1, (end - start) / Math.max(total, 1e-9));
    let place = (start + end) / 2 - (total * squeeze) / 2;
    return Array.from({ length: count }, (_, other) => {
      const width = unit * weight(own, other) * squeeze;
      place += width;
      return place - width / 2;
    });
  });
  return (row, column) => (isColumn ? middles[column][row] : middles[row][column]);
}

function curve(from, to, depth, isDown) {
  const point = (along, across) => (isDown ? `${across.toFixed(1)} ${along.toFixed(1)}` : `${along.toFixed(1)} ${across.toFixed(1)}`);
  return `M${point(from, 0)}C${point(from, depth / 2)} ${point(to, depth / 2)} ${point(to, depth)}`;
}

// --- heat map ------------------------------------------------------------------------------------------------------

class Heat {
  constructor(container, listen = () => {}) {
    this.container = container;
    this.listen = listen;
    this.corner = make("div", { class: "corner" });
    this.top = make("div", { class: "top" });
    this.left = make("div", { class: "left" });
    this.canvas = make("canvas");
    this.over = makeSvg("svg");
    this.veils = [make("div", { class: "veil" }), make("div", { class: "veil" })];
    this.body = make("div", { class: "cells" }, this.canvas, this.over, ...this.veils);
    container.replaceChildren(make("div", { class: "heat-grid", "aria-hidden": "true" }, this.corner, this.top, this.left, this.body));
    this.hear();
  }

  hear() {
    const tellCell = (name) => (event) => {
      const box = this.body.getBoundingClientRect(), { width, height } = this.size;
      const [row, column] = [(event.clientY - box.top) / height, (event.clientX - box.left) / width].map(Math.floor);
      if (row >= 0 && row < this.map.height && column >= 0 && column < this.map.width) this.listen(name, "row", row, event, column);
    };
    this.body.addEventListener("pointermove", tellCell("point"));
    this.body.addEventListener("click", tellCell("press"));
    for (const [element, side] of [[this.top, "column"], [this.left, "row"]]) {
      const tell = (name) => (event) => event.target.dataset.number && this.listen(name, side, Number(event.target.dataset.number), event);
      element.addEventListener("pointerover", tell("point"));
      element.addEventListener("click", tell("press"));
    }
    this.container.addEventListener("pointerleave", (event) => this.listen("leave", "row", 0, event));
  }

  show(map, gold) {
    this.map = map;
    this.gold = gold ?? [];
    this.size = cellSize(map, this.container.parentElement.clientWidth);
    const grid = this.container.firstChild;
    grid.style.setProperty("--cell-width", `${this.size.width}px`);
    grid.style.setProperty("--cell-height", `${this.size.height}px`);
    grid.style.setProperty("--columns", map.width);
    grid.style.setProperty("--rows", map.height);
    grid.classList.toggle("turned", this.size.isTurned);
    this.top.replaceChildren(...map.columns.map(heatLabel));
    this.left.replaceChildren(...map.rows.map(heatLabel));
    this.draw();
    this.light(this.active);
  }

  draw() {
    paint(this.canvas, this.map, currentHue());
    const { width, height } = this.size;
    this.over.setAttribute("viewBox", `0 0 ${Math.max(this.map.width * width, 1)} ${Math.max(this.map.height * height, 1)}`);
    this.over.replaceChildren(...heatMarks(this.map, this.size, this.gold).map(({ tag, text, ...attributes }) =>
      makeSvg(tag, attributes, ...(text ? [text] : []))));
  }

  light(active) {
    this.active = active;
    const { width, height } = this.size;
    const isRow = active?.side === "row", size = isRow ? height : width, count = isRow ? this.map.height : this.map.width;
    this.veils.forEach((veil, number) => {
      const start = number ? (active?.number + 1) * size : 0, end = number ? count * size : active?.number * size;
      veil.hidden = !active;
      veil.style.inset = !active ? "0" : isRow ? `${start}px 0 auto 0` : `0 auto 0 ${start}px`;
      veil.style.height = isRow ? `${end - start}px` : "auto";
      veil.style.width = isRow ? "auto" : `${end - start}px`;
    });
    for (const [side, line] of [["row", this.left], ["column", this.top]]) {
      [...line.children].forEach((label, number) => label.classList.toggle("on", active?.side === side && active.number === number));
    }
  }
}

const heatLabel = (label, number) =>
  make("span", { class: label.word === null ? "mark" : "", "data-number": number, dir: "auto", title: label.text.length > 12 && label.text }, label.text);

/* Upright labels if there is room for them, else turned; numbers have room where there are not too many columns. */
function cellSize(map, room) {
  const left = room - Math.min(textWidth(map.rows), 140) - 24, widest = textWidth(map.columns) + 12;
  if (widest * map.width <= left) return { width: Math.min(Math.max(widest, Math.floor(left / map.width)), 72), height: 34, isTurned: false };
  if (map.width > 40 || map.height > 60) return { width: 16, height: 17, isTurned: true };
  const fitting = Math.floor(left / Math.max(map.width, 1));
  return { width: Math.min(Math.max(fitting, 34), 56), height: 32, isTurned: true };
}

const pen = document.createElement("canvas").getContext("2d");

function textWidth(labels, font = "13px sans-serif") {
  pen.font = font;
  return Math.ceil(Math.max(20, ...labels.map((label) => pen.measureText(label.text.slice(0, 40)).width)));
}

const currentHue = () => getComputedStyle(document.documentElement).getPropertyValue("--hue").trim().split(" ").map(Number);

/* One pixel a cell; the page makes them larger. */
function paint(canvas, map, hue) {
  [canvas.width, canvas.height] = [Math.max(map.width, 1), Math.max(map.height, 1)];
  if (!map.width || !map.height) return;
  const brush = canvas.getContext("2d"), image = brush.createImageData(map.width, map.height);
  const colour = new Uint32Array(image.data.buffer), [red, green, blue] = hue, opaque = (blue << 16) | (green << 8) | red;
  map.values.forEach((weight, place) => { colour[place] = (Math.round(255 * Math.min(weight, 1)) << 24) | opaque; });
  brush.putImageData(image, 0, 0);
}

/* What lies over the colours: gold outlines, on paper so that they stand out of dark cells, a ring on each row's largest, numbers. */
function heatMarks(map, { width, height }, gold) {
  const box = (row, column, inset) => ({ x: column * width + inset, y: row * height + inset, width: width - 2 * inset, height: height - 2 * inset, rx: 3 });
  const frame = (row, column, kind) => ({ tag: "rect", class: kind, ...box(row, column, 1.5) });
  const marks = gold.flatMap(([row, column, isSure]) => [frame(row, column, "beneath"), frame(row, column, isSure ? "gold" : "gold possible")]);
  map.rows.forEach((_, row) => {
    const own = rowOf(map, row), most = largest(own);
    if (most >= 0) marks.push({ tag: "rect", class: own[most] > DARK ? "ring dark" : "ring", ...box(row, most, 4) });
    if (width >= 30) own.forEach((weight, column) => {
      if (weight < READABLE) return;
      const place = { x: (column + 0.5) * width, y: (row + 0.5) * height, "text-anchor": "middle", "dominant-baseline": "central" };
      marks.push({ tag: "text", class: weight > DARK ? "number dark" : "number", ...place, text: two(weight) });
    });
  });
  return marks;
}
