/* Translation of a text file. File names are only ever inserted as text. */

import { getBlob, reportErrors, streamEvents, toForm } from "./api.js";
import { acceptFile } from "./file_drop.js";

const find = (id) => document.getElementById(id);

export class FilePanel {
  constructor(maxBytes, formats, languages, glossary) {
    Object.assign(this, { maxBytes, formats, languages, glossary, renderStatus: () => [] });
    find("file").accept = formats.join(",");
    acceptFile(find("file-drop"), find("file"), (file) => this.translate(file));
    onLanguageChange(() => this.show());
  }

  async translate(file) {
    this.request?.abort();
    const { signal } = (this.request = new AbortController()), name = isolated(file.name);
    const problem = this.problemOf(file);
    if (problem) return this.setStatus(() => [problem()]);
    this.setStatus(() => [t("file-working", { name })]);
    const { source, target } = this.languages;
    const translated = await reportErrors(async () => {
      let url = "";
      for await (const [event, data] of streamEvents("translate_file", toForm({ file, source, target, ...this.glossary.request, stream: "true" }), signal)) {
        if (event === "progress") this.setStatus(() => [t("file-working", { name }), " ", make("progress", { value: data.done, max: data.total, "aria-label": t("file-working", { name }) })]);
        else url = data.translatedFileUrl;
      }
      return getBlob(`download_file/${new URL(url, location.href).pathname.split("/").at(-1)}`, signal);
    });
    if (!signal.aborted) this.setStatus(translated ? this.downloadLink(file.name, target, translated) : () => []);
  }

  /* Why a file is not sent, or null. */
  problemOf({ name, size }) {
    const formats = this.formats.join(", ");
    if (!this.formats.some((format) => name.toLowerCase().endsWith(format))) return () => t("file-format", { name: isolated(name), formats });
    return size > this.maxBytes ? () => t("file-large", { name: isolated(name), size: formatBytes(size), limit: formatBytes(this.maxBytes) }) : null;
  }

  /* letter.txt is downloaded as letter.ko.txt. */
  downloadLink(original, target, blob) {
    const dot = original.lastIndexOf("."), name = `${original.slice(0, dot)}.${target}${original.slice(dot)}`, href = URL.createObjectURL(blob);
    return () => [t("file-done", { name: isolated(original) }), " ", make("a", { href, download: name, class: "download" }, t("download", { name: isolated(name) }))];
  }

  setStatus(renderStatus) {
    this.renderStatus = renderStatus;
    this.show();
  }

  show() {
    find("file-status").replaceChildren(...this.renderStatus());
    find("file-limits").textContent = t("file-limits", { formats: this.formats.join(", "), size: formatBytes(this.maxBytes) });
  }
}
