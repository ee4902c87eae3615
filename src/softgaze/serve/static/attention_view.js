/* The ribbons of one sentence: hover, selection, keyboard and drag. Edits are passed to the callbacks of `edit`. */

const DRAG_PIXELS = 5; // a pointer moves this far before it drags
const OTHER_SIDE = { row: "column", column: "row" };
const isSame = (a, b) => a?.side === b?.side && a?.number === b?.number;

/* The word weights of an API response as a map for Ribbons: rows are target words, columns source words. */
function toMap({ source_words: source, target_words: target, weights }) {
  const labels = (words) => words.map((text, number) => ({ text, word: number }));
  return { height: target.length, width: source.length, values: Float64Array.from(weights.flat()), rows: labels(target), columns: labels(source) };
}

export class AttentionView {
  /* `edit` has attend(row, column), toggleMask(column) and select(word or null); without it the view is read-only. */
  constructor(root, edit = null) {
    this.root = root;
    this.edit = edit;
    this.canEdit = false;
    this.clear();
    this.ribbons = new Ribbons(root.querySelector(".stage"), (...event) => this.onWordEvent(...event));
    this.stage.addEventListener("keydown", (event) => this.onKey(event));
    this.stage.addEventListener("pointerdown", (event) => this.startDrag(event));
    onLanguageChange(() => this.map && this.draw());
  }

  get stage() { return this.root.querySelector(".stage"); }

  clear() {
    Object.assign(this, { hovered: null, focused: null, selected: null, drag: null });
  }

  /* `masked` and `uncovered` are indices of source words; `attended` maps output words to source words. */
  show(attention, { canEdit = false, masked = [], uncovered = [], attended = new Map() } = {}) {
    const focused = this.focusedWord();
    this.clear();
    Object.assign(this, { map: toMap(attention), canEdit: canEdit && Boolean(this.edit), masked, uncovered, attended });
    this.draw();
    if (focused) this.focusWord(focused.side, focused.number);
    this.edit?.select(null);
  }

  draw() {
    this.stage.classList.toggle("editable", this.canEdit);
    this.isDrawing = true; // removing a focused word fires blur
    this.ribbons.active = null;
    this.ribbons.show(this.map, [...this.attended].map(([row, column]) => [row, column, true]), { column: t("source"), row: t("output") });
    this.isDrawing = false;
    for (const index of this.masked) this.markSourceWord(index, "masked", "edit-mask");
    for (const index of this.uncovered) this.markSourceWord(index, "uncovered");
    this.highlight();
  }

  markSourceWord(index, className, label) {
    const element = this.ribbons.words.column[index];
    element?.classList.add(className);
    if (label) element?.setAttribute("aria-label", t(label, { word: this.map.columns[index].text }));
  }

  // --- highlight

  onWordEvent(name, side, number, event) {
    const target = { side, number };
    if (this.drag?.isMoving || this.isDrawing) return;
    if (name === "point") this.hovered = target;
    if (name === "leave") this.hovered = null;
    if (name === "focus" && event.target.matches(":focus-visible")) this.focused = target;
    if (name === "blur") this.focused = null;
    if (name === "press") this.press(target);
    this.highlight();
  }

  highlight() {
    const active = this.selected ?? this.hovered ?? this.focused;
    this.ribbons.highlight(active && { ...active, isPinned: active === this.selected });
    this.stage.dataset.choosing = this.selected && this.canEdit ? OTHER_SIDE[this.selected.side] : "";
    this.root.querySelector(".sentence").replaceChildren(...(active ? this.describe(active) : [t(this.canEdit ? "hint-edit" : "hint-view")]));
    this.root.querySelector(".sentence").classList.toggle("faint", !active);
  }

  weightsOf({ side, number }) {
    return side === "row" ? Array.from(rowOf(this.map, number)) : this.map.rows.map((_, row) => at(this.map, row, number));
  }

  /* A word and the words with the largest weights, as text. */
  describe({ side, number }) {
    const isRow = side === "row", [words, others] = isRow ? [this.map.rows, this.map.columns] : [this.map.columns, this.map.rows];
    const top = topOf(this.weightsOf({ side, number })).map(([index, weight]) => [word(others[index].text), ` ${twoDecimals(weight)}`]);
    return [word(words[number].text), isRow ? " ← " : " → ", ...(top.length ? joinGroups(top) : [t("none")])];
  }

  // --- selection

  press(target) {
    if (this.selected && this.selected.side !== target.side && this.canEdit) return this.attend(this.selected, target);
    this.select(isSame(this.selected, target) ? null : target);
  }

  select(target) {
    this.selected = target;
    this.edit?.select(target && this.canEdit ? target : null);
    this.highlight();
  }

  attend(one, other) {
    const pair = { [one.side]: one.number, [other.side]: other.number };
    this.select(null);
    this.edit.attend(pair.row, pair.column);
  }

  // --- keyboard

  onKey(event) {
    const { side, number } = event.target.closest("[data-side]")?.dataset ?? {};
    if (!side || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") return this.select(null);
    if (["Delete", "Backspace"].includes(event.key) && side === "column" && this.canEdit) {
      event.preventDefault();
      return this.edit.toggleMask(Number(number));
    }
    this.moveFocus(event, side, Number(number));
  }

  /* Along the words of a side, or across to the word with the largest weight. */
  moveFocus(event, side, number) {
    const { isVertical, words, lines } = this.ribbons;
    const [back, forward] = isVertical ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
    const isAcross = event.key === (side === "column" ? forward : back);
    if (!isAcross && event.key === (side === "column" ? back : forward)) return;
    const index = isAcross ? Math.max(0, argmax(this.weightsOf({ side, number }))) : arrowTarget(event.key, number, words[side].length, lines[side].dir === "rtl" && !isVertical);
    if (index === null) return;
    event.preventDefault();
    this.focusWord(isAcross ? OTHER_SIDE[side] : side, index);
  }

  focusWord(side, number) {
    const words = this.ribbons.words[side], index = Math.min(number, words.length - 1);
    if (index < 0) return;
    setRoving(words, index);
    words[index].focus({ preventScroll: true });
    words[index].scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  focusedWord() {
    const { side, number } = this.stage.contains(document.activeElement) ? document.activeElement.dataset : {};
    return side ? { side, number: Number(number) } : null;
  }

  // --- drag with a mouse or a pen; a finger scrolls, and selects by a tap

  startDrag(event) {
    const element = event.target.closest("[data-side]");
    if (!this.canEdit || !element || event.button || event.pointerType === "touch") return;
    const fixed = element.matches(".word") ? { side: element.dataset.side, number: Number(element.dataset.number) } : this.fixedEnd(element, event);
    this.drag = { fixed, x: event.clientX, y: event.clientY, isMoving: false };
    const move = (moveEvent) => this.onDrag(moveEvent);
    const end = () => {
      document.removeEventListener("pointermove", move);
      for (const name of ["pointerup", "pointercancel"]) document.removeEventListener(name, end);
      this.endDrag();
    };
    document.addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, end);
    if (!element.matches(".word")) event.preventDefault(); // do not select text
  }

  /* A ribbon is dragged by its nearer end; the other end is fixed. */
  fixedEnd(element, event) {
    const { row, column } = this.ribbons.paths.find((path) => path.element === element);
    const box = this.ribbons.svg.getBoundingClientRect();
    const share = this.ribbons.isVertical ? (event.clientX - box.left) / box.width : (event.clientY - box.top) / box.height;
    return share < 0.5 ? { side: "row", number: row } : { side: "column", number: column };
  }

  onDrag(event) {
    const { drag } = this;
    if (!drag.isMoving && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < DRAG_PIXELS) return;
    if (!drag.isMoving) this.showGhost();
    drag.over = this.dropTarget(event);
    this.markDropTarget(drag.over);
    drag.ghost.setAttribute("d", this.ghostPath(event));
  }

  showGhost() {
    const { drag } = this;
    drag.isMoving = true;
    drag.ghost = makeSvg("path", { class: "ghost" });
    this.ribbons.svg.append(drag.ghost);
    this.stage.classList.add("dragging");
    this.hovered = this.selected = null;
    this.edit.select(null);
    this.ribbons.highlight({ ...drag.fixed, isPinned: false });
  }

  /* The word of the other side under the pointer. */
  dropTarget(event) {
    const element = document.elementFromPoint(event.clientX, event.clientY)?.closest(".word[data-side]");
    if (!element || !this.stage.contains(element) || element.dataset.side === this.drag.fixed.side) return null;
    return { side: element.dataset.side, number: Number(element.dataset.number) };
  }

  markDropTarget(target) {
    for (const element of this.stage.querySelectorAll(".word.over")) element.classList.remove("over");
    if (target) this.ribbons.words[target.side][target.number].classList.add("over");
  }

  ghostPath(event) {
    const { fixed } = this.drag, { isVertical, svg } = this.ribbons, box = svg.getBoundingClientRect();
    const [start, end] = this.ribbons.ends(box)[fixed.side][fixed.number], depth = isVertical ? box.width : box.height;
    const along = isVertical ? event.clientY - box.top : event.clientX - box.left;
    const across = Math.min(Math.max(isVertical ? event.clientX - box.left : event.clientY - box.top, 0), depth);
    const middle = (start + end) / 2, edge = fixed.side === "column" ? 0 : depth, half = (edge + across) / 2;
    const point = (a, b) => (isVertical ? `${b.toFixed(1)} ${a.toFixed(1)}` : `${a.toFixed(1)} ${b.toFixed(1)}`);
    return `M${point(middle, edge)}C${point(middle, half)} ${point(along, half)} ${point(along, across)}`;
  }

  endDrag() {
    const { drag } = this;
    this.drag = null;
    if (!drag.isMoving) return;
    drag.ghost.remove();
    this.stage.classList.remove("dragging");
    this.markDropTarget(null);
    if (drag.over) this.attend(drag.fixed, drag.over);
    else this.highlight();
  }
}
