/* A table of sentences: ranked, sorted, searched, a page of them at a time, and one of them open with its map. */

const PAGE = 50; // rows in the document at once; a thousand would make every key press slow
const LEVELS = 255; // of a packed weight

const find = (id) => document.getElementById(id);
const corpus = JSON.parse(find("softgaze-corpus").textContent);
const count = (value) => value.toLocaleString("en");
const hundredths = (value) => `${Math.round(100 * value)} %`;

/* What can be sorted by: its value (null: none), whether large is bad, and how it is shown. */
const COLUMNS = {
  line: { title: "Line", value: (look) => look.line, isBad: false, show: count },
  uncovered: { title: "Uncovered", value: (look) => (look.uncovered?.length ?? 0) + (look.shortfall ?? 0) / 1000, isBad: true, show: (value) => String(Math.floor(value)) },
  unsaid: { title: "Unsaid", value: (look) => (look.unsaid ? look.misfit : 0), isBad: true, show: (value) => `${value.toFixed(1)} nats` },
  repetition: { title: "Repeated", value: (look) => (look.repeated?.length ?? 0) / Math.max(look.output.length, 1), isBad: true, show: hundredths },
  coverage: { title: "Coverage", value: (look) => look.coverage, isBad: false, show: hundredths },
  honesty: { title: "Honesty", value: (look) => look.honesty, isBad: false, show: (value) => value.toFixed(2) },
  aer: { title: "AER", value: (look) => look.aer ?? null, isBad: true, show: hundredths },
  chrf: { title: "chrF", value: (look) => look.scores?.chrf ?? null, isBad: false, show: (value) => value.toFixed(0) },
  length: { title: "Words", value: (look) => look.source.length, isBad: true, show: String },
};
const shownColumns = Object.keys(COLUMNS).filter((name) => corpus.looks.some((look) => COLUMNS[name].value(look) !== null));

/* Whether a ranking has a place for a sentence, as RANKINGS in corpus.py decides. */
const BELONGS = {
  uncovered: (look) => Boolean(look.uncovered),
  unsaid: (look) => Boolean(look.unsaid),
  repetition: (look) => Boolean(look.repeated),
  honesty: (look) => look.honesty !== null && look.honesty < corpus.honest,
  aer: (look) => look.aer > 0,
  chrf: (look) => (look.scores?.chrf ?? 100) < 100,
};

const state = { ranking: null, column: "line", isUp: true, search: "", first: 0, open: null };

// --- which sentences, in which order -------------------------------------------------------------------------------

function chosenLooks() {
  const { value } = COLUMNS[state.column], direction = state.isUp ? 1 : -1;
  const order = (one, other) => {
    const [first, second] = [value(one), value(other)];
    if (first === null || second === null) return (first === null) - (second === null); // what has none is last, whichever way
    return direction * (first - second) || one.line - other.line;
  };
  return corpus.looks.filter((look) => (!state.ranking || BELONGS[state.ranking](look)) && isFound(look)).sort(order);
}

function isFound(look) {
  const wanted = state.search.trim().toLowerCase();
  if (!wanted || String(look.line) === wanted) return true;
  return [look.source, look.output, look.reference ?? []].some((words) => words.join(" ").toLowerCase().includes(wanted));
}

function rank(name) {
  const isSame = state.ranking === name;
  if (isSame) Object.assign(state, { ranking: null, column: "line", isUp: true });
  else Object.assign(state, { ranking: name, column: name, isUp: !COLUMNS[name].isBad });
  show({ first: 0, open: null });
}

function sortBy(name) {
  const isUp = state.column === name ? !state.isUp : !COLUMNS[name].isBad; // the worst first, then the other way
  show({ column: name, isUp: name === "line" && state.column !== name ? true : isUp, first: 0, open: null });
}

// --- drawing -------------------------------------------------------------------------------------------------------

function show(changes) {
  Object.assign(state, changes);
  const looks = chosenLooks();
  showRankings();
  showHead();
  find("table").tBodies[0].replaceChildren(...looks.slice(state.first, state.first + PAGE).flatMap(rowsOf));
  find("count").textContent = looks.length === 1 ? "1 sentence" : `${count(looks.length)} sentences`;
  find("explained").textContent = state.ranking ? `${corpus.rankings[state.ranking].title}: ${corpus.rankings[state.ranking].explained}.` : "";
  find("all").hidden = !state.ranking && !state.search && state.column === "line";
  showPager(looks.length);
}

function showRankings() {
  for (const button of find("rankings").children) button.setAttribute("aria-pressed", String(button.dataset.name === state.ranking));
}

function makeRankings() {
  const buttons = Object.entries(corpus.rankings).map(([name, { title, explained }]) => {
    const found = corpus.summary.rankings[name];
    if (!found) return null;
    const button = make("button", { type: "button", "data-name": name, title: explained }, make("b", {}, count(found)), make("span", {}, title));
    button.addEventListener("click", () => rank(name));
    return button;
  });
  find("rankings").replaceChildren(...buttons.filter(Boolean));
}

function showHead() {
  const cells = shownColumns.map((name) => {
    const button = make("button", { type: "button" }, COLUMNS[name].title);
    button.addEventListener("click", () => { sortBy(name); document.querySelector(`th[data-name="${name}"] button`).focus(); });
    const sorted = state.column === name && (state.isUp ? "ascending" : "descending");
    return make("th", { scope: "col", class: "number", "data-name": name, "aria-sort": sorted }, button);
  });
  const text = make("th", { scope: "col" }, make("span", { class: "faint" }, "Sentence"));
  find("table").tHead.replaceChildren(make("tr", {}, cells[0], text, ...cells.slice(1)));
}

function rowsOf(look) {
  const isOpen = state.open === look.line;
  const numbers = shownColumns.map((name) => numberCell(name, look));
  const row = make("tr", { "data-line": look.line }, numbers[0], make("td", { class: "text" }, opener(look, isOpen)), ...numbers.slice(1));
  return isOpen ? [row, detailRow(look)] : [row];
}

function numberCell(name, look) {
  const { title, value, show: written, isBad } = COLUMNS[name], found = value(look);
  const isNothing = found === null || (isBad && found === 0);
  return make("td", { class: isNothing ? "number zero" : "number", "data-title": title }, isNothing ? "–" : written(found));
}

function opener(look, isOpen) {
  const source = make("span", { class: "source", dir: "auto" }, ...marked(look.source, { uncovered: look.uncovered, unsaid: look.unsaid }));
  const output = make("span", { class: "said-in-row", dir: "auto" }, ...marked(look.output, { repeated: look.repeated, different: look.different }));
  const button = make("button", { type: "button", class: "open-sentence", "aria-expanded": String(isOpen) }, source, output);
  button.addEventListener("click", () => toggle(look.line));
  return button;
}

/* Words with the classes of the lists their numbers are in. */
function marked(words, lists) {
  return words.flatMap((text, place) => {
    const names = Object.keys(lists).filter((name) => lists[name]?.includes(place));
    return [...(place ? [" "] : []), names.length ? make("span", { class: names.join(" "), title: names.join(", ") }, text) : text];
  });
}

function toggle(line) {
  show({ open: state.open === line ? null : line });
  document.querySelector(`tr[data-line="${line}"] .open-sentence`).focus();
}

// --- one sentence --------------------------------------------------------------------------------------------------

function detailRow(look) {
  const stage = make("div", { class: "stage" }), heat = make("div", { class: "heat", role: "img", tabindex: 0, "aria-label": "Heat map: source on top, output at the left" });
  const maps = make("div", { id: "maps" }, stage, heat);
  const row = make("tr", {}, make("td", { class: "detail", colspan: shownColumns.length + 1 }, factsOf(look), maps));
  requestAnimationFrame(() => draw(mapOfLook(look), stage, heat)); // once it has a width
  return row;
}

/* Both pictures light up what either is pointed at. */
function draw(map, stage, container) {
  const pictures = [];
  let pinned = null;
  const listen = (what, side, number) => {
    if (what === "press") pinned = pinned?.side === side && pinned.number === number ? null : { side, number, isPinned: true };
    const active = pinned ?? (what === "leave" || what === "blur" ? null : { side, number });
    for (const picture of pictures) picture.light(active);
  };
  pictures.push(new Ribbons(stage, listen), new Heat(container, listen));
  pictures[0].show(map, null, { column: "source", row: "output" });
  pictures[1].show(map, null);
}

/* The map as maps.js has it; the last column is what went to marks. */
function mapOfLook(look) {
  const label = (text, word) => ({ text, word });
  const values = Float64Array.from(new Uint8Array(bytesOf(look.weights)), (level) => level / LEVELS);
  return {
    height: look.output.length, width: look.source.length + 1, values,
    rows: look.output.map(label), columns: [...look.source.map(label), label(END_MARK, null)],
  };
}

function factsOf(look) {
  const named = (words, places) => [...new Set(places.map((place) => words[place]))].join(" · ");
  const facts = [
    ["Uncovered", look.uncovered && named(look.source, look.uncovered)],
    ["Unsaid", look.unsaid && `${named(look.source, look.unsaid)} (likelier without, by up to ${look.misfit.toFixed(1)} nats)`],
    ["Repeated", look.repeated && named(look.output, look.repeated)],
    ["Reference", look.reference && look.reference.join(" ")],
    ["Scores", look.scores?.chrf !== undefined && `chrF ${look.scores.chrf.toFixed(1)}, BLEU ${look.scores.bleu.toFixed(1)}`],
    ["Sink", `${hundredths(look.sink)} of the looking goes to the end of the sentence`],
  ];
  return make("dl", {}, ...facts.filter(([, text]) => text).flatMap(([name, text]) => [make("dt", {}, name), make("dd", { dir: "auto" }, text)]));
}

// --- distributions, pages, the head --------------------------------------------------------------------------------

const HISTOGRAM_TITLES = { coverage: "Coverage: share of source words that were looked at", honesty: "Honesty", length: "Source words" };

function histogram(name, { edges, counts }) {
  const most = Math.max(1, ...counts), wide = 300 / counts.length;
  const bars = counts.map((found, place) => {
    const height = (80 * found) / most;
    const bar = makeSvg("rect", { x: place * wide + 1, y: 92 - height, width: wide - 2, height: Math.max(height, found ? 1 : 0) });
    bar.append(makeSvg("title", {}, `${edges[place]} to ${edges[place + 1]}: ${count(found)}`));
    return bar;
  });
  const texts = edges.map((edge, place) => makeSvg("text", { x: Math.min(Math.max(place * wide, 8), 292), y: 104 }, String(edge)));
  const told = counts.map((found, place) => `${edges[place]} to ${edges[place + 1]}: ${found}`).join("; ");
  return make("figure", {}, makeSvg("svg", { viewBox: "0 0 300 108", role: "img", "aria-label": told }, ...bars, ...texts), make("figcaption", {}, HISTOGRAM_TITLES[name]));
}

function showPager(total) {
  const page = (text, first) => {
    const button = make("button", { type: "button", disabled: first < 0 || first >= total }, text);
    button.addEventListener("click", () => { show({ first, open: null }); find("table").scrollIntoView(); });
    return button;
  };
  const last = Math.min(state.first + PAGE, total);
  const where = make("span", { class: "faint" }, total ? `${count(state.first + 1)}–${count(last)} of ${count(total)}` : "nothing found");
  find("pager").replaceChildren(...(total > PAGE ? [page("Earlier", state.first - PAGE), where, page("Later", state.first + PAGE)] : total ? [] : [where]));
}

function showHeadline() {
  const { summary, facts, looks, isWhole } = corpus, { words } = summary;
  const told = [`${facts.corpus}, translated by ${facts.model} with a beam of ${facts.beam}: ${count(summary.sentences)} sentences with ${count(words.all)} words, of which ${count(words.uncovered)} ${words.uncovered === 1 ? "seems" : "seem"} uncovered and ${count(words.unsaid)} unsaid; ${words.repeated === 1 ? "1 word is" : `${count(words.repeated)} words are`} said again.`];
  if (summary.aer !== null) told.push(`The alignment error rate on the reference is ${(100 * summary.aer).toFixed(1)} %.`);
  if (summary.empty) told.push(`${count(summary.empty)} lines had nothing to look at.`);
  if (!isWhole) told.push(`Here are the worst ${count(looks.length)}; counts are of all.`);
  find("headline").textContent = told.join(" ");
  find("shows").textContent = `Maps: ${facts.shows}.`;
}

function start() {
  showHeadline();
  makeRankings();
  find("histograms").replaceChildren(...Object.entries(corpus.summary.histograms).map(([name, own]) => histogram(name, own)));
  find("search").addEventListener("input", (event) => show({ search: event.target.value, first: 0, open: null }));
  find("controls").addEventListener("submit", (event) => event.preventDefault());
  find("all").addEventListener("click", () => {
    find("search").value = "";
    show({ ranking: null, column: "line", isUp: true, search: "", first: 0, open: null });
    find("search").focus();
  });
  const worst = Object.keys(corpus.rankings).find((name) => corpus.summary.rankings[name]);
  if (worst) rank(worst);
  else show({});
}

start();
