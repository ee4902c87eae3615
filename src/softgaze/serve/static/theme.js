"use strict";
/* Light or dark, set before the page is drawn: a stored choice overrides the one media rule of style.css. */

const THEME = "softgaze-theme";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

const isDark = () => document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : systemIsDark.matches;

function setTheme(theme) {
  const rules = document.getElementById("palette").sheet.cssRules;
  for (const rule of rules) if (rule instanceof CSSMediaRule && rule.cssText.includes("--paper")) rule.media.mediaText = theme === "dark" ? "all" : "not all";
  document.documentElement.dataset.theme = theme;
  document.documentElement.style.colorScheme = theme;
}

if (["light", "dark"].includes(loadPreference(THEME))) setTheme(loadPreference(THEME));
