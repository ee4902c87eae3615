"use strict";
/* The language of a page: taken from the browser, switched by a button, stored if the browser allows it. The page
   defines STRINGS, one table for each language. */

const LANGUAGE_PREFERENCE = "softgaze-language";
const languageCallbacks = [];
let pageLanguage = "en";

/* Stored preferences; a browser may forbid storage. */
function loadPreference(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

function savePreference(name, value) {
  try { localStorage.setItem(name, value); } catch { /* lasts for this visit only */ }
}

/* Call `callback` now and after each change of the language. */
function onLanguageChange(callback) {
  languageCallbacks.push(callback);
  callback();
}

/* The string of this key in the current language, with its {placeholders} filled. */
function t(key, values = {}) {
  return STRINGS[pageLanguage][key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/* User text within a sentence: isolated, so that its direction does not affect the sentence. */
const isolated = (text) => `\u2068${text}\u2069`;
const quoted = (text) => `“${isolated(text)}”`;

const formatNumber = (value, options) => new Intl.NumberFormat(pageLanguage, options).format(value);
const formatPercent = (value) => formatNumber(value, { style: "percent" });
const formatBytes = (value) => (value < 1024 ** 2 ? `${formatNumber(Math.ceil(value / 1024))} kB` : `${formatNumber(value / 1024 ** 2, { maximumFractionDigits: 1 })} MB`);

/* The name of a language in the current language, or the server's name if the browser does not know it. */
function languageName({ code, name }) {
  try {
    return new Intl.DisplayNames([pageLanguage], { type: "language", fallback: "none" }).of(code) ?? name;
  } catch {
    return name;
  }
}

function setLanguage(language) {
  pageLanguage = language;
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-i18n]")) element.textContent = t(element.dataset.i18n);
  for (const element of document.querySelectorAll("[data-i18n-label]")) element.setAttribute("aria-label", t(element.dataset.i18nLabel));
  for (const element of document.querySelectorAll("[data-i18n-placeholder]")) element.placeholder = t(element.dataset.i18nPlaceholder);
  for (const callback of languageCallbacks) callback();
}

function initLanguage(button) {
  const preferred = [loadPreference(LANGUAGE_PREFERENCE), ...navigator.languages.map((tag) => tag.split("-")[0])];
  button.addEventListener("click", () => {
    setLanguage(pageLanguage === "en" ? "ko" : "en");
    savePreference(LANGUAGE_PREFERENCE, pageLanguage);
  });
  onLanguageChange(() => {
    button.textContent = t("other-language");
    button.lang = pageLanguage === "en" ? "ko" : "en"; // the button shows the name of the other language
    button.title = t("switch-language");
  });
  setLanguage(preferred.find((language) => language in STRINGS) ?? "en");
}
