/* The user's edits of the attention: masked source words, and source words that output words must attend to. */

const find = (id) => document.getElementById(id);

export class AttentionEdits {
  constructor(onChange) {
    this.onChange = onChange;
    this.clear();
    find("mask-word").addEventListener("click", () => this.maskSelected());
    onLanguageChange(() => this.show());
  }

  clear() {
    Object.assign(this, { masked: new Set(), attended: new Map(), names: new Map(), words: { row: [], column: [] }, selected: null, response: null });
  }

  get isEmpty() { return !this.masked.size && !this.attended.size; }
  get change() { return { mask: [...this.masked], attend: Object.fromEntries(this.attended) }; }

  // --- edits: a word cannot be both masked and attended to

  attend(row, column) {
    this.masked.delete(column);
    this.attended.set(row, column);
    if (!this.names.has(row)) this.names.set(row, this.words.row[row]); // the output word at the time of the first edit
    this.onChange();
  }

  toggleMask(column) {
    if (!this.masked.delete(column)) {
      this.masked.add(column);
      for (const [row, attended] of this.attended) if (attended === column) this.attended.delete(row);
    }
    this.onChange();
  }

  /* The button disappears afterwards, so the focus returns to the word. */
  maskSelected() {
    const { number } = this.selected;
    document.querySelector(`#first .word[data-side="column"][data-number="${number}"]`).focus();
    this.toggleMask(number);
  }

  select(word) {
    this.selected = word;
    this.showSelection();
  }

  // --- display

  show() {
    this.showSelection();
    this.showList();
    this.showDiff();
  }

  showSelection() {
    const { selected } = this, isSource = selected?.side === "column", isMasked = isSource && this.masked.has(selected.number);
    const word = selected && quoted(this.words[selected.side][selected.number]);
    const hint = isMasked ? "hint-masked" : isSource ? "hint-source" : "hint-target";
    find("hint").textContent = selected ? t(hint, { word }) : "";
    find("mask-word").hidden = !isSource;
    find("mask-word").textContent = isSource ? t(isMasked ? "unmask" : "mask", { word }) : "";
  }

  /* One button to undo each edit, and one to reset them all. */
  showList() {
    const edits = [
      ...[...this.masked].map((column) => [t("edit-mask", { word: quoted(this.words.column[column]) }), () => this.masked.delete(column)]),
      ...[...this.attended].map(([row, column]) => [
        t("edit-attend", { target: quoted(this.names.get(row)), source: quoted(this.words.column[column]) }), () => this.attended.delete(row)]),
    ];
    const chips = edits.map(([text, undo]) => make("li", {}, this.button(text, "chip", t("undo", { edit: text }), undo)));
    const reset = chips.length ? [make("li", {}, this.button(t("reset"), "reset", null, () => this.clear()))] : [];
    const hadFocus = find("edits").contains(document.activeElement);
    find("edits").replaceChildren(...chips, ...reset);
    if (hadFocus) (find("edits").querySelector("button") ?? document.querySelector("#first .word[tabindex='0']"))?.focus();
  }

  button(text, className, label, action) {
    const button = make("button", { type: "button", class: className, "aria-label": label }, text);
    button.addEventListener("click", () => { action(); this.onChange(); });
    return button;
  }

  showDiff() {
    const { response } = this;
    if (!response) return find("diff").replaceChildren();
    const isSame = response.diff.every(([kind]) => kind === "same");
    find("diff").replaceChildren(
      textLine(t("before"), response.diff, "removed", "del"), textLine(t("after"), response.diff, "added", "ins"),
      ...(isSame ? [make("p", { class: "faint" }, t("same"))] : []));
  }
}
