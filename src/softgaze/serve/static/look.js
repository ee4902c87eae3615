/* One sentence's ribbons: what a person points at, chooses and drags. What a choice means is told to `edit`. */

import { say, whenSpoken } from "./say.js";

const FAR = 5; // pixels a pointer moves before it drags
const OTHER = { row: "column", column: "row" };
const isSame = (one, other) => one?.side === other?.side && one?.number === other?.number;

/* Weights as the server tells them, as a map that ribbons are drawn of. */
export function mapOfWords({ source_words: source, target_words: target, weights }) {
  const labels = (words) => words.map((text, number) => ({ text, word: number }));
  return { height: target.length, width: source.length, values: Float64Array.from(weights.flat()), rows: labels(target), columns: labels(source) };
}

export class Look {
  /* `edit` has attend(row, column), silence(column) and choose(place or null); without it there is only looking. */
  constructor(root, edit = null) {
    this.root = root;
    this.edit = edit;
    this.canEdit = false;
    this.clear();
    this.ribbons = new Ribbons(root.querySelector(".stage"), (...told) => this.listen(...told));
    this.stage.addEventListener("keydown", (event) => this.onKey(event));
    this.stage.addEventListener("pointerdown", (event) => this.onGrab(event));
    whenSpoken(() => this.map && this.draw());
  }

  get stage() { return this.root.querySelector(".stage"); }

  clear() {
    Object.assign(this, { hover: null, focus: null, chosen: null, drag: null });
  }

  /* `silenced` and `ignored` are numbers of source words; `forced` is {output word: source word}. */
  show(attention, { canEdit = false, silenced = [], ignored = [], forced = new Map() } = {}) {
    const held = this.held();
    this.clear();
    Object.assign(this, { map: mapOfWords(attention), canEdit: canEdit && Boolean(this.edit), silenced, ignored, forced });
    this.draw();
    if (held) this.hold(held.side, held.number);
    this.edit?.choose(null);
  }

  draw() {
    this.stage.classList.toggle("editable", this.canEdit);
    this.isDrawing = true; // a word that goes while it has the focus would tell
    this.ribbons.active = null;
    this.ribbons.show(this.map, [...this.forced].map(([row, column]) => [row, column, true]), { column: say("source"), row: say("output") });
    this.isDrawing = false;
    for (const number of this.silenced) this.mark(number, "silenced", "edit-mask");
    for (const number of this.ignored) this.mark(number, "ignored");
    this.light();
  }

  mark(number, name, text) {
    const element = this.ribbons.words.column[number];
    element?.classList.add(name);
    if (text) element?.setAttribute("aria-label", say(text, { word: this.map.columns[number].text }));
  }

  // --- what is lit

  listen(what, side, number, event) {
    const place = { side, number };
    if (this.drag?.isMoving || this.isDrawing) return;
    if (what === "point") this.hover = place;
    if (what === "leave") this.hover = null;
    if (what === "focus" && event.target.matches(":focus-visible")) this.focus = place;
    if (what === "blur") this.focus = null;
    if (what === "press") this.press(place);
    this.light();
  }

  light() {
    const active = this.chosen ?? this.hover ?? this.focus;
    this.ribbons.light(active && { ...active, isPinned: active === this.chosen });
    this.stage.dataset.choosing = this.chosen && this.canEdit ? OTHER[this.chosen.side] : "";
    this.root.querySelector(".sentence").replaceChildren(...(active ? this.inWords(active) : [say(this.canEdit ? "hint-edit" : "hint-look")]));
    this.root.querySelector(".sentence").classList.toggle("faint", !active);
  }

  /* A word, and those it looked at or was looked at by. */
  inWords({ side, number }) {
    const { map } = this, isRow = side === "row";
    const weights = isRow ? Array.from(rowOf(map, number)) : map.rows.map((_, row) => at(map, row, number));
    const others = isRow ? map.columns : map.rows;
    const partners = topOf(weights).map(([place, weight]) => [word(others[place].text), ` ${two(weight)}`]);
    const named = partners.length ? joined(partners) : [say(isRow ? "nowhere" : "nobody")];
    return [word((isRow ? map.rows : map.columns)[number].text), isRow ? " ← " : " → ", ...named];
  }

  // --- choosing

  press(place) {
    if (this.chosen && this.chosen.side !== place.side && this.canEdit) return this.attend(this.chosen, place);
    this.choose(isSame(this.chosen, place) ? null : place);
  }

  choose(place) {
    this.chosen = place;
    this.edit?.choose(place && this.canEdit ? place : null);
    this.light();
  }

  attend(one, other) {
    const place = { [one.side]: one.number, [other.side]: other.number };
    this.choose(null);
    this.edit.attend(place.row, place.column);
  }

  // --- keys

  onKey(event) {
    const { side, number } = event.target.closest("[data-side]")?.dataset ?? {};
    if (!side || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") return this.choose(null);
    if (["Delete", "Backspace"].includes(event.key) && side === "column" && this.canEdit) {
      event.preventDefault();
      return this.edit.silence(Number(number));
    }
    this.move(event, side, Number(number));
  }

  /* Along the words of a line, or across to the word that looked most, or was looked at most. */
  move(event, side, number) {
    const { isDown, words, lines } = this.ribbons;
    const [back, forth] = isDown ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
    const isAcross = event.key === (side === "column" ? forth : back);
    if (!isAcross && event.key === (side === "column" ? back : forth)) return;
    const place = isAcross ? this.partner(side, number) : arrowed(event.key, number, words[side].length, lines[side].dir === "rtl" && !isDown);
    if (place === null) return;
    event.preventDefault();
    this.hold(isAcross ? OTHER[side] : side, place);
  }

  partner(side, number) {
    const { map } = this, isRow = side === "row";
    return Math.max(0, largest(isRow ? Array.from(rowOf(map, number)) : map.rows.map((_, row) => at(map, row, number))));
  }

  hold(side, number) {
    const words = this.ribbons.words[side], place = Math.min(number, words.length - 1);
    if (place < 0) return;
    setRoving(words, place);
    words[place].focus({ preventScroll: true });
    words[place].scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  held() {
    const { side, number } = this.stage.contains(document.activeElement) ? document.activeElement.dataset : {};
    return side ? { side, number: Number(number) } : null;
  }

  // --- dragging, with a mouse or a pen: a finger scrolls, and taps to choose

  onGrab(event) {
    const element = event.target.closest("[data-side]");
    if (!this.canEdit || !element || event.button || event.pointerType === "touch") return;
    const fixed = element.matches(".word") ? { side: element.dataset.side, number: Number(element.dataset.number) } : this.fixedEnd(element, event);
    this.drag = { fixed, x: event.clientX, y: event.clientY, isMoving: false };
    const move = (each) => this.onDrag(each);
    const end = (each) => {
      document.removeEventListener("pointermove", move);
      for (const name of ["pointerup", "pointercancel"]) document.removeEventListener(name, end);
      this.onDrop(each);
    };
    document.addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, end);
    if (!element.matches(".word")) event.preventDefault(); // no text is selected
  }

  /* A ribbon is taken by its nearer end; the other one stays. */
  fixedEnd(element, event) {
    const { row, column } = this.ribbons.paths.find((path) => path.element === element);
    const box = this.ribbons.picture.getBoundingClientRect();
    const share = this.ribbons.isDown ? (event.clientX - box.left) / box.width : (event.clientY - box.top) / box.height;
    return share < 0.5 ? { side: "row", number: row } : { side: "column", number: column };
  }

  onDrag(event) {
    const { drag } = this;
    if (!drag.isMoving && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < FAR) return;
    if (!drag.isMoving) this.lift();
    drag.over = this.below(event);
    for (const each of this.stage.querySelectorAll(".word.over")) each.classList.remove("over");
    if (drag.over) this.ribbons.words[drag.over.side][drag.over.number].classList.add("over");
    drag.ghost.setAttribute("d", this.ghostPath(event));
  }

  lift() {
    const { drag } = this;
    drag.isMoving = true;
    drag.ghost = makeSvg("path", { class: "ghost" });
    this.ribbons.picture.append(drag.ghost);
    this.stage.classList.add("dragging");
    this.hover = this.chosen = null;
    this.edit.choose(null);
    this.ribbons.light({ ...drag.fixed, isPinned: false });
  }

  /* The word under the pointer that the fixed end may be tied to. */
  below(event) {
    const element = document.elementFromPoint(event.clientX, event.clientY)?.closest(".word[data-side]");
    if (!element || !this.stage.contains(element) || element.dataset.side === this.drag.fixed.side) return null;
    return { side: element.dataset.side, number: Number(element.dataset.number) };
  }

  ghostPath(event) {
    const { fixed } = this.drag, { isDown, picture } = this.ribbons, box = picture.getBoundingClientRect();
    const [start, end] = this.ribbons.ends(box)[fixed.side][fixed.number], depth = isDown ? box.width : box.height;
    const along = isDown ? event.clientY - box.top : event.clientX - box.left;
    const across = Math.min(Math.max(isDown ? event.clientX - box.left : event.clientY - box.top, 0), depth);
    const middle = (start + end) / 2, edge = fixed.side === "column" ? 0 : depth, half = (edge + across) / 2;
    const point = (one, other) => (isDown ? `${other.toFixed(1)} ${one.toFixed(1)}` : `${one.toFixed(1)} ${other.toFixed(1)}`);
    return `M${point(middle, edge)}C${point(middle, half)} ${point(along, half)} ${point(along, across)}`;
  }

  onDrop() {
    const { drag } = this;
    this.drag = null;
    if (!drag.isMoving) return;
    drag.ghost.remove();
    this.stage.classList.remove("dragging");
    for (const each of this.stage.querySelectorAll(".word.over")) each.classList.remove("over");
    if (drag.over) this.attend(drag.fixed, drag.over);
    else this.light();
  }
}
