"use strict";
/* Light or dark before anything is drawn. The palette knows both (style.css); a choice switches its one media rule. */

const THEME = "softgaze-theme";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/* What a browser was told to remember; a browser that remembers nothing is fine. */
function recalled(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

function remember(name, value) {
  try { localStorage.setItem(name, value); } catch { /* then only for this visit */ }
}

const isDark = () => document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : systemIsDark.matches;

function setTheme(theme) {
  const rules = document.getElementById("palette").sheet.cssRules;
  for (const rule of rules) if (rule instanceof CSSMediaRule && rule.cssText.includes("--paper")) rule.media.mediaText = theme === "dark" ? "all" : "not all";
  document.documentElement.dataset.theme = theme;
  document.documentElement.style.colorScheme = theme;
}

if (["light", "dark"].includes(recalled(THEME))) setTheme(recalled(THEME));
