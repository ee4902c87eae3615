/* The language of the page itself: chosen from the browser, switched by a button, remembered if the browser may. */

import { TEXTS } from "./words.js";

const INTERFACE = "softgaze-interface";
const listeners = [];
let current = "en";

export const interfaceLanguage = () => current;

/* Call `listener` now and whenever the language changes. */
export function whenSpoken(listener) {
  listeners.push(listener);
  listener();
}

export function say(name, values = {}) {
  return TEXTS[current][name].replace(/\{(\w+)\}/g, (_, place) => values[place]);
}

/* A person's word inside a sentence of ours: in quotes, and in its own direction whatever it holds. */
export const quoted = (text) => `“\u2068${text}\u2069”`;
export const isolated = (text) => `\u2068${text}\u2069`;

const number = (value, options) => new Intl.NumberFormat(current, options).format(value);
export const count = (value) => number(value);
export const bytes = (value) => (value < 1024 ** 2 ? `${number(Math.ceil(value / 1024))} kB` : `${number(value / 1024 ** 2, { maximumFractionDigits: 1 })} MB`);

/* The name of a language in the language of the page; codes that the browser does not know have the server's name. */
export function languageName({ code, name }) {
  try {
    const known = new Intl.DisplayNames([current], { type: "language", fallback: "none" }).of(code);
    return known ?? name;
  } catch {
    return name;
  }
}

function speak(language) {
  current = language;
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-say]")) element.textContent = say(element.dataset.say);
  for (const element of document.querySelectorAll("[data-say-label]")) element.setAttribute("aria-label", say(element.dataset.sayLabel));
  for (const element of document.querySelectorAll("[data-say-placeholder]")) element.placeholder = say(element.dataset.sayPlaceholder);
  for (const listener of listeners) listener();
}

export function beginSpeaking(button) {
  const wanted = [recalled(INTERFACE), ...navigator.languages.map((each) => each.split("-")[0])];
  button.addEventListener("click", () => {
    speak(current === "en" ? "ko" : "en");
    remember(INTERFACE, current);
  });
  whenSpoken(() => {
    button.textContent = say("interface-short");
    button.lang = current === "en" ? "ko" : "en"; // it names the other one
    button.title = say("interface");
  });
  speak(wanted.find((each) => each in TEXTS) ?? "en");
}
