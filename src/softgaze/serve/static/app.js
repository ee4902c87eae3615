/* Start of the page: the models of the server decide which panels are shown. */

import { get, reportErrors, setKey, showError } from "./api.js";
import { FilePanel } from "./file_panel.js";
import { GlossaryPanel } from "./glossary_panel.js";
import { ImagePanel } from "./image_panel.js";
import { LanguagePicker } from "./language_picker.js";
import { TextPanel } from "./text_panel.js";

const find = (id) => document.getElementById(id);

function showTab(selected) {
  for (const tab of find("tabs").children) { // hidden tabs have panels too
    tab.setAttribute("aria-selected", String(tab === selected));
    find(tab.getAttribute("aria-controls")).hidden = tab !== selected;
  }
  const tabs = visibleTabs();
  setRoving(tabs, tabs.indexOf(selected));
  for (const id of ["languages", "glossary"]) find(id).hidden = selected.id === "tab-image"; // images have no language
  find("languages").dataset.for = selected.id;
  showError("");
}

const visibleTabs = () => [...find("tabs").children].filter((tab) => !tab.hidden);

function initTabs() {
  for (const tab of find("tabs").children) tab.addEventListener("click", () => showTab(tab));
  find("tabs").addEventListener("keydown", (event) => {
    const tabs = visibleTabs(), index = arrowTarget(event.key, tabs.indexOf(document.activeElement), tabs.length);
    if (index === null) return;
    event.preventDefault();
    tabs[index].focus();
    showTab(tabs[index]);
  });
  showTab(visibleTabs()[0]);
}

function initTheme() {
  find("theme").addEventListener("click", () => {
    setTheme(isDark() ? "light" : "dark");
    savePreference(THEME, isDark() ? "dark" : "light");
  });
}

async function init() {
  initLanguage(find("page-language"));
  initTheme();
  const server = await reportErrors(async () => ({ ...(await get("v1/models")), frontend: await get("frontend/settings") }));
  if (!server) return;
  const captioners = server.models.filter(({ kind }) => kind === "image"), hasText = server.models.some(({ kind }) => kind === "text");
  if (server.key_required) find("key").type = "password";
  find("key-field").hidden = !server.key_required;
  find("tab-text").hidden = !hasText;
  find("tab-image").hidden = !captioners.length;
  find("tab-file").hidden = !server.frontend.filesTranslation || !hasText;
  initTabs();
  let textPanel = null;
  let glossary = null;
  const languages = new LanguagePicker(server, () => { glossary?.load(); textPanel?.refresh(); });
  glossary = new GlossaryPanel(languages, () => textPanel?.translateAgain());
  if (hasText) textPanel = new TextPanel(server, languages, glossary);
  find("key").addEventListener("change", () => { setKey(find("key").value.trim()); textPanel?.refresh(); });
  new FilePanel(server.limits.file, server.frontend.supportedFilesFormat, languages, glossary);
  if (captioners.length) new ImagePanel(captioners, server.limits.body);
  document.documentElement.dataset.ready = "";
  textPanel?.refresh(); // the browser may have restored the text
}

init();
