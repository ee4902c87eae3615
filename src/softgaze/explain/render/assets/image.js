/* Images and their captions: a word shows its attention over the image, a region shows the words that attend to it. */

const DIM = 0.7; // opacity of black where a word has no attention, as in image_overlay.py
const MASK_SCALE = 2; // mask pixels for each side of a cell: the browser smooths between cells, not in their middle
const LARGE = 544, SMALL = 132; // pixels of the longer side of the large image and of the tiles
const MIN_CELL = 30; // pixels of a cell with its number
const MIN_SHARE = 0.005; // smallest share that is reported

const find = (id) => document.getElementById(id);
const data = JSON.parse(find("softgaze-page").textContent);
const items = [...document.querySelectorAll("script[id^=softgaze-attention]")].map((element, index) => {
  const record = JSON.parse(element.textContent);
  return { record, recording: readRecording(record.recording), name: data.imageNames[index] };
});
const state = { index: 0, view: null, map: null, isRaw: false, isSelf: false, pinned: null, hovered: null, dragStart: null };

const currentItem = () => items[state.index];
const percent = (share) => t("percent", { value: (100 * share).toFixed(share < 0.0995 ? 1 : 0) });

// --- properties of an item -----------------------------------------------------------------------------------------

const gridOf = ({ record }) => ({ rows: record.recording.source.grid[0], columns: record.recording.source.grid[1] });
const photoOf = ({ record }) => record.recording.photo;
const sizeOf = (item) => photoOf(item)?.size ?? [gridOf(item).columns, gridOf(item).rows];
const cropOf = (item) => photoOf(item)?.crop ?? [0, 0, 1, 1];
const isCropped = (item) => cropOf(item).join() !== "0,0,1,1";
const addressOf = (item) => photoOf(item) && `data:${photoOf(item).media};base64,${photoOf(item).image}`;

const wordRows = (map) => indicesWhere(map.rows, isWord);
const tileOf = (map, row) => indicesWhere(map.columns, isWord).map((column) => at(map, row, column)); // without BOS and EOS

/* The probability of a row's word; null if it was not recorded. Rows "reading" are one step later. */
function probOf(map, row) {
  const probs = currentItem().record.recording.chances ?? [], shift = map.view.rows === "reading" ? 1 : 0;
  return probs.length ? map.rows[row].positions.reduce((product, position) => product * probs[position - shift], 1) : null;
}

function cellsIn({ top, left, bottom, right }) {
  const { columns } = gridOf(currentItem()), cells = [];
  for (let row = top; row <= bottom; row++) for (let column = left; column <= right; column++) cells.push(row * columns + column);
  return cells;
}

const shareIn = (map, row, region) => {
  const tile = tileOf(map, row);
  return sum(cellsIn(region).map((cell) => tile[cell]));
};

// --- an image with a dark overlay ----------------------------------------------------------------------------------

class DimmedImage {
  constructor(item, side, element = make("span")) {
    this.item = item;
    const [width, height] = sizeOf(item), scale = side / Math.max(width, height);
    this.width = width * scale;
    this.height = height * scale;
    this.element = element;
    this.canvas = make("canvas");
    this.overlay = makeSvg("svg", { viewBox: `0 0 ${this.width} ${this.height}`, "aria-hidden": "true" });
    const address = addressOf(item), image = address ? [make("img", { src: address, alt: "", draggable: "false" })] : [];
    element.classList.add("dimmed");
    element.style.width = `${this.width}px`;
    element.style.aspectRatio = `${width} / ${height}`;
    element.replaceChildren(...image, this.canvas, this.overlay);
    this.placeCanvas();
  }

  placeCanvas() {
    const [left, top, right, bottom] = cropOf(this.item);
    const shares = { left, top, width: right - left, height: bottom - top };
    for (const [name, share] of Object.entries(shares)) this.canvas.style[name] = `${100 * share}%`;
    this.frame = { x: left * this.width, y: top * this.height, width: shares.width * this.width, height: shares.height * this.height };
  }

  /* `darkness` has a number from 0 to 1 for each cell; null dims nothing. */
  show(darkness, { isRaw = false, region = null, shares = null } = {}) {
    const { rows, columns } = gridOf(this.item);
    this.element.classList.toggle("raw", isRaw || Boolean(region)); // else the browser smooths the mask
    [this.canvas.width, this.canvas.height] = [MASK_SCALE * columns, MASK_SCALE * rows];
    const context = this.canvas.getContext("2d");
    darkness?.forEach((dark, cell) => {
      context.fillStyle = `rgb(0 0 0 / ${dark})`;
      context.fillRect(MASK_SCALE * (cell % columns), MASK_SCALE * Math.floor(cell / columns), MASK_SCALE, MASK_SCALE);
    });
    this.overlay.replaceChildren(...this.cropMarks(darkness), ...(isRaw ? [this.gridLines()] : []),
      ...(isRaw && shares ? this.numbers(shares) : []), ...(region ? [makeSvg("rect", { class: "region", ...this.boxOf(region) })] : []));
  }

  /* The frame of the crop, and darkness outside. */
  cropMarks(darkness) {
    if (!isCropped(this.item)) return [];
    const { x, y, width, height } = this.frame;
    const path = `M0 0H${this.width}V${this.height}H0zM${x} ${y}h${width}v${height}h${-width}z`;
    const dark = darkness ? [makeSvg("path", { class: "outside", "fill-rule": "evenodd", "fill-opacity": DIM, d: path })] : [];
    return [...dark, makeSvg("rect", { class: "frame", ...this.frame })];
  }

  gridLines() {
    const { rows, columns } = gridOf(this.item), { x, y, width, height } = this.frame;
    const horizontal = Array.from({ length: rows + 1 }, (_, row) => `M${x} ${y + (height * row) / rows}h${width}`);
    const vertical = Array.from({ length: columns + 1 }, (_, column) => `M${x + (width * column) / columns} ${y}v${height}`);
    return makeSvg("path", { class: "lines", d: [...horizontal, ...vertical].join("") });
  }

  numbers(shares) {
    const { rows, columns } = gridOf(this.item), size = Math.min(this.frame.width / columns, this.frame.height / rows);
    if (size < MIN_CELL) return [];
    return shares.flatMap((share, cell) => {
      const [row, column] = [Math.floor(cell / columns), cell % columns], box = this.boxOf({ top: row, left: column, bottom: row, right: column });
      const center = { x: box.x + box.width / 2, y: box.y + box.height / 2, "font-size": Math.min(16, size * 0.36), "stroke-width": 3 };
      return share < MIN_SHARE ? [] : [makeSvg("text", { class: "share", ...center }, (100 * share).toFixed(0))];
    });
  }

  boxOf({ top, left, bottom, right }) {
    const { rows, columns } = gridOf(this.item), { x, y, width, height } = this.frame;
    return { x: x + (width * left) / columns, y: y + (height * top) / rows, width: (width * (right - left + 1)) / columns, height: (height * (bottom - top + 1)) / rows };
  }

  /* The cell under a pointer; null outside the crop. */
  cellAt(event) {
    const { rows, columns } = gridOf(this.item), box = this.canvas.getBoundingClientRect();
    const row = Math.floor((rows * (event.clientY - box.top)) / box.height), column = Math.floor((columns * (event.clientX - box.left)) / box.width);
    return row >= 0 && row < rows && column >= 0 && column < columns ? { row, column } : null;
  }
}

/* From 0 at the largest weight to DIM, as in image_overlay.py. */
function darknessOf(weights) {
  const most = Math.max(0, ...weights);
  return weights.map((weight) => (most > 0 ? DIM * (1 - weight / most) : DIM));
}

function darknessOutside(region) {
  const { rows, columns } = gridOf(currentItem()), inside = new Set(cellsIn(region));
  return Array.from({ length: rows * columns }, (_, cell) => (inside.has(cell) ? 0 : DIM));
}

/* The mean self-attention of the cells of a region over the image: the cells that the encoder attends to from there. */
function selfAttention(region) {
  const view = { ...state.view, kind: "encoder", layer: null, head: null, measure: "weights", unit: "subwords" };
  const map = mapOf(currentItem().recording, view), tiles = cellsIn(region).map((cell) => tileOf(map, cell));
  return tiles[0].map((_, cell) => sum(tiles.map((tile) => tile[cell])) / tiles.length);
}

// --- highlight: {row} of a word, or {region} of the image ------------------------------------------------------------

const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function pin(target) {
  state.pinned = isSame(state.pinned, target) ? null : target;
  state.hovered = null;
  showActive();
}

function hover(target) {
  if (isSame(state.hovered, target)) return;
  state.hovered = target;
  if (!state.pinned) showActive();
}

function clearActive() {
  Object.assign(state, { pinned: null, hovered: null, dragStart: null });
  showActive();
}

function regionOf(a, b) {
  return { top: Math.min(a.row, b.row), bottom: Math.max(a.row, b.row), left: Math.min(a.column, b.column), right: Math.max(a.column, b.column) };
}

function showActive() {
  const active = state.pinned ?? state.hovered, { map, isRaw } = state;
  const own = active?.region && state.isSelf ? selfAttention(active.region) : null;
  if (own) largeImage.show(darknessOf(own), { isRaw, region: active.region, shares: own });
  else if (active?.region) largeImage.show(darknessOutside(active.region), { isRaw, region: active.region });
  else if (active) largeImage.show(darknessOf(tileOf(map, active.row)), { isRaw, shares: tileOf(map, active.row) });
  else largeImage.show(null, { isRaw });
  const shares = new Map(wordRows(map).map((row) => [row, active?.region ? shareIn(map, row, active.region) : 0]));
  const most = Math.max(1e-9, ...shares.values());
  for (const element of document.querySelectorAll("[data-row]")) {
    const row = Number(element.dataset.row);
    element.style.setProperty("--weight", shares.get(row) / Math.max(most, 0.1));
    element.setAttribute("aria-pressed", String(active?.row === row));
  }
  find("sentence").replaceChildren(...describeActive(active, shares));
  showWords(active, shares);
}

// --- text ----------------------------------------------------------------------------------------------------------

const cellName = (cell, columns) => t("cell", { row: Math.floor(cell / columns) + 1, column: (cell % columns) + 1 });

function regionName({ top, left, bottom, right }) {
  const key = top === bottom ? (left === right ? "one-cell" : "one-row") : left === right ? "one-column" : "region";
  return t(key, { top: top + 1, bottom: bottom + 1, left: left + 1, right: right + 1 });
}

function describeActive(active, shares) {
  if (!wordRows(state.map).length) return [t("caption-empty")];
  if (!active) return [t("caption-of", { name: data.imageNames[state.index] || t("this-image") })];
  if (active.region && state.isSelf) return describeSelf(active.region);
  return active.region ? describeRegion(active.region, shares) : describeWord(active.row);
}

function describeRegion(region, shares) {
  const { rows, columns } = gridOf(currentItem()), uniform = cellsIn(region).length / (rows * columns);
  const top = sortShares(shares).slice(0, MAX_LISTED).filter(([, share]) => share >= MIN_SHARE)
    .map(([row, share]) => [word(state.map.rows[row].text), ` ${percent(share)}`]);
  return [`${regionName(region)} ← `, ...(top.length ? joinGroups(top) : [t("nothing")]), t("uniform-share", { share: percent(uniform) })];
}

function describeSelf(region) {
  const own = selfAttention(region), top = argmax(own), { columns } = gridOf(currentItem()), inside = sum(cellsIn(region).map((cell) => own[cell]));
  return [regionName(region), t("self-largest", { cell: cellName(top, columns), share: percent(own[top]), inside: percent(inside) })];
}

function describeWord(row) {
  const tile = tileOf(state.map, row), top = argmax(tile), { columns } = gridOf(currentItem()), prob = probOf(state.map, row);
  const name = [word(state.map.rows[row].text), prob === null ? ": " : `${t("probability", { value: twoDecimals(prob) })}: `];
  if (top < 0) return [...name, t("no-image-attention")];
  return [...name, t("weight-at", { cell: cellName(top, columns), share: percent(tile[top]), count: cellsWithHalf(tile), cells: tile.length })];
}

const sortShares = (shares) => [...shares].sort((a, b) => b[1] - a[1] || a[0] - b[0]);

/* The smallest number of cells with half of the attention. */
function cellsWithHalf(tile) {
  const order = [...tile].sort((a, b) => b - a), half = sum(tile) / 2;
  let total = 0, count = 0;
  while (total < half && count < order.length) total += order[count++];
  return count;
}

/* The words that attend to a region, largest share first; without a region, the probability of each word. */
function showWords(active, shares) {
  const probs = new Map(wordRows(state.map).map((row) => [row, probOf(state.map, row)]));
  const hasProbs = [...probs.values()].some((prob) => prob !== null);
  find("words-title").textContent = active?.region ? t("region-words") : hasProbs ? t("word-probabilities") : "";
  const rows = active?.region ? sortShares(shares) : hasProbs ? [...probs] : [];
  const full = active?.region ? Math.max(1e-9, ...shares.values()) : 1; // of a bar
  find("words").replaceChildren(...rows.map(([row, share]) => {
    const bar = make("i");
    bar.style.width = `${(100 * share) / full}%`;
    return make("li", {}, word(state.map.rows[row].text), bar, make("span", {}, active?.region ? percent(share) : twoDecimals(share)));
  }));
}

function showAsText() {
  if (!find("as-text").open) return;
  const { map } = state, { columns } = gridOf(currentItem());
  const rows = wordRows(map).map((row) => {
    const tile = tileOf(map, row), top = argmax(tile), prob = probOf(map, row);
    const cells = [prob === null ? "–" : twoDecimals(prob), top < 0 ? "–" : cellName(top, columns), top < 0 ? "–" : percent(tile[top]), String(cellsWithHalf(tile))];
    return make("tr", {}, make("th", { scope: "row" }, word(map.rows[row].text)), ...cells.map((text) => make("td", {}, text)));
  });
  const headings = ["word", "probability-title", "largest-cell", "largest-weight", "half-cells"];
  const head = make("thead", {}, make("tr", {}, ...headings.map((text) => make("th", { scope: "col" }, t(text)))));
  find("as-text").querySelector("div").replaceChildren(make("table", {}, head, make("tbody", {}, ...rows)));
}

// --- the shown image -----------------------------------------------------------------------------------------------

let largeImage = null;

function selectItem(index) {
  state.index = index;
  state.view = currentItem().record.view;
  Object.assign(state, { pinned: null, hovered: null, dragStart: null });
  largeImage = new DimmedImage(currentItem(), LARGE, find("stage"));
}

function showItem() {
  find("stage").setAttribute("aria-label", t("image-label", gridOf(currentItem())));
  for (const [i, button] of [...find("images").children].entries()) button.setAttribute("aria-pressed", String(i === state.index));
  showControls();
  showView();
}

function showView() {
  state.map = mapOf(currentItem().recording, state.view);
  const rows = wordRows(state.map);
  find("caption").replaceChildren(...rows.map((row) => make("button", { type: "button", class: "word", dir: "auto", "data-row": row }, state.map.rows[row].text)));
  find("tiles").replaceChildren(...rows.map(tileButton));
  setRoving([...find("caption").children], 0);
  setRoving([...find("tiles").children], 0);
  find("description").textContent = describeMap(currentItem().recording, state.view, data.names, data.selected[state.index]);
  find("note").textContent = isCropped(currentItem()) ? `${t("image-note")} ${t("crop-note")}` : t("image-note");
  showAsText();
  showActive();
}

function tileButton(row) {
  const image = new DimmedImage(currentItem(), SMALL), tile = tileOf(state.map, row), prob = probOf(state.map, row);
  image.show(darknessOf(tile), { isRaw: state.isRaw });
  const numbers = make("span", { class: "score faint" }, make("span", {}, prob === null ? "" : `p ${twoDecimals(prob)}`), make("span", {}, `max ${percent(Math.max(0, ...tile))}`));
  return make("button", { type: "button", class: "tile", "data-row": row }, image.element, make("b", { dir: "auto" }, state.map.rows[row].text), numbers);
}

function showControls() {
  const { layers, heads } = currentItem().recording.parts[0].cross;
  const change = (field) => (index) => { state.view = { ...state.view, [field]: index, measure: state.view.measure === "rollout" ? "weights" : state.view.measure }; showView(); };
  const boxes = [["layer", layers], ["head", heads]].filter(([, count]) => count > 1)
    .map(([field, count]) => indexSelect(field, t(field), count, state.view[field], change(field)));
  const raw = make("button", { type: "button", id: "raw", "aria-pressed": String(state.isRaw) }, t("raw-grid"));
  raw.addEventListener("click", () => {
    state.isRaw = !state.isRaw;
    raw.setAttribute("aria-pressed", String(state.isRaw));
    showView();
  });
  state.isSelf = state.isSelf && Boolean(currentItem().recording.parts[0].encoder);
  const self = make("button", { type: "button", id: "self", "aria-pressed": String(state.isSelf) }, t("self-attention"));
  self.addEventListener("click", () => {
    state.isSelf = !state.isSelf;
    self.setAttribute("aria-pressed", String(state.isSelf));
    showActive();
  });
  find("controls").replaceChildren(raw, ...(currentItem().recording.parts[0].encoder ? [self] : []), ...boxes);
}

function makeImages() {
  find("images").hidden = items.length < 2;
  find("images").replaceChildren(...items.map((item, index) => {
    const image = addressOf(item) ? [make("img", { src: addressOf(item), alt: "" })] : [];
    const button = make("button", { type: "button", title: item.name }, ...image, make("span", { dir: "auto" }, item.name || t("image", { number: index + 1 })));
    button.addEventListener("click", () => { selectItem(index); showItem(); });
    return button;
  }));
}

// --- pointer and keyboard ------------------------------------------------------------------------------------------

function addImageListeners() {
  const stage = find("stage");
  stage.addEventListener("pointerdown", (event) => { state.dragStart = largeImage.cellAt(event); });
  stage.addEventListener("pointermove", (event) => {
    const cell = largeImage.cellAt(event);
    if (state.dragStart && event.buttons && cell) Object.assign(state, { pinned: { region: regionOf(state.dragStart, cell) } }), showActive();
    else if (!event.buttons && event.pointerType === "mouse") hover(cell && { region: regionOf(cell, cell) });
  });
  stage.addEventListener("pointerup", (event) => {
    const cell = largeImage.cellAt(event), { dragStart } = state;
    state.dragStart = null;
    if (!cell || !dragStart) return clearActive();
    const target = { region: regionOf(dragStart, cell) };
    if (isSame(dragStart, cell)) return pin(target);
    state.pinned = target;
    return showActive();
  });
  stage.addEventListener("pointercancel", () => { state.dragStart = null; });
  stage.addEventListener("pointerleave", () => hover(null));
  stage.addEventListener("keydown", moveRegion);
}

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/* An arrow key selects the next cell; with Shift it moves the lower right corner of the region. */
function moveRegion(event) {
  const step = ARROWS[event.key], { rows, columns } = gridOf(currentItem()), region = state.pinned?.region;
  if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  if (!region) return pin({ region: regionOf({ row: 0, column: 0 }, { row: 0, column: 0 }) });
  const clip = (index, count) => Math.min(Math.max(index, 0), count - 1);
  const first = { row: region.top, column: region.left }, last = { row: region.bottom, column: region.right };
  const moved = (cell) => ({ row: clip(cell.row + step[0], rows), column: clip(cell.column + step[1], columns) });
  const end = event.shiftKey ? { row: Math.max(moved(last).row, first.row), column: Math.max(moved(last).column, first.column) } : moved(first);
  state.pinned = { region: regionOf(event.shiftKey ? first : end, end) };
  return showActive();
}

function addWordListeners(container) {
  const rowAt = (event) => event.target.closest("[data-row]")?.dataset.row;
  const withRow = (act) => (event) => { if (rowAt(event) !== undefined) act({ row: Number(rowAt(event)) }, event); };
  container.addEventListener("click", withRow(pin));
  container.addEventListener("pointerover", withRow((target, event) => event.pointerType === "mouse" && hover(target)));
  container.addEventListener("pointerout", () => hover(null));
  container.addEventListener("focusin", withRow((target, event) => { if (event.target.matches(":focus-visible")) hover(target); }));
  container.addEventListener("keydown", (event) => {
    const buttons = [...container.children], next = arrowTarget(event.key, buttons.indexOf(event.target), buttons.length);
    if (next === null) return;
    event.preventDefault();
    state.pinned = null; // moving on shows the next word
    setRoving(buttons, next);
    buttons[next].focus();
  });
}

function start() {
  selectItem(0);
  addImageListeners();
  addWordListeners(find("caption"));
  addWordListeners(find("tiles"));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") clearActive(); });
  find("as-text").addEventListener("toggle", showAsText);
  initLanguage(find("page-language"));
  onLanguageChange(() => { makeImages(); showItem(); });
}

start();
