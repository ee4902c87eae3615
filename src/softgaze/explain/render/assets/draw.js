/* Drawings of a map: ribbons between two sentences, a heat map, and thumbnails. They report pointer and focus events to
   `onEvent`; the page decides what these mean. Words are only ever inserted as text. */

const SVG = "http://www.w3.org/2000/svg";
const MIN_RIBBON = 0.3; // pixels; thinner ribbons are not drawn
const MAX_LISTED = 3; // words listed before the rest is counted
const MANY_WORDS = 24; // vertical lines with more words are set tighter
const MIN_PRINTED = 0.1; // smallest weight with its number in the heat map
const DARK_CELL = 0.55; // text on cells above this weight is light
const MARK_NAMES = { [BOS_MARK]: "bos", [EOS_MARK]: "eos" };

// --- elements ------------------------------------------------------------------------------------------------------

function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function makeSvg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/* A word keeps its own direction, independent of the text around it. */
const word = (text) => make("bdi", {}, text);

const isRightToLeft = (labels) => {
  const text = labels.filter(isWord).map((label) => label.text).join("");
  const count = (pattern) => (text.match(pattern) ?? []).length;
  return 2 * count(/[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/gu) > count(/\p{L}/gu);
};

const twoDecimals = (value) => value.toFixed(2);

// --- text ----------------------------------------------------------------------------------------------------------

/* [index, value] of the largest values, without negligible ones. */
function topOf(values, count = MAX_LISTED) {
  const order = values.map((value, index) => [index, value]).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return order.slice(0, count).filter(([, value], rank) => value >= (rank ? 0.05 : 0.005));
}

const joinGroups = (groups, separator = ", ") => groups.flatMap((group, index) => (index ? [separator, ...group] : group));

const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/* One side of a diff: the unchanged words, and those of kind `marked` ("removed" or "added") in elements `tag`. */
function textLine(name, diff, marked, tag) {
  const parts = diff.filter(([kind]) => kind === "same" || kind === marked);
  const isSpaced = diff.some(([, text]) => /\s/.test(text)) || !UNSPACED.test(diff.map(([, text]) => text).join(""));
  const shown = parts.flatMap(([kind, text], index) => [index && isSpaced ? " " : "", kind === "same" ? text : make(tag, {}, text)]);
  return make("p", { class: "text-line" }, make("span", { class: "faint" }, name), make("span", { dir: "auto" }, ...(shown.length ? shown : [t("empty")])));
}

// --- roving tab index: one element of a group is in the tab order, arrow keys reach the others ----------------------

function setRoving(elements, current) {
  elements.forEach((element, index) => { element.tabIndex = index === current ? 0 : -1; });
}

/* The index of `count` that an arrow key leads to; null for other keys. */
function arrowTarget(key, index, count, isReversed = false) {
  const step = { ArrowRight: isReversed ? -1 : 1, ArrowLeft: isReversed ? 1 : -1, ArrowDown: 1, ArrowUp: -1 }[key];
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  return step ? Math.min(Math.max(index + step, 0), count - 1) : null;
}

/* A select box for a layer or head, or the mean of all (null). */
function indexSelect(field, title, count, selected, onChange) {
  const box = make("select", { "data-field": field }, ...indexOptions(count));
  box.value = count > 1 ? selected ?? "" : "";
  box.disabled = count < 2;
  box.addEventListener("change", () => onChange(box.value === "" ? null : Number(box.value)));
  return make("label", { class: "options" }, make("span", { class: "faint" }, title), box);
}

function indexOptions(count) {
  const all = make("option", { value: "" }, count > 1 ? t("mean-of", { count }) : t("only-one"));
  return [all, ...selectIndices(null, count > 1 ? count : 0).map((index) => make("option", { value: index }, index))];
}

// --- ribbons -------------------------------------------------------------------------------------------------------

class Ribbons {
  /* `onEvent(name, side, number, event)`: name is "point", "leave", "focus", "blur" or "press"; side "row" or "column". */
  constructor(stage, onEvent = () => {}) {
    this.stage = stage;
    this.onEvent = onEvent;
    this.lines = { column: make("div", { class: "line", role: "group" }), row: make("div", { class: "line", role: "group" }) };
    this.captions = { column: make("span", { class: "faint" }), row: make("span", { class: "faint" }) };
    this.svg = makeSvg("svg", { class: "ribbons", "aria-hidden": "true" });
    stage.replaceChildren(this.captions.column, this.lines.column, make("div", { class: "between" }, this.svg), this.captions.row, this.lines.row);
    this.addListeners();
    new ResizeObserver(() => this.width !== stage.clientWidth && this.layOut()).observe(stage);
  }

  addListeners() {
    const report = (name) => (event) => {
      const element = event.target.closest("[data-side]");
      if (element) this.onEvent(name, element.dataset.side, Number(element.dataset.number), event);
    };
    for (const [event, name] of [["pointerover", "point"], ["pointerout", "leave"], ["focusin", "focus"], ["focusout", "blur"], ["click", "press"]]) {
      this.stage.addEventListener(event, report(name));
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
    this.layOut();
  }

  /* Horizontal if both sentences fit into one line each, else vertical. */
  layOut() {
    if (!this.map || !this.stage.clientWidth) return;
    this.stage.classList.remove("vertical");
    const isTooLong = Object.values(this.lines).some((line) => line.scrollWidth > line.clientWidth + 1);
    this.stage.classList.toggle("vertical", isTooLong);
    this.stage.classList.toggle("many", Math.max(this.map.width, this.map.height) > MANY_WORDS);
    this.isVertical = isTooLong;
    this.draw();
    this.width = this.stage.clientWidth;
  }

  draw() {
    const box = this.svg.getBoundingClientRect();
    this.svg.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    this.paths = ribbonPaths(this.map, this.ends(box), this.gold, this.isVertical, box);
    const shapes = this.paths.map((path) => {
      path.state = "";
      path.element = makeSvg("path", { class: path.kind, d: path.d, "stroke-width": path.width.toFixed(2),
        "stroke-opacity": path.opacity?.toFixed(3), "data-side": path.kind === "ribbon" && "row", "data-number": path.row });
      return path.element;
    });
    this.svg.replaceChildren(...shapes);
    this.highlight(this.active);
  }

  /* Start and end of each word along its edge of the drawing. */
  ends(box) {
    const edge = (element) => {
      const own = element.getBoundingClientRect();
      return this.isVertical ? [own.top - box.top, own.bottom - box.top] : [own.left - box.left, own.right - box.left];
    };
    return { column: this.words.column.map(edge), row: this.words.row.map(edge) };
  }

  /* Fade everything but `active` {side, number}; in a replay, earlier output words stay visible and later ones fade out. */
  highlight(active) {
    this.active = active;
    this.stage.classList.toggle("lit", Boolean(active));
    for (const path of this.paths ?? []) {
      const isOn = active ? path[active.side] === active.number : false;
      const state = isOn ? "on" : active?.isReplay && path.row < active.number ? "before" : "";
      if (state !== path.state) path.element.setAttribute("class", `${path.kind} ${state}`); // only changes: there may be thousands
      path.state = state;
    }
    for (const side of ["column", "row"]) this.words?.[side].forEach((element, number) => this.highlightWord(element, side, number));
  }

  highlightWord(element, side, number) {
    const { active, map } = this, isActive = active?.side === side && active.number === number;
    const weight = !active || active.side === side ? 0
      : side === "column" ? at(map, active.number, number) : at(map, number, active.number);
    element.classList.toggle("on", isActive || weight >= MIN_PRINTED);
    element.classList.toggle("later", Boolean(active?.isReplay) && side === "row" && number > active.number);
    element.setAttribute("aria-pressed", String(Boolean(isActive && active.isPinned)));
    element.style.setProperty("--weight", weight.toFixed(3));
  }
}

function wordButton(label, side, number) {
  const names = label.word === null ? { "aria-label": label.text in MARK_NAMES ? t(MARK_NAMES[label.text]) : label.text } : {};
  const classes = label.word === null ? "word mark" : "word";
  const shown = make("span", { dir: "auto" }, label.text || "\u00a0");
  return make("button", { type: "button", class: classes, "data-side": side, "data-number": number, title: label.text.length > 20 && label.text, ...names }, shown);
}

/* The paths to draw, thin ones last so that they stay visible; `gold` is a list of [row, column, is sure] or null. */
function ribbonPaths(map, ends, gold, isVertical, box) {
  const unit = ribbonUnit(ends), depth = isVertical ? box.width : box.height;
  const middles = { row: ribbonMiddles(map, ends.row, unit, false), column: ribbonMiddles(map, ends.column, unit, true) };
  const isSureLink = new Map((gold ?? []).map(([row, column, isSure]) => [row * map.width + column, isSure]));
  const paths = [];
  map.rows.forEach((_, row) => map.columns.forEach((_, column) => {
    const weight = at(map, row, column), isSure = isSureLink.get(row * map.width + column);
    const isVisible = weight * unit >= MIN_RIBBON;
    if (!isVisible && !isSure) return;
    const d = curve(middles.column(row, column), middles.row(row, column), depth, isVertical);
    const path = { row, column, d, width: weight * unit };
    if (isSure !== undefined) paths.push(...goldOutline(path, weight, isSure));
    if (isVisible) paths.push({ ...path, kind: "ribbon", opacity: 0.3 + 0.5 * weight });
  }));
  const order = { matched: 0, inside: 1, missed: 2, ribbon: 3 };
  return paths.sort((a, b) => order[a.kind] - order[b.kind] || b.width - a.width);
}

/* A gold link with attention gets gold edges; a sure one without attention is a dashed line. */
function goldOutline(path, weight, isSure) {
  if (weight < MIN_PRINTED) return isSure ? [{ ...path, kind: "missed", width: 1.5 }] : [];
  return [{ ...path, kind: "matched", width: path.width + 5 }, { ...path, kind: "inside", width: path.width + 1 }];
}

/* Pixels of weight 1: the width of the narrowest output word. */
const ribbonUnit = (ends) => Math.min(28, ...ends.row.map(([start, end]) => Math.max(end - start - 2, 4)));

/* The middle of each ribbon at its word: ribbons lie next to each other in the order of the words they lead to, and
   overlap if they are wider than the word. */
function ribbonMiddles(map, ends, unit, isColumn) {
  const count = isColumn ? map.height : map.width;
  const weight = (own, other) => (isColumn ? at(map, other, own) : at(map, own, other));
  const middles = ends.map(([start, end], own) => {
    const total = unit * sum(Array.from({ length: count }, (_, other) => weight(own, other)));
    const squeeze = Math.min(1, (end - start) / Math.max(total, 1e-9));
    let offset = (start + end) / 2 - (total * squeeze) / 2;
    return Array.from({ length: count }, (_, other) => {
      const width = unit * weight(own, other) * squeeze;
      offset += width;
      return offset - width / 2;
    });
  });
  return (row, column) => (isColumn ? middles[column][row] : middles[row][column]);
}

function curve(from, to, depth, isVertical) {
  const point = (along, across) => (isVertical ? `${across.toFixed(1)} ${along.toFixed(1)}` : `${along.toFixed(1)} ${across.toFixed(1)}`);
  return `M${point(from, 0)}C${point(from, depth / 2)} ${point(to, depth / 2)} ${point(to, depth)}`;
}

// --- heat map ------------------------------------------------------------------------------------------------------

class Heatmap {
  constructor(container, onEvent = () => {}) {
    this.container = container;
    this.onEvent = onEvent;
    this.corner = make("div", { class: "corner" });
    this.top = make("div", { class: "top" });
    this.left = make("div", { class: "left" });
    this.canvas = make("canvas");
    this.overlay = makeSvg("svg");
    this.veils = [make("div", { class: "veil" }), make("div", { class: "veil" })];
    this.body = make("div", { class: "cells" }, this.canvas, this.overlay, ...this.veils);
    container.replaceChildren(make("div", { class: "heat-grid", "aria-hidden": "true" }, this.corner, this.top, this.left, this.body));
    this.addListeners();
  }

  addListeners() {
    const reportCell = (name) => (event) => {
      const box = this.body.getBoundingClientRect(), { width, height } = this.size;
      const [row, column] = [(event.clientY - box.top) / height, (event.clientX - box.left) / width].map(Math.floor);
      if (row >= 0 && row < this.map.height && column >= 0 && column < this.map.width) this.onEvent(name, "row", row, event, column);
    };
    this.body.addEventListener("pointermove", reportCell("point"));
    this.body.addEventListener("click", reportCell("press"));
    for (const [element, side] of [[this.top, "column"], [this.left, "row"]]) {
      const report = (name) => (event) => event.target.dataset.number && this.onEvent(name, side, Number(event.target.dataset.number), event);
      element.addEventListener("pointerover", report("point"));
      element.addEventListener("click", report("press"));
    }
    this.container.addEventListener("pointerleave", (event) => this.onEvent("leave", "row", 0, event));
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
    grid.classList.toggle("rotated", this.size.isRotated);
    this.top.replaceChildren(...map.columns.map(heatmapLabel));
    this.left.replaceChildren(...map.rows.map(heatmapLabel));
    this.draw();
    this.highlight(this.active);
  }

  draw() {
    paint(this.canvas, this.map, currentHue());
    const { width, height } = this.size;
    this.overlay.setAttribute("viewBox", `0 0 ${Math.max(this.map.width * width, 1)} ${Math.max(this.map.height * height, 1)}`);
    this.overlay.replaceChildren(...cellMarks(this.map, this.size, this.gold).map(({ tag, text, ...attributes }) =>
      makeSvg(tag, attributes, ...(text ? [text] : []))));
  }

  /* Cover everything before and after the active row or column with a veil. */
  highlight(active) {
    this.active = active;
    const { width, height } = this.size;
    const isRow = active?.side === "row", size = isRow ? height : width, count = isRow ? this.map.height : this.map.width;
    this.veils.forEach((veil, index) => {
      const start = index ? (active?.number + 1) * size : 0, end = index ? count * size : active?.number * size;
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

const heatmapLabel = (label, number) =>
  make("span", { class: label.word === null ? "mark" : "", "data-number": number, dir: "auto", title: label.text.length > 12 && label.text }, label.text);

/* Column labels are upright if they fit, else rotated; cells of maps with many columns are too small for numbers. */
function cellSize(map, available) {
  const left = available - Math.min(labelWidth(map.rows), 140) - 24, widest = labelWidth(map.columns) + 12;
  if (widest * map.width <= left) return { width: Math.min(Math.max(widest, Math.floor(left / map.width)), 72), height: 34, isRotated: false };
  if (map.width > 40 || map.height > 60) return { width: 16, height: 17, isRotated: true };
  const fitting = Math.floor(left / Math.max(map.width, 1));
  return { width: Math.min(Math.max(fitting, 34), 56), height: 32, isRotated: true };
}

const measuring = document.createElement("canvas").getContext("2d");

function labelWidth(labels, font = "13px sans-serif") {
  measuring.font = font;
  return Math.ceil(Math.max(20, ...labels.map((label) => measuring.measureText(label.text.slice(0, 40)).width)));
}

const currentHue = () => getComputedStyle(document.documentElement).getPropertyValue("--hue").trim().split(" ").map(Number);

/* One pixel for each cell; CSS enlarges them. */
function paint(canvas, map, hue) {
  [canvas.width, canvas.height] = [Math.max(map.width, 1), Math.max(map.height, 1)];
  if (!map.width || !map.height) return;
  const context = canvas.getContext("2d"), image = context.createImageData(map.width, map.height);
  const pixels = new Uint32Array(image.data.buffer), [red, green, blue] = hue, colour = (blue << 16) | (green << 8) | red;
  map.values.forEach((weight, i) => { pixels[i] = (Math.round(255 * Math.min(weight, 1)) << 24) | colour; });
  context.putImageData(image, 0, 0);
}

/* Over the colours: gold outlines, with a background that is visible on dark cells; a ring on each row's largest weight; numbers. */
function cellMarks(map, { width, height }, gold) {
  const box = (row, column, inset) => ({ x: column * width + inset, y: row * height + inset, width: width - 2 * inset, height: height - 2 * inset, rx: 3 });
  const outline = (row, column, kind) => ({ tag: "rect", class: kind, ...box(row, column, 1.5) });
  const marks = gold.flatMap(([row, column, isSure]) => [outline(row, column, "beneath"), outline(row, column, isSure ? "gold" : "gold possible")]);
  map.rows.forEach((_, row) => {
    const weights = rowOf(map, row), top = argmax(weights);
    if (top >= 0) marks.push({ tag: "rect", class: weights[top] > DARK_CELL ? "ring dark" : "ring", ...box(row, top, 4) });
    if (width >= 30) weights.forEach((weight, column) => {
      if (weight < MIN_PRINTED) return;
      const center = { x: (column + 0.5) * width, y: (row + 0.5) * height, "text-anchor": "middle", "dominant-baseline": "central" };
      marks.push({ tag: "text", class: weight > DARK_CELL ? "number dark" : "number", ...center, text: twoDecimals(weight) });
    });
  });
  return marks;
}
