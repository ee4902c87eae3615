/* Photos and their captions: a word shows where it looked, a region shows which words looked there. */

const DIM = 0.7; // how dark it is where nobody looked, as tiles.py has it
const DOTS = 2; // of a mask across a cell, between which a browser smooths: the middle of a cell stays as it is
const LARGE = 544, SMALL = 132; // pixels of the longer side: of the photo to click on, and of those of the words
const READABLE_CELL = 30; // pixels of a cell that can hold its number
const WORTH = 0.005; // shares from here on are told

const find = (id) => document.getElementById(id);
const facts = JSON.parse(find("softgaze-photos").textContent);
const shots = [...document.querySelectorAll("script[id^=softgaze-attention]")].map((element, number) => {
  const record = JSON.parse(element.textContent);
  return { record, recording: readRecording(record.recording), name: facts.names[number] };
});
const state = { shot: 0, view: null, map: null, isRaw: false, pinned: null, hover: null, from: null };

const shot = () => shots[state.shot];
const per = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

// --- what is there -------------------------------------------------------------------------------------------------

const gridOf = ({ record }) => ({ rows: record.recording.source.grid[0], columns: record.recording.source.grid[1] });
const photoOf = ({ record }) => record.recording.photo;
const sizeOf = (own) => photoOf(own)?.size ?? [gridOf(own).columns, gridOf(own).rows];
const cropOf = (own) => photoOf(own)?.crop ?? [0, 0, 1, 1];
const addressOf = (own) => photoOf(own) && `data:${photoOf(own).media};base64,${photoOf(own).image}`;

const wordRows = (map) => numbersOf(map.rows, isWord);
const cellColumns = (map) => numbersOf(map.columns, isWord); // what is no cell is a mark
const tileOf = (map, row) => cellColumns(map).map((column) => at(map, row, column));

/* The probability of a row's word; null where nobody asked. A row that means reading stands one step later. */
function chanceOf(map, row) {
  const chances = shot().record.recording.chances ?? [], shift = map.view.rows === "reading" ? 1 : 0;
  return chances.length ? map.rows[row].places.reduce((all, place) => all * chances[place - shift], 1) : null;
}

function cellsIn({ top, left, bottom, right }) {
  const { columns } = gridOf(shot()), cells = [];
  for (let row = top; row <= bottom; row++) for (let column = left; column <= right; column++) cells.push(row * columns + column);
  return cells;
}

const shareIn = (map, row, region) => {
  const tile = tileOf(map, row);
  return sum(cellsIn(region).map((cell) => tile[cell]));
};

// --- a photo that is dimmed where nobody looked ---------------------------------------------------------------------

class Dimmed {
  constructor(own, side, element = make("span")) {
    this.own = own;
    const [width, height] = sizeOf(own), scale = side / Math.max(width, height);
    this.width = width * scale;
    this.height = height * scale;
    this.element = element;
    this.canvas = make("canvas");
    this.over = makeSvg("svg", { viewBox: `0 0 ${this.width} ${this.height}`, "aria-hidden": "true" });
    const address = addressOf(own), image = address ? [make("img", { src: address, alt: "", draggable: "false" })] : [];
    element.classList.add("dimmed");
    element.style.width = `${this.width}px`;
    element.style.aspectRatio = `${width} / ${height}`;
    element.replaceChildren(...image, this.canvas, this.over);
    this.place();
  }

  place() {
    const [left, top, right, bottom] = cropOf(this.own);
    const shares = { left, top, width: right - left, height: bottom - top };
    for (const [name, share] of Object.entries(shares)) this.canvas.style[name] = `${100 * share}%`;
    this.frame = { x: left * this.width, y: top * this.height, width: shares.width * this.width, height: shares.height * this.height };
  }

  /* `darkness` has a number from 0 to 1 for each cell; null dims nothing. */
  show(darkness, { isRaw = false, region = null, shares = null } = {}) {
    const { rows, columns } = gridOf(this.own);
    this.element.classList.toggle("sharp", isRaw || Boolean(region)); // else it runs smoothly from cell to cell
    [this.canvas.width, this.canvas.height] = [DOTS * columns, DOTS * rows];
    const brush = this.canvas.getContext("2d");
    darkness?.forEach((dark, cell) => {
      brush.fillStyle = `rgb(0 0 0 / ${dark})`;
      brush.fillRect(DOTS * (cell % columns), DOTS * Math.floor(cell / columns), DOTS, DOTS);
    });
    this.over.replaceChildren(...this.outside(darkness), ...(isRaw ? this.lines() : []),
      ...(isRaw && shares ? this.numbers(shares) : []), ...(region ? [this.box(region)] : []));
  }

  /* What the model did not see. */
  outside(darkness) {
    if (cropOf(this.own).join() === "0,0,1,1") return [];
    const { x, y, width, height } = this.frame;
    const path = `M0 0H${this.width}V${this.height}H0zM${x} ${y}h${width}v${height}h${-width}z`;
    const dark = darkness ? [makeSvg("path", { class: "outside", "fill-rule": "evenodd", "fill-opacity": DIM, d: path })] : [];
    return [...dark, makeSvg("rect", { class: "frame", ...this.frame })];
  }

  lines() {
    const { rows, columns } = gridOf(this.own), { x, y, width, height } = this.frame;
    const across = Array.from({ length: rows + 1 }, (_, row) => `M${x} ${y + (height * row) / rows}h${width}`);
    const down = Array.from({ length: columns + 1 }, (_, column) => `M${x + (width * column) / columns} ${y}v${height}`);
    return [makeSvg("path", { class: "lines", d: [...across, ...down].join("") })];
  }

  numbers(shares) {
    const { rows, columns } = gridOf(this.own), size = Math.min(this.frame.width / columns, this.frame.height / rows);
    if (size < READABLE_CELL) return [];
    return shares.flatMap((share, cell) => {
      const box = this.at({ top: Math.floor(cell / columns), left: cell % columns, bottom: Math.floor(cell / columns), right: cell % columns });
      const place = { x: box.x + box.width / 2, y: box.y + box.height / 2, "font-size": Math.min(16, size * 0.36), "stroke-width": 3 };
      return share < WORTH ? [] : [makeSvg("text", { class: "share", ...place }, (100 * share).toFixed(0))];
    });
  }

  at({ top, left, bottom, right }) {
    const { rows, columns } = gridOf(this.own), { x, y, width, height } = this.frame;
    return { x: x + (width * left) / columns, y: y + (height * top) / rows, width: (width * (right - left + 1)) / columns, height: (height * (bottom - top + 1)) / rows };
  }

  box(region) {
    return makeSvg("rect", { class: "region", ...this.at(region) });
  }

  /* The cell under a pointer; null outside of what the model saw. */
  cellUnder(event) {
    const { rows, columns } = gridOf(this.own), box = this.canvas.getBoundingClientRect();
    const row = Math.floor((rows * (event.clientY - box.top)) / box.height), column = Math.floor((columns * (event.clientX - box.left)) / box.width);
    return row >= 0 && row < rows && column >= 0 && column < columns ? { row, column } : null;
  }
}

/* As tiles.py: from 0, where most was looked, to DIM. */
function darknessOf(weights) {
  const most = Math.max(0, ...weights);
  return weights.map((weight) => (most > 0 ? DIM * (1 - weight / most) : DIM));
}

function darkOutside(region) {
  const { rows, columns } = gridOf(shot()), lit = new Set(cellsIn(region));
  return Array.from({ length: rows * columns }, (_, cell) => (lit.has(cell) ? 0 : DIM));
}

// --- what is lit ---------------------------------------------------------------------------------------------------

const active = () => state.pinned ?? state.hover;
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

function pin(what) {
  state.pinned = isSame(state.pinned, what) ? null : what;
  state.hover = null;
  showActive();
}

function hover(what) {
  if (isSame(state.hover, what)) return;
  state.hover = what;
  if (!state.pinned) showActive();
}

function letGo() {
  Object.assign(state, { pinned: null, hover: null, from: null });
  showActive();
}

function regionOf(one, other) {
  return { top: Math.min(one.row, other.row), bottom: Math.max(one.row, other.row), left: Math.min(one.column, other.column), right: Math.max(one.column, other.column) };
}

function showActive() {
  const found = active(), { map, isRaw } = state;
  if (found?.region) stage.show(darkOutside(found.region), { isRaw, region: found.region });
  else if (found) stage.show(darknessOf(tileOf(map, found.row)), { isRaw, shares: tileOf(map, found.row) });
  else stage.show(null, { isRaw });
  const shares = new Map(wordRows(map).map((row) => [row, found?.region ? shareIn(map, row, found.region) : 0]));
  const most = Math.max(1e-9, ...shares.values());
  for (const element of document.querySelectorAll("[data-row]")) {
    const row = Number(element.dataset.row);
    element.style.setProperty("--weight", shares.get(row) / Math.max(most, 0.1));
    element.setAttribute("aria-pressed", String(found?.row === row));
  }
  find("sentence").replaceChildren(...inWords(found, shares));
  showWords(found, shares);
}

// --- in words ------------------------------------------------------------------------------------------------------

const placeOf = ({ top, left, bottom, right }) =>
  (top === bottom ? `Row ${top + 1}` : `Rows ${top + 1} to ${bottom + 1}`) + (left === right ? `, column ${left + 1}` : `, columns ${left + 1} to ${right + 1}`);

function inWords(found, shares) {
  if (!wordRows(state.map).length) return ["Nothing was written, so no word looked at anything."];
  if (!found) return [`Written of ${facts.names[state.shot] || "this photo"}.`];
  if (found.region) {
    const order = ranked(shares).slice(0, 3).filter(([, share]) => share >= WORTH);
    const looked = order.map(([row, share], place) => [place ? ", " : "", word(state.map.rows[row].text), ` ${per(share)}`]).flat();
    return [`${placeOf(found.region)} ← `, ...(looked.length ? looked : ["nobody"]), `; an even look has ${per(evenShare(found.region))} there`];
  }
  const tile = tileOf(state.map, found.row), most = largest(tile), { columns } = gridOf(shot()), chance = chanceOf(state.map, found.row);
  const said = [word(state.map.rows[found.row].text), chance === null ? " " : ` (probability ${two(chance)}) `];
  if (most < 0) return [...said, "looked at no part of the photo"];
  return [...said, `looked most at row ${Math.floor(most / columns) + 1}, column ${(most % columns) + 1} (${per(tile[most])}); half of its look lies in ${halfOf(tile)} of ${tile.length} cells`];
}

const ranked = (shares) => [...shares].sort((one, other) => other[1] - one[1] || one[0] - other[0]);

const evenShare = (region) => cellsIn(region).length / (gridOf(shot()).rows * gridOf(shot()).columns);

/* How few cells hold half of a look. */
function halfOf(tile) {
  const order = [...tile].sort((one, other) => other - one), half = sum(tile) / 2;
  let held = 0, count = 0;
  while (held < half && count < order.length) held += order[count++];
  return count;
}

/* Who looked at a region, most first; without one, how likely each word was. */
function showWords(found, shares) {
  const chances = new Map(wordRows(state.map).map((row) => [row, chanceOf(state.map, row)]));
  const hasChances = [...chances.values()].some((chance) => chance !== null);
  find("words-title").textContent = found?.region ? "Who looked there" : hasChances ? "How sure it was of each word" : "";
  const rows = found?.region ? ranked(shares) : hasChances ? [...chances] : [];
  const full = found?.region ? Math.max(1e-9, ...shares.values()) : 1; // of a bar
  find("words").replaceChildren(...rows.map(([row, share]) => {
    const bar = make("i");
    bar.style.width = `${(100 * share) / full}%`;
    return make("li", {}, word(state.map.rows[row].text), bar, make("span", {}, found?.region ? per(share) : two(share)));
  }));
}

function showAsText() {
  if (!find("as-text").open) return;
  const { map } = state, { columns } = gridOf(shot());
  const rows = wordRows(map).map((row) => {
    const tile = tileOf(map, row), most = largest(tile), chance = chanceOf(map, row);
    const cells = [chance === null ? "–" : two(chance), most < 0 ? "–" : `row ${Math.floor(most / columns) + 1}, column ${(most % columns) + 1}`, most < 0 ? "–" : per(tile[most]), String(halfOf(tile))];
    return make("tr", {}, make("th", { scope: "row" }, word(map.rows[row].text)), ...cells.map((text) => make("td", {}, text)));
  });
  const heads = ["Word", "Probability", "Looked most at", "which had", "Cells with half of its look"];
  const head = make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text))));
  find("as-text").querySelector("div").replaceChildren(make("table", {}, head, make("tbody", {}, ...rows)));
}

// --- one photo -----------------------------------------------------------------------------------------------------

let stage = null;

function choose(number) {
  state.shot = number;
  state.view = shot().record.view;
  Object.assign(state, { pinned: null, hover: null, from: null });
  stage = new Dimmed(shot(), LARGE, find("stage"));
  const { rows, columns } = gridOf(shot());
  find("stage").setAttribute("aria-label", `The photo in ${rows} × ${columns} cells: arrow keys choose one, Shift with an arrow widens the choice`);
  for (const [own, button] of [...find("photos").children].entries()) button.setAttribute("aria-pressed", String(own === number));
  showControls();
  showView();
}

function showView() {
  state.map = mapOf(shot().recording, state.view);
  const rows = wordRows(state.map);
  find("caption").replaceChildren(...rows.map((row) => make("button", { type: "button", class: "word", dir: "auto", "data-row": row }, state.map.rows[row].text)));
  find("tiles").replaceChildren(...rows.map(tileButton));
  setRoving([...find("caption").children], 0);
  setRoving([...find("tiles").children], 0);
  find("shows").textContent = showsOf(shot().recording, state.view, facts.tables, facts.choices[state.shot]);
  find("how").textContent = cropOf(shot()).join() === "0,0,1,1" ? facts.how : `${facts.how} ${facts.unseen}`;
  showAsText();
  showActive();
}

function tileButton(row) {
  const small = new Dimmed(shot(), SMALL), tile = tileOf(state.map, row), chance = chanceOf(state.map, row);
  small.show(darknessOf(tile), { isRaw: state.isRaw });
  const numbers = make("span", { class: "score faint" }, make("span", {}, chance === null ? "" : `p ${two(chance)}`), make("span", {}, `most ${per(Math.max(0, ...tile))}`));
  return make("button", { type: "button", class: "tile", "data-row": row }, small.element, make("b", { dir: "auto" }, state.map.rows[row].text), numbers);
}

function showControls() {
  const { layers, heads } = shot().recording.parts[0].cross;
  const change = (field) => (number) => { state.view = { ...state.view, [field]: number, measure: state.view.measure === "rollout" ? "weights" : state.view.measure }; showView(); };
  const boxes = [["layer", "Layer", layers], ["head", "Head", heads]].filter(([, , total]) => total > 1)
    .map(([field, title, total]) => choiceOf(field, title, total, state.view[field], change(field)));
  const raw = make("button", { type: "button", id: "raw", "aria-pressed": String(state.isRaw) }, "Raw grid");
  raw.addEventListener("click", () => {
    state.isRaw = !state.isRaw;
    raw.setAttribute("aria-pressed", String(state.isRaw));
    showView();
  });
  find("controls").replaceChildren(raw, ...boxes);
}

function makePhotos() {
  find("photos").hidden = shots.length < 2;
  find("photos").replaceChildren(...shots.map((own, number) => {
    const image = addressOf(own) ? [make("img", { src: addressOf(own), alt: "" })] : [];
    const button = make("button", { type: "button", title: own.name }, ...image, make("span", { dir: "auto" }, own.name || `photo ${number + 1}`));
    button.addEventListener("click", () => choose(number));
    return button;
  }));
}

// --- pointer and keys ----------------------------------------------------------------------------------------------

function hearPhoto() {
  const photo = find("stage");
  photo.addEventListener("pointerdown", (event) => { state.from = stage.cellUnder(event); });
  photo.addEventListener("pointermove", (event) => {
    const cell = stage.cellUnder(event);
    if (state.from && event.buttons && cell) Object.assign(state, { pinned: { region: regionOf(state.from, cell) } }), showActive();
    else if (!event.buttons && event.pointerType === "mouse") hover(cell && { region: regionOf(cell, cell) });
  });
  photo.addEventListener("pointerup", (event) => {
    const cell = stage.cellUnder(event), from = state.from;
    state.from = null;
    if (!cell || !from) return letGo();
    const what = { region: regionOf(from, cell) };
    if (isSame(from, cell)) return pin(what);
    state.pinned = what;
    return showActive();
  });
  photo.addEventListener("pointercancel", () => { state.from = null; });
  photo.addEventListener("pointerleave", () => hover(null));
  photo.addEventListener("keydown", movePhoto);
}

const STEPS_OF = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/* An arrow chooses the next cell; with Shift the region reaches one further, or one less far. */
function movePhoto(event) {
  const step = STEPS_OF[event.key], { rows, columns } = gridOf(shot()), old = state.pinned?.region;
  if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  if (!old) return pin({ region: regionOf({ row: 0, column: 0 }, { row: 0, column: 0 }) });
  const clip = (place, count) => Math.min(Math.max(place, 0), count - 1);
  const near = { row: old.top, column: old.left }, far = { row: old.bottom, column: old.right };
  const moved = (cell) => ({ row: clip(cell.row + step[0], rows), column: clip(cell.column + step[1], columns) });
  const end = event.shiftKey ? { row: Math.max(moved(far).row, near.row), column: Math.max(moved(far).column, near.column) } : moved(near);
  state.pinned = { region: regionOf(event.shiftKey ? near : end, end) };
  return showActive();
}

function hearWords(container) {
  const rowUnder = (event) => event.target.closest("[data-row]")?.dataset.row;
  const told = (act) => (event) => { if (rowUnder(event) !== undefined) act({ row: Number(rowUnder(event)) }, event); };
  container.addEventListener("click", told(pin));
  container.addEventListener("pointerover", told((what, event) => event.pointerType === "mouse" && hover(what)));
  container.addEventListener("pointerout", () => hover(null));
  container.addEventListener("focusin", told((what, event) => { if (event.target.matches(":focus-visible")) hover(what); }));
  container.addEventListener("keydown", (event) => {
    const all = [...container.children], next = arrowed(event.key, all.indexOf(event.target), all.length);
    if (next === null) return;
    event.preventDefault();
    state.pinned = null; // whoever walks on wants to see the next
    setRoving(all, next);
    all[next].focus();
  });
}

function begin() {
  makePhotos();
  hearPhoto();
  hearWords(find("caption"));
  hearWords(find("tiles"));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") letGo(); });
  find("as-text").addEventListener("toggle", showAsText);
  choose(0);
}

begin();
