/* Requests to the server of this page. Failures become an ApiError with a one-line message. */

const MAX_TRIES = 4; // of a request while the server is busy
const JSON_HEADERS = { "Content-Type": "application/json" };

export class ApiError extends Error {}

let key = "";
export const setKey = (text) => { key = text; };
export const getKey = () => key;

export const get = (path) => fetchJson(path, {});
export const getBlob = async (path, signal) => (await fetchOk(path, { signal })).blob();
export const post = (path, body, signal) => fetchJson(path, { method: "POST", headers: JSON_HEADERS, body: JSON.stringify(body), signal });

export const postForm = (path, fields, signal) => fetchJson(path, { method: "POST", body: toForm(fields), signal });

export function toForm(fields) {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  return body;
}

const fetchJson = async (path, options) => (await fetchOk(path, options)).json();

/* The response if its status is OK; while the server is busy (429), wait and try again. */
async function fetchOk(path, options, tries = MAX_TRIES) {
  const response = await fetchWithKey(path, options);
  if (response.ok) return response;
  if (response.status === 429 && tries > 1) {
    const seconds = Math.max(Number(response.headers.get("Retry-After")) || 1, 1);
    showError(t("busy", { seconds }));
    await delay(seconds * 1000, options.signal);
    showError("");
    return fetchOk(path, options, tries - 1);
  }
  throw new ApiError(await errorMessage(response));
}

async function fetchWithKey(path, options) {
  const headers = { ...options.headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  try {
    return await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(t("unreachable"));
  }
}

async function errorMessage(response) {
  try {
    return oneLine((await response.json()).error);
  } catch {
    return t("unknown-error", { status: response.status });
  }
}

const oneLine = (text) => String(text).replace(/\s+/g, " ").trim();

const delay = (milliseconds, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, milliseconds);
  signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); });
});

/* The server-sent events of a stream as they arrive: [name, data]. The body is an object, or a form. */
export async function* streamEvents(path, body, signal) {
  const sent = body instanceof FormData ? { body } : { headers: JSON_HEADERS, body: JSON.stringify({ ...body, stream: true }) };
  const response = await fetchOk(path, { method: "POST", ...sent, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    const events = (buffer + chunk.value).split(/\r?\n\r?\n/);
    buffer = events.pop();
    for (const event of events) if (event.trim()) yield parseEvent(event);
  }
}

function parseEvent(text) {
  const lines = text.split(/\r?\n/), field = (name) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).replace(/^ /, ""));
  const [name] = field("event"), data = JSON.parse(field("data").join("\n"));
  if (name === "error") throw new ApiError(oneLine(data.error));
  return [name, data];
}

// --- errors --------------------------------------------------------------------------------------------------------

export function showError(text) {
  document.getElementById("error").textContent = text;
}

/* Run `action` and show its ApiError; return null if it failed or was aborted. */
export async function reportErrors(action) {
  try {
    showError("");
    return await action();
  } catch (error) {
    if (error.name === "AbortError") return null;
    if (!(error instanceof ApiError)) throw error;
    showError(error.message);
    return null;
  }
}
