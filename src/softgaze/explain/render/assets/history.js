/* The attention of one sentence pair during training: a slider, the scores, and the map at that moment. */

const SNAPSHOT_MS = 450; // while playing
const CHART_HEIGHT = 100, CHART_TOP = 5, CHART_WIDTH = 1000; // in units of the chart

const find = (id) => document.getElementById(id);
const data = JSON.parse(find("softgaze-page").textContent);
const snapshots = data.snapshots.map((snapshot) => ({ ...snapshot, recording: readRecording(snapshot.recording) }));
const state = { index: snapshots.length - 1, view: data.view, timer: null };

// --- moments -------------------------------------------------------------------------------------------------------

function goTo(index) {
  state.index = Math.min(Math.max(index, 0), snapshots.length - 1);
  show();
}

function togglePlay() {
  if (state.timer) return pause();
  if (state.index === snapshots.length - 1) goTo(0);
  state.timer = setInterval(() => (state.index < snapshots.length - 1 ? goTo(state.index + 1) : pause()), SNAPSHOT_MS);
  return showPlaying();
}

function pause() {
  clearInterval(state.timer);
  state.timer = null;
  showPlaying();
}

function showPlaying() {
  find("play").textContent = t(state.timer ? "pause" : "play");
  find("play").setAttribute("aria-pressed", String(Boolean(state.timer)));
}

const momentOf = ({ step, minutes }) => t("at-step", { step: formatNumber(step), minutes: minutes.toFixed(1) });

function show() {
  const snapshot = snapshots[state.index], map = mapOf(snapshot.recording, state.view);
  find("slider").value = state.index;
  find("slider").setAttribute("aria-valuetext", momentOf(snapshot));
  find("moment").textContent = momentOf(snapshot);
  find("text").replaceChildren(...markNewWords(snapshot, snapshots[state.index - 1]));
  ribbons.show(map, null, { column: t("source"), row: t("reference") });
  heatmap.show(map, null);
  find("heat").setAttribute("aria-label", t("heat-at", { moment: momentOf(snapshot) }));
  find("description").textContent = describeMap(snapshot.recording, state.view, data.names, data.selected);
  showCursor(snapshot);
}

/* The output of the model; words that are not in the previous output are underlined. */
function markNewWords(snapshot, previous) {
  const known = new Set(previous?.text.split(" "));
  if (!snapshot.text) return [make("span", { class: "faint" }, t("empty"))];
  return snapshot.text.split(" ").flatMap((text, index) =>
    [...(index ? [" "] : []), previous && !known.has(text) ? make("span", { class: "new" }, text) : text]);
}

// --- scores --------------------------------------------------------------------------------------------------------

const SCORES = ["loss", "bleu"];
const xOf = (snapshot) => (CHART_WIDTH * snapshot.step) / Math.max(1, snapshots.at(-1).step);

/* Each score has its own scale from 0 to its largest value. */
function scorePoints(name) {
  const scored = snapshots.filter((snapshot) => name in snapshot.scores), most = Math.max(1e-9, ...scored.map(({ scores }) => scores[name]));
  return scored.map((snapshot) => `${xOf(snapshot).toFixed(1)},${(CHART_HEIGHT - (CHART_HEIGHT - CHART_TOP) * (snapshot.scores[name] / most)).toFixed(1)}`);
}

/* A line with a dot for each validation. A dot is a line of length 0 with round ends: the chart is stretched, and a
   circle would become an ellipse. */
function scoreLine(name) {
  const points = scorePoints(name), dots = points.map((point) => `M${point}h0`).join("");
  return [makeSvg("polyline", { class: name, points: points.join(" ") }), makeSvg("path", { class: `${name} dot`, d: dots })];
}

function makeChart() {
  const lines = SCORES.flatMap(scoreLine);
  const ticks = snapshots.map((snapshot) => makeSvg("line", { class: "tick", x1: xOf(snapshot).toFixed(1), x2: xOf(snapshot).toFixed(1), y1: CHART_HEIGHT - 4, y2: CHART_HEIGHT }));
  const axis = makeSvg("line", { class: "tick", x1: 0, x2: CHART_WIDTH, y1: CHART_HEIGHT, y2: CHART_HEIGHT });
  const cursor = makeSvg("line", { class: "cursor", y1: 0, y2: CHART_HEIGHT });
  const svg = makeSvg("svg", { viewBox: `0 0 ${CHART_WIDTH} ${CHART_HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, axis, ...ticks, cursor, ...lines);
  const seek = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const box = svg.getBoundingClientRect(), x = (CHART_WIDTH * (event.clientX - box.left)) / box.width;
    const distances = snapshots.map((snapshot) => Math.abs(xOf(snapshot) - x));
    goTo(distances.indexOf(Math.min(...distances)));
  };
  svg.addEventListener("pointerdown", seek);
  svg.addEventListener("pointermove", seek);
  find("chart").replaceChildren(svg, make("p", {}));
}

function showCursor(snapshot) {
  const cursor = document.querySelector(".cursor"), x = xOf(snapshot).toFixed(1);
  cursor.setAttribute("x1", x);
  cursor.setAttribute("x2", x);
  const scores = SCORES.map((name) => {
    const value = snapshot.scores[name];
    return make("span", {}, make("i", { class: name }), `${t(name)} ${value === undefined ? "–" : value.toFixed(name === "loss" ? 2 : 1)}`);
  });
  const note = make("span", { class: "faint" }, t("chart-note", { step: formatNumber(snapshots.at(-1).step) }));
  document.querySelector("#chart p").replaceChildren(...scores, note);
}

// --- start ---------------------------------------------------------------------------------------------------------

const drawings = [];
const onWordEvent = (name, side, number) => {
  const active = name === "leave" || name === "blur" ? null : { side, number };
  for (const drawing of drawings) drawing.highlight(active);
};
const ribbons = new Ribbons(find("stage"), onWordEvent), heatmap = new Heatmap(find("heat"), onWordEvent);

function viewSelect(field) {
  const count = snapshots[0].recording.parts[0].cross[`${field}s`];
  return indexSelect(field, t(field), count, state.view[field], (index) => {
    state.view = { ...state.view, [field]: index };
    show();
  });
}

/* Arrow keys step and the space bar plays, unless a control has the focus. */
function onKey(event) {
  if (event.target.matches("input, select, button") || event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step) { pause(); goTo(state.index + step); }
  else if (event.key === "Home") { pause(); goTo(0); }
  else if (event.key === "End") { pause(); goTo(snapshots.length - 1); }
  else if (event.key === " ") togglePlay();
  else return;
  event.preventDefault();
}

function start() {
  const { source, target } = snapshots.at(-1).recording;
  find("source").textContent = source.words.join(" ");
  find("reference").textContent = target.words.join(" ");
  find("slider").max = snapshots.length - 1;
  find("slider").addEventListener("input", (event) => { pause(); goTo(Number(event.target.value)); });
  find("play").addEventListener("click", togglePlay);
  document.addEventListener("keydown", onKey);
  addEventListener("resize", show);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show); // the canvas has no CSS colours
  makeChart();
  initLanguage(find("page-language"));
  onLanguageChange(() => {
    find("controls").replaceChildren(viewSelect("layer"), viewSelect("head"));
    showPlaying();
    show();
  });
  drawings.push(ribbons, heatmap);
}

start();
