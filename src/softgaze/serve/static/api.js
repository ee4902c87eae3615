/* Talking to the server that this page came from. What goes wrong becomes one plain line: a `Refusal`. */

import { say } from "./say.js";

const TRIES = 4; // of a request that finds the server busy

export class Refusal extends Error {}

let key = "";
export const setKey = (text) => { key = text; };
export const ownKey = () => key;

export const get = (path) => answered(path, {});
export const getBlob = async (path, signal) => (await asked(path, { signal })).blob();
export const post = (path, body, signal) => answered(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
export const sendForm = (path, fields, signal) => answered(path, { method: "POST", body: formOf(fields), signal });

function formOf(fields) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return form;
}

async function answered(path, options) {
  const answer = await asked(path, options);
  return answer.json();
}

/* The answer, if it is a good one; a busy server is asked again when it says so. */
async function asked(path, options, tries = TRIES) {
  const answer = await reached(path, options);
  if (answer.ok) return answer;
  if (answer.status === 429 && tries > 1) {
    const seconds = Math.max(Number(answer.headers.get("Retry-After")) || 1, 1);
    tell(say("busy", { seconds }));
    await pause(seconds * 1000, options.signal);
    tell("");
    return asked(path, options, tries - 1);
  }
  throw new Refusal(await reason(answer));
}

async function reached(path, options) {
  const headers = { ...options.headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  try {
    return await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(say("unreachable"));
  }
}

async function reason(answer) {
  try {
    return oneLine((await answer.json()).error);
  } catch {
    return say("strange", { status: answer.status });
  }
}

const oneLine = (text) => String(text).replace(/\s+/g, " ").trim();

const pause = (milliseconds, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, milliseconds);
  signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); });
});

/* Events of a stream as they come: [name, data]. */
export async function* streamed(path, body, signal) {
  const answer = await asked(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...body, stream: true }), signal });
  let rest = "";
  for await (const text of decoded(answer.body)) {
    const events = (rest + text).split(/\r?\n\r?\n/);
    rest = events.pop();
    for (const event of events) if (event.trim()) yield eventOf(event);
  }
}

async function* decoded(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
}

function eventOf(text) {
  const lines = text.split(/\r?\n/), field = (name) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).replace(/^ /, ""));
  const [name] = field("event"), data = JSON.parse(field("data").join("\n"));
  if (name === "error") throw new Refusal(oneLine(data.error));
  return [name, data];
}

// --- one line for what went wrong ----------------------------------------------------------------------------------

export function tell(text) {
  document.getElementById("problem").textContent = text;
}

/* Run something that may be refused; what was given up on purpose is no problem. */
export async function telling(act) {
  try {
    tell("");
    return await act();
  } catch (error) {
    if (error.name === "AbortError") return null;
    if (!(error instanceof Refusal)) throw error;
    tell(error.message);
    return null;
  }
}
