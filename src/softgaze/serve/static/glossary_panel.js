/* Terms that the user types or pastes: a line each, "source = target" or with a tab. They stay in this browser. */

const find = (id) => document.getElementById(id);
const DEBOUNCE_MS = 400; // without a key press before the terms are used

export class GlossaryPanel {
  /* `onChange` is called after the terms have changed. */
  constructor(languages, onChange) {
    Object.assign(this, { languages, target: null });
    let timer = null;
    find("terms").addEventListener("input", () => {
      clearTimeout(timer);
      savePreference(this.name, find("terms").value);
      this.show();
      timer = setTimeout(onChange, DEBOUNCE_MS);
    });
    onLanguageChange(() => this.show());
    this.load();
  }

  get name() { return `softgaze-terms-${this.target}`; }

  /* Show the terms of the target language; each language has its own. */
  load() {
    if (this.target === this.languages.target) return;
    this.target = this.languages.target;
    find("terms").value = loadPreference(this.name) ?? "";
    find("glossary").open = Boolean(this.lines.length);
    this.show();
  }

  get lines() { return find("terms").value.toWellFormed().split("\n").filter((line) => line.trim()); }

  /* The fields of a request: line n is line n of the field, so that an error names the right one. */
  get request() {
    if (!this.lines.length) return {};
    const lines = find("terms").value.toWellFormed().split("\n").map((line) => (line.includes("\t") ? line : line.replace(/\s+=\s+/, "\t").trim()));
    return { glossary: lines.join("\n") };
  }

  show() {
    const { length } = this.lines;
    find("glossary-title").textContent = length ? t("glossary-count", { count: formatNumber(length) }) : t("glossary");
  }
}
