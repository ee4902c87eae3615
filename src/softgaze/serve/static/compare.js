/* A second model beside the first: its translation of the same sentence, what differs, and its own ribbons. */

import { fill } from "./pair.js";
import { Look } from "./look.js";
import { say, whenSpoken } from "./say.js";

const find = (id) => document.getElementById(id);

export class Comparison {
  constructor(pair, changed) {
    this.pair = pair;
    this.id = "";
    this.look = new Look(find("second"));
    find("compare").addEventListener("change", () => { this.id = find("compare").value; changed(); });
    whenSpoken(() => this.showPicker());
  }

  /* The second model, or null: another one that translates the same pair. */
  fit(model) {
    this.first = model;
    if (!this.rivals().some(({ id }) => id === this.id)) this.id = "";
    this.showPicker();
    return this.second;
  }

  get second() { return this.rivals().find(({ id }) => id === this.id) ?? null; }

  rivals() {
    const { first } = this;
    return first ? this.pair.models.filter(({ id, source, target }) => id !== first.id && source.code === first.source.code && target.code === first.target.code) : [];
  }

  showPicker() {
    const rivals = this.rivals();
    find("compare-field").hidden = !rivals.length;
    fill(find("compare"), [["", say("compare-none")], ...rivals.map(({ id }) => [id, id])], this.id);
  }

  show(first, found) {
    const other = this.second, second = other && found(other), isOn = Boolean(second);
    find("second").hidden = !isOn;
    find("first").querySelector(".by").hidden = !isOn;
    find("gaze").classList.toggle("two", isOn);
    if (!isOn) return;
    this.showSide(find("first"), this.first, first, second);
    this.showSide(find("second"), other, second, first);
    find("second").querySelector(".stage").hidden = !second.attention?.weights;
    if (second.attention?.weights) this.look.show(second.attention, { ignored: second.attention.warnings.map((each) => each.word) });
    else find("second").querySelector(".sentence").textContent = say("no-attention");
  }

  showSide(root, model, own, other) {
    root.querySelector(".name").textContent = model.id;
    root.querySelector(".whole").lang = model.target.code;
    root.querySelector(".whole").replaceChildren(...marked(own.text, other.text));
    root.querySelector(".facts").textContent = say("facts", { score: own.score.toFixed(2).replace("-", "−"), milliseconds: Math.round(own.milliseconds) });
  }
}

/* The words of a text, those that the other does not have at this place marked. */
function marked(text, other) {
  const own = text.split(" "), common = new Set(longestCommon(own, other.split(" ")));
  return own.flatMap((each, place) => [place ? " " : "", common.has(place) ? each : make("mark", {}, each)]);
}

/* Places in `own` of a longest sequence of words that both have. */
function longestCommon(own, other) {
  const best = own.map(() => []).concat([[]]); // best[i][j]: how many from i and j on
  const lengthAt = (i, j) => best[i][j] ?? 0;
  for (let i = own.length - 1; i >= 0; i--) for (let j = other.length - 1; j >= 0; j--) {
    best[i][j] = own[i] === other[j] ? 1 + lengthAt(i + 1, j + 1) : Math.max(lengthAt(i + 1, j), lengthAt(i, j + 1));
  }
  const places = [];
  for (let i = 0, j = 0; i < own.length && j < other.length;) {
    if (own[i] === other[j]) { places.push(i); i++; j++; } else if (lengthAt(i + 1, j) >= lengthAt(i, j + 1)) i++; else j++;
  }
  return places;
}
