/* The page begins: which models there are decides what it offers. */

import { get, setKey, tell, telling } from "./api.js";
import { Files } from "./file.js";
import { Images } from "./image.js";
import { Pair } from "./pair.js";
import { beginSpeaking } from "./say.js";
import { Desk } from "./text.js";

const find = (id) => document.getElementById(id);

function showTab(chosen) {
  for (const tab of find("tabs").children) { // a tab that is not offered has a panel too
    tab.setAttribute("aria-selected", String(tab === chosen));
    find(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
  }
  const tabs = openTabs();
  setRoving(tabs, tabs.indexOf(chosen));
  find("pair").hidden = chosen.id === "tab-image"; // a picture has no language
  find("pair").dataset.for = chosen.id;
  tell("");
}

const openTabs = () => [...find("tabs").children].filter((tab) => !tab.hidden);

function beginTabs() {
  for (const tab of find("tabs").children) tab.addEventListener("click", () => showTab(tab));
  find("tabs").addEventListener("keydown", (event) => {
    const tabs = openTabs(), place = arrowed(event.key, tabs.indexOf(document.activeElement), tabs.length);
    if (place === null) return;
    event.preventDefault();
    tabs[place].focus();
    showTab(tabs[place]);
  });
  showTab(openTabs()[0]);
}

function beginTheme() {
  find("theme").addEventListener("click", () => {
    setTheme(isDark() ? "light" : "dark");
    remember(THEME, isDark() ? "dark" : "light");
  });
}

async function begin() {
  beginSpeaking(find("interface"));
  beginTheme();
  const facts = await telling(async () => ({ ...(await get("v1/models")), files: await get("frontend/settings") }));
  if (!facts) return;
  const captioners = facts.models.filter(({ kind }) => kind === "image"), hasText = facts.models.some(({ kind }) => kind === "text");
  if (facts.key_required) find("key").type = "password";
  find("key-field").hidden = !facts.key_required;
  find("tab-text").hidden = !hasText;
  find("tab-image").hidden = !captioners.length;
  find("tab-file").hidden = !facts.files.filesTranslation || !hasText;
  beginTabs();
  let desk = null;
  const pair = new Pair(facts, () => desk?.refresh());
  if (hasText) desk = new Desk(facts, pair);
  find("key").addEventListener("change", () => { setKey(find("key").value.trim()); desk?.refresh(); });
  new Files(facts.limits.body, facts.files.supportedFilesFormat, pair);
  if (captioners.length) new Images(captioners, facts.limits.body);
  document.documentElement.dataset.ready = "";
  desk?.refresh(); // a browser may have kept what was typed
}

begin();
