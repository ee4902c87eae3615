/* What a person changes about where the model looks, in words and buttons. Asking the model is left to `changed`. */

import { quoted, say, whenSpoken } from "./say.js";

const find = (id) => document.getElementById(id);

export class Edits {
  constructor(changed) {
    this.changed = changed;
    this.clear();
    find("silence").addEventListener("click", () => this.silenceChosen());
    whenSpoken(() => this.show());
  }

  clear() {
    Object.assign(this, { masked: new Set(), attended: new Map(), names: new Map(), words: { row: [], column: [] }, chosen: null, answer: null });
  }

  get isEmpty() { return !this.masked.size && !this.attended.size; }
  get question() { return { mask: [...this.masked], attend: Object.fromEntries(this.attended) }; }

  // --- making them: a word cannot be silenced and looked at

  attend(row, column) {
    this.masked.delete(column);
    this.attended.set(row, column);
    if (!this.names.has(row)) this.names.set(row, this.words.row[row]); // what it was when it was first told to look elsewhere
    this.changed();
  }

  silence(column) {
    if (!this.masked.delete(column)) {
      this.masked.add(column);
      for (const [row, own] of this.attended) if (own === column) this.attended.delete(row);
    }
    this.changed();
  }

  /* The button goes when it is done, so the word has the focus again. */
  silenceChosen() {
    const { number } = this.chosen;
    document.querySelector(`#first .word[data-side="column"][data-number="${number}"]`).focus();
    this.silence(number);
  }

  choose(place) {
    this.chosen = place;
    this.showChoice();
  }

  // --- showing them

  show() {
    this.showChoice();
    this.showList();
    this.showChange();
  }

  showChoice() {
    const { chosen } = this, isSource = chosen?.side === "column", isSilenced = isSource && this.masked.has(chosen.number);
    const named = chosen && quoted(this.words[chosen.side][chosen.number]);
    const hint = isSilenced ? "hint-silenced" : isSource ? "hint-source" : "hint-target";
    find("hint").textContent = chosen ? say(hint, { word: named }) : "";
    find("silence").hidden = !isSource;
    find("silence").textContent = isSource ? say(isSilenced ? "restore" : "silence", { word: named }) : "";
  }

  /* One button each to undo it, and one for all. */
  showList() {
    const texts = [
      ...[...this.masked].map((column) => [say("edit-mask", { word: quoted(this.words.column[column]) }), () => this.masked.delete(column)]),
      ...[...this.attended].map(([row, column]) => [
        say("edit-attend", { target: quoted(this.names.get(row)), source: quoted(this.words.column[column]) }), () => this.attended.delete(row)]),
    ];
    const chips = texts.map(([text, undo]) => make("li", {}, this.button(text, "chip", say("undo", { edit: text }), undo)));
    const reset = chips.length ? [make("li", {}, this.button(say("reset"), "reset", null, () => this.clear()))] : [];
    const hadFocus = find("edits").contains(document.activeElement);
    find("edits").replaceChildren(...chips, ...reset);
    if (hadFocus) (find("edits").querySelector("button") ?? document.querySelector("#first .word[tabindex='0']"))?.focus();
  }

  button(text, name, label, act) {
    const button = make("button", { type: "button", class: name, "aria-label": label }, text);
    button.addEventListener("click", () => { act(); this.changed(); });
    return button;
  }

  showChange() {
    const { answer } = this, isSame = answer?.diff.every(([what]) => what === "same");
    if (!answer) return find("change").replaceChildren();
    find("change").replaceChildren(
      textLine(say("before"), answer.diff, "removed", "del", say("nothing")), textLine(say("now"), answer.diff, "added", "ins", say("nothing")),
      ...(isSame ? [make("p", { class: "faint" }, say("same"))] : []));
  }
}

