/* A second model next to the first: its translation of the same sentence, the differences, and its attention. */

import { AttentionView } from "./attention_view.js";
import { setOptions } from "./language_picker.js";

const find = (id) => document.getElementById(id);

export class Comparison {
  constructor(languages, onChange) {
    this.languages = languages;
    this.id = "";
    this.view = new AttentionView(find("second"));
    find("compare").addEventListener("change", () => { this.id = find("compare").value; onChange(); });
    onLanguageChange(() => this.showPicker());
  }

  /* Set the first model, and return the second one or null. */
  setFirst(model) {
    this.first = model;
    if (!this.second) this.id = "";
    this.showPicker();
    return this.second;
  }

  get second() { return this.otherModels().find(({ id }) => id === this.id) ?? null; }

  /* The other models of the same language pair. */
  otherModels() {
    const { first } = this;
    return first ? this.languages.modelsFor(first.source.code, first.target.code).filter(({ id }) => id !== first.id) : [];
  }

  showPicker() {
    const models = this.otherModels();
    find("compare-field").hidden = !models.length;
    setOptions(find("compare"), [["", t("compare-none")], ...models.map(({ id }) => [id, id])], this.id);
  }

  /* Show the translation of the first model, and that of the second one if `resultOf(model)` has it. */
  show(firstResult, resultOf) {
    const model = this.second, result = model && resultOf(model), isShown = Boolean(result);
    find("second").hidden = !isShown;
    find("first").querySelector(".model-info").hidden = !isShown;
    find("attention").classList.toggle("two", isShown);
    if (!isShown) return;
    showModel(find("first"), this.first, firstResult, result);
    showModel(find("second"), model, result, firstResult);
    find("second").querySelector(".stage").hidden = !result.attention?.weights;
    if (result.attention?.weights) this.view.show(result.attention, { uncovered: result.attention.uncovered.map((word) => word.index) });
    else find("second").querySelector(".sentence").textContent = t("no-attention");
  }
}

function showModel(root, model, result, other) {
  root.querySelector(".name").textContent = model.id;
  root.querySelector(".model-text").lang = model.target.code;
  root.querySelector(".model-text").replaceChildren(...markDifferences(result.text, other.text));
  root.querySelector(".model-facts").textContent = t("facts", { score: result.score.toFixed(2).replace("-", "−"), milliseconds: Math.round(result.milliseconds) });
}

/* The words of a text; those outside of the longest common subsequence with the other text are marked. */
function markDifferences(text, other) {
  const words = text.split(" "), common = new Set(commonSubsequence(words, other.split(" ")));
  return words.flatMap((word, index) => [index ? " " : "", common.has(index) ? word : make("mark", {}, word)]);
}

/* Indices in `a` of a longest common subsequence of `a` and `b`. */
function commonSubsequence(a, b) {
  const lengths = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0)); // of the suffixes from i and j
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) {
    lengths[i][j] = a[i] === b[j] ? 1 + lengths[i + 1][j + 1] : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
  }
  const indices = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) { indices.push(i); i++; j++; } else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++; else j++;
  }
  return indices;
}
