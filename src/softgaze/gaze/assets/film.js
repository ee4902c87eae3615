/* One sentence through a training: a slider, a curve that says how good the model was, and the map of that moment. */

const BEAT = 450; // milliseconds a frame stays while playing
const HIGH = 100, ROOM = 5, WIDE = 1000; // of the curve, in its own units

const find = (id) => document.getElementById(id);
const film = JSON.parse(find("softgaze-film").textContent);
const frames = film.frames.map((frame) => ({ ...frame, recording: readRecording(frame.recording) }));
const state = { place: frames.length - 1, view: film.view, timer: null };

// --- moments -------------------------------------------------------------------------------------------------------

function go(place) {
  state.place = Math.min(Math.max(place, 0), frames.length - 1);
  show();
}

function play() {
  if (state.timer) return pause();
  if (state.place === frames.length - 1) go(0);
  state.timer = setInterval(() => (state.place < frames.length - 1 ? go(state.place + 1) : pause()), BEAT);
  return showPlaying();
}

function pause() {
  clearInterval(state.timer);
  state.timer = null;
  showPlaying();
}

function showPlaying() {
  find("play").textContent = state.timer ? "Pause" : "Play";
  find("play").setAttribute("aria-pressed", String(Boolean(state.timer)));
}

// --- what is seen --------------------------------------------------------------------------------------------------

const momentOf = ({ step, minutes }) => `step ${step.toLocaleString("en")}, ${minutes.toFixed(1)} minutes`;

function show() {
  const frame = frames[state.place], map = mapOf(frame.recording, state.view);
  find("slider").value = state.place;
  find("slider").setAttribute("aria-valuetext", momentOf(frame));
  find("moment").textContent = momentOf(frame);
  find("text").replaceChildren(...written(frame, frames[state.place - 1]));
  ribbons.show(map, null, { column: "source", row: "reference" });
  heat.show(map, null);
  find("heat").setAttribute("aria-label", `Heat map at ${momentOf(frame)}`);
  find("shows").textContent = showsOf(frame.recording, state.view, film.names, film.choice);
  showCursor(frame);
}

/* The model's own words; those it did not write a frame ago are underlined. */
function written(frame, before) {
  const known = new Set(before?.text.split(" "));
  if (!frame.text) return [make("span", { class: "faint" }, "nothing")];
  return frame.text.split(" ").flatMap((text, place) =>
    [...(place ? [" "] : []), before && !known.has(text) ? make("span", { class: "new" }, text) : text]);
}

// --- the curve -----------------------------------------------------------------------------------------------------

const CURVES = { loss: "dev loss", bleu: "dev BLEU" };
const across = (frame) => (WIDE * frame.step) / Math.max(1, frames.at(-1).step);

/* Each curve on a scale of its own, from 0 to its largest: only their course is compared. */
function points(name) {
  const own = frames.filter((frame) => name in frame.scores), most = Math.max(1e-9, ...own.map((frame) => frame.scores[name]));
  return own.map((frame) => `${across(frame).toFixed(1)},${(HIGH - (HIGH - ROOM) * (frame.scores[name] / most)).toFixed(1)}`);
}

/* A line through all points, and a dot on each: of a single validation there is only the dot. A dot is a line without
   length whose ends are round, since the picture is stretched and a circle would be, too. */
function dottedCurve(name) {
  const own = points(name), dots = own.map((point) => `M${point}h0`).join("");
  return [makeSvg("polyline", { class: name, points: own.join(" ") }), makeSvg("path", { class: `${name} dot`, d: dots })];
}

function makeCurve() {
  const lines = Object.keys(CURVES).flatMap(dottedCurve);
  const ticks = frames.map((frame) => makeSvg("line", { class: "tick", x1: across(frame).toFixed(1), x2: across(frame).toFixed(1), y1: HIGH - 4, y2: HIGH }));
  const ground = makeSvg("line", { class: "tick", x1: 0, x2: WIDE, y1: HIGH, y2: HIGH });
  const cursor = makeSvg("line", { class: "cursor", y1: 0, y2: HIGH });
  const picture = makeSvg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" }, ground, ...ticks, cursor, ...lines);
  const seek = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const box = picture.getBoundingClientRect(), wanted = (WIDE * (event.clientX - box.left)) / box.width;
    const distances = frames.map((frame) => Math.abs(across(frame) - wanted));
    go(distances.indexOf(Math.min(...distances)));
  };
  picture.addEventListener("pointerdown", seek);
  picture.addEventListener("pointermove", seek);
  find("curve").replaceChildren(picture, make("p", {}));
}

function showCursor(frame) {
  const cursor = document.querySelector(".cursor"), place = across(frame).toFixed(1);
  cursor.setAttribute("x1", place);
  cursor.setAttribute("x2", place);
  const told = Object.entries(CURVES).map(([name, title]) => {
    const value = frame.scores[name];
    return make("span", {}, make("i", { class: name }), `${title} ${value === undefined ? "–" : value.toFixed(name === "loss" ? 2 : 1)}`);
  });
  const last = make("span", { class: "faint" }, `each on a scale from 0 to its highest; steps 0 to ${frames.at(-1).step.toLocaleString("en")}`);
  document.querySelector("#curve p").replaceChildren(...told, last);
}

// --- layers and heads ----------------------------------------------------------------------------------------------

function select(field, title) {
  const total = frames[0].recording.parts[0].cross[`${field}s`];
  return choiceOf(field, title, total, state.view[field], (number) => {
    state.view = { ...state.view, [field]: number };
    show();
  });
}

// --- start ---------------------------------------------------------------------------------------------------------

const pictures = [];
const listen = (what, side, number) => {
  const active = what === "leave" || what === "blur" ? null : { side, number };
  for (const picture of pictures) picture.light(active);
};
const ribbons = new Ribbons(find("stage"), listen), heat = new Heat(find("heat"), listen);

function start() {
  const { source, target } = frames.at(-1).recording;
  find("source").textContent = source.words.join(" ");
  find("reference").textContent = target.words.join(" ");
  find("slider").max = frames.length - 1;
  find("slider").addEventListener("input", (event) => { pause(); go(Number(event.target.value)); });
  find("play").addEventListener("click", play);
  find("controls").replaceChildren(select("layer", "Layer"), select("head", "Head"));
  document.addEventListener("keydown", keys);
  addEventListener("resize", show);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show); // a heat map is painted, not styled
  makeCurve();
  show();
  pictures.push(ribbons, heat);
}

/* Arrows step and the space bar plays, wherever nothing else wants them. */
function keys(event) {
  if (event.target.matches("input, select, button") || event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step) { pause(); go(state.place + step); }
  else if (event.key === "Home") { pause(); go(0); }
  else if (event.key === "End") { pause(); go(frames.length - 1); }
  else if (event.key === " ") play();
  else return;
  event.preventDefault();
}

start();
