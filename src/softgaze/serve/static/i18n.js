/* The language of the page: taken from the browser, switched by a button, stored if the browser allows it. */

import { STRINGS } from "./strings.js";

const LANGUAGE_PREFERENCE = "softgaze-language";
const callbacks = [];
let current = "en";

/* Call `callback` now and after each change of the language. */
export function onLanguageChange(callback) {
  callbacks.push(callback);
  callback();
}

/* The string of this key in the current language, with its {placeholders} filled. */
export function t(key, values = {}) {
  return STRINGS[current][key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/* User text within a sentence: isolated, so that its direction does not affect the sentence. */
export const isolated = (text) => `\u2068${text}\u2069`;
export const quoted = (text) => `“${isolated(text)}”`;

export const formatNumber = (value, options) => new Intl.NumberFormat(current, options).format(value);
export const formatPercent = (value) => formatNumber(value, { style: "percent" });
export const formatBytes = (value) => (value < 1024 ** 2 ? `${formatNumber(Math.ceil(value / 1024))} kB` : `${formatNumber(value / 1024 ** 2, { maximumFractionDigits: 1 })} MB`);

/* The name of a language in the current language, or the server's name if the browser does not know it. */
export function languageName({ code, name }) {
  try {
    return new Intl.DisplayNames([current], { type: "language", fallback: "none" }).of(code) ?? name;
  } catch {
    return name;
  }
}

function setLanguage(language) {
  current = language;
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-i18n]")) element.textContent = t(element.dataset.i18n);
  for (const element of document.querySelectorAll("[data-i18n-label]")) element.setAttribute("aria-label", t(element.dataset.i18nLabel));
  for (const element of document.querySelectorAll("[data-i18n-placeholder]")) element.placeholder = t(element.dataset.i18nPlaceholder);
  for (const callback of callbacks) callback();
}

export function initLanguage(button) {
  const preferred = [loadPreference(LANGUAGE_PREFERENCE), ...navigator.languages.map((tag) => tag.split("-")[0])];
  button.addEventListener("click", () => {
    setLanguage(current === "en" ? "ko" : "en");
    savePreference(LANGUAGE_PREFERENCE, current);
  });
  onLanguageChange(() => {
    button.textContent = t("other-language");
    button.lang = current === "en" ? "ko" : "en"; // the button shows the name of the other language
    button.title = t("switch-language");
  });
  setLanguage(preferred.find((language) => language in STRINGS) ?? "en");
}
