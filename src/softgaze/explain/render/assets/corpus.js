/* A table of sentences that can be ranked, sorted, searched and paged; an open sentence shows its map. */

const PAGE_SIZE = 50; // rows at once; a thousand would slow down typing
const BYTE_LEVELS = 255; // of a packed weight

const find = (id) => document.getElementById(id);
const corpus = JSON.parse(find("softgaze-page").textContent);
const count = (value) => value.toLocaleString("en");
const percent = (value) => `${Math.round(100 * value)} %`;

/* Columns to sort by: the value (null if missing), whether large is bad, and the format. */
const COLUMNS = {
  line: { title: "Line", value: (sentence) => sentence.line, isBad: false, show: count },
  uncovered: { title: "Uncovered", value: (sentence) => (sentence.uncovered?.length ?? 0) + (sentence.shortfall ?? 0) / 1000, isBad: true, show: (value) => String(Math.floor(value)) },
  omitted: { title: "Omitted", value: (sentence) => (sentence.omitted ? sentence.misfit : 0), isBad: true, show: (value) => `${value.toFixed(1)} nats` },
  unsupported: { title: "Unsupported", value: (sentence) => sentence.unsupported?.length ?? 0, isBad: true, show: String },
  repetition: { title: "Repeated", value: (sentence) => (sentence.repeated?.length ?? 0) / Math.max(sentence.output.length, 1), isBad: true, show: percent },
  coverage: { title: "Coverage", value: (sentence) => sentence.coverage, isBad: false, show: percent },
  reliability: { title: "Reliability", value: (sentence) => sentence.reliability ?? null, isBad: false, show: percent },
  faithfulness: { title: "Faithfulness", value: (sentence) => sentence.faithfulness, isBad: false, show: (value) => value.toFixed(2) },
  aer: { title: "AER", value: (sentence) => sentence.aer ?? null, isBad: true, show: percent },
  chrf: { title: "chrF", value: (sentence) => sentence.scores?.chrf ?? null, isBad: false, show: (value) => value.toFixed(0) },
  length: { title: "Words", value: (sentence) => sentence.source.length, isBad: true, show: String },
};
const shownColumns = Object.keys(COLUMNS).filter((name) => corpus.sentences.some((sentence) => COLUMNS[name].value(sentence) !== null));

/* Whether a sentence is in a ranking, as RANKINGS in corpus_report.py. */
const IS_RANKED = {
  uncovered: (sentence) => Boolean(sentence.uncovered),
  omitted: (sentence) => Boolean(sentence.omitted),
  unsupported: (sentence) => Boolean(sentence.unsupported),
  repetition: (sentence) => Boolean(sentence.repeated),
  reliability: (sentence) => sentence.reliability !== undefined && sentence.reliability < corpus.minReliability,
  faithfulness: (sentence) => sentence.faithfulness !== null && sentence.faithfulness < corpus.minFaithfulness,
  aer: (sentence) => sentence.aer > 0,
  chrf: (sentence) => (sentence.scores?.chrf ?? 100) < 100,
};

const state = { ranking: null, column: "line", isUp: true, search: "", first: 0, open: null };

// --- which sentences, in which order -------------------------------------------------------------------------------

function shownSentences() {
  const { value } = COLUMNS[state.column], direction = state.isUp ? 1 : -1;
  const order = (a, b) => {
    const [first, second] = [value(a), value(b)];
    if (first === null || second === null) return (first === null) - (second === null); // missing values are last in both directions
    return direction * (first - second) || a.line - b.line;
  };
  return corpus.sentences.filter((sentence) => (!state.ranking || IS_RANKED[state.ranking](sentence)) && matchesSearch(sentence)).sort(order);
}

function matchesSearch(sentence) {
  const query = state.search.trim().toLowerCase();
  if (!query || String(sentence.line) === query) return true;
  return [sentence.source, sentence.output, sentence.reference ?? []].some((words) => words.join(" ").toLowerCase().includes(query));
}

function rank(name) {
  const isSame = state.ranking === name;
  if (isSame) Object.assign(state, { ranking: null, column: "line", isUp: true });
  else Object.assign(state, { ranking: name, column: name, isUp: !COLUMNS[name].isBad });
  show({ first: 0, open: null });
}

function sortBy(name) {
  const isUp = state.column === name ? !state.isUp : !COLUMNS[name].isBad; // the worst first
  show({ column: name, isUp: name === "line" && state.column !== name ? true : isUp, first: 0, open: null });
}

// --- drawing -------------------------------------------------------------------------------------------------------

function show(changes) {
  Object.assign(state, changes);
  const sentences = shownSentences();
  showRankings();
  showHead();
  find("table").tBodies[0].replaceChildren(...sentences.slice(state.first, state.first + PAGE_SIZE).flatMap(rowsOf));
  find("count").textContent = sentences.length === 1 ? "1 sentence" : `${count(sentences.length)} sentences`;
  find("explanation").textContent = state.ranking ? `${corpus.rankings[state.ranking].title}: ${corpus.rankings[state.ranking].explained}.` : "";
  find("all").hidden = !state.ranking && !state.search && state.column === "line";
  showPager(sentences.length);
}

function showRankings() {
  for (const button of find("rankings").children) button.setAttribute("aria-pressed", String(button.dataset.name === state.ranking));
}

function makeRankings() {
  const buttons = Object.entries(corpus.rankings).map(([name, { title, explained }]) => {
    const total = corpus.summary.rankings[name];
    if (!total) return null;
    const button = make("button", { type: "button", "data-name": name, title: explained }, make("b", {}, count(total)), make("span", {}, title));
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

function rowsOf(sentence) {
  const isOpen = state.open === sentence.line;
  const numbers = shownColumns.map((name) => numberCell(name, sentence));
  const row = make("tr", { "data-line": sentence.line }, numbers[0], make("td", { class: "text" }, openButton(sentence, isOpen)), ...numbers.slice(1));
  return isOpen ? [row, detailRow(sentence)] : [row];
}

function numberCell(name, sentence) {
  const { title, value, show: format, isBad } = COLUMNS[name], number = value(sentence);
  const isEmpty = number === null || (isBad && number === 0);
  return make("td", { class: isEmpty ? "number zero" : "number", "data-title": title }, isEmpty ? "–" : format(number));
}

function openButton(sentence, isOpen) {
  const source = make("span", { class: "source", dir: "auto" }, ...marked(sentence.source, { uncovered: sentence.uncovered, omitted: sentence.omitted }));
  const output = make("span", { class: "output-in-row", dir: "auto" }, ...marked(sentence.output, { unsupported: sentence.unsupported, repeated: sentence.repeated, different: sentence.different }));
  const button = make("button", { type: "button", class: "open-sentence", "aria-expanded": String(isOpen) }, source, output);
  button.addEventListener("click", () => toggle(sentence.line));
  return button;
}

/* Words with the names of the index lists that contain them as classes. */
function marked(words, lists) {
  return words.flatMap((text, index) => {
    const names = Object.keys(lists).filter((name) => lists[name]?.includes(index));
    return [...(index ? [" "] : []), names.length ? make("span", { class: names.join(" "), title: names.join(", ") }, text) : text];
  });
}

function toggle(line) {
  show({ open: state.open === line ? null : line });
  document.querySelector(`tr[data-line="${line}"] .open-sentence`).focus();
}

// --- one sentence --------------------------------------------------------------------------------------------------

function detailRow(sentence) {
  const stage = make("div", { class: "stage" }), heat = make("div", { class: "heat", role: "img", tabindex: 0, "aria-label": "Heat map: source on top, output at the left" });
  const maps = make("div", { id: "maps" }, stage, heat);
  const row = make("tr", {}, make("td", { class: "detail", colspan: shownColumns.length + 1 }, factsOf(sentence), maps));
  requestAnimationFrame(() => draw(mapOfSentence(sentence), stage, heat)); // once it has a width
  return row;
}

/* Both drawings highlight the same word. */
function draw(map, stage, container) {
  const drawings = [];
  let pinned = null;
  const onEvent = (name, side, number) => {
    if (name === "press") pinned = pinned?.side === side && pinned.number === number ? null : { side, number, isPinned: true };
    const active = pinned ?? (name === "leave" || name === "blur" ? null : { side, number });
    for (const drawing of drawings) drawing.highlight(active);
  };
  drawings.push(new Ribbons(stage, onEvent), new Heatmap(container, onEvent));
  drawings[0].show(map, null, { column: "source", row: "output" });
  drawings[1].show(map, null);
}

/* The map as in maps.js; the last column is the attention on BOS and EOS. */
function mapOfSentence(sentence) {
  const label = (text, word) => ({ text, word });
  const values = Float64Array.from(new Uint8Array(decodeBytes(sentence.weights)), (level) => level / BYTE_LEVELS);
  return {
    height: sentence.output.length, width: sentence.source.length + 1, values,
    rows: sentence.output.map(label), columns: [...sentence.source.map(label), label(EOS_MARK, null)],
  };
}

function factsOf(sentence) {
  const named = (words, indices) => [...new Set(indices.map((index) => words[index]))].join(" · ");
  const facts = [
    ["Uncovered", sentence.uncovered && named(sentence.source, sentence.uncovered)],
    ["Omitted", sentence.omitted && `${named(sentence.source, sentence.omitted)} (the translation is up to ${sentence.misfit.toFixed(1)} nats more likely without)`],
    ["Unsupported", sentence.unsupported && named(sentence.output, sentence.unsupported)],
    ["Repeated", sentence.repeated && named(sentence.output, sentence.repeated)],
    ["Reference", sentence.reference && sentence.reference.join(" ")],
    ["Scores", sentence.scores?.chrf !== undefined && `chrF ${sentence.scores.chrf.toFixed(1)}, BLEU ${sentence.scores.bleu.toFixed(1)}`],
    ["Sink", `${percent(sentence.sink)} of the attention is on BOS and EOS`],
  ];
  return make("dl", {}, ...facts.filter(([, text]) => text).flatMap(([name, text]) => [make("dt", {}, name), make("dd", { dir: "auto" }, text)]));
}

// --- distributions, pages, the head --------------------------------------------------------------------------------

const HISTOGRAM_TITLES = { coverage: "Coverage: share of source words with attention", faithfulness: "Faithfulness", length: "Source words" };

function histogram(name, { edges, counts }) {
  const most = Math.max(1, ...counts), barWidth = 300 / counts.length;
  const bars = counts.map((total, i) => {
    const height = (80 * total) / most;
    const bar = makeSvg("rect", { x: i * barWidth + 1, y: 92 - height, width: barWidth - 2, height: Math.max(height, total ? 1 : 0) });
    bar.append(makeSvg("title", {}, `${edges[i]} to ${edges[i + 1]}: ${count(total)}`));
    return bar;
  });
  const texts = edges.map((edge, i) => makeSvg("text", { x: Math.min(Math.max(i * barWidth, 8), 292), y: 104 }, String(edge)));
  const label = counts.map((total, i) => `${edges[i]} to ${edges[i + 1]}: ${total}`).join("; ");
  return make("figure", {}, makeSvg("svg", { viewBox: "0 0 300 108", role: "img", "aria-label": label }, ...bars, ...texts), make("figcaption", {}, HISTOGRAM_TITLES[name]));
}

function showPager(total) {
  const page = (text, first) => {
    const button = make("button", { type: "button", disabled: first < 0 || first >= total }, text);
    button.addEventListener("click", () => { show({ first, open: null }); find("table").scrollIntoView(); });
    return button;
  };
  const last = Math.min(state.first + PAGE_SIZE, total);
  const where = make("span", { class: "faint" }, total ? `${count(state.first + 1)}–${count(last)} of ${count(total)}` : "no sentences found");
  find("pager").replaceChildren(...(total > PAGE_SIZE ? [page("Previous", state.first - PAGE_SIZE), where, page("Next", state.first + PAGE_SIZE)] : total ? [] : [where]));
}

function showHeadline() {
  const { summary, facts, sentences, isComplete } = corpus, { words } = summary;
  const parts = [`${facts.corpus}, translated by ${facts.model} with beam size ${facts.beam_size}: ${count(summary.sentences)} sentences, ${count(words.all)} source words (${count(words.uncovered)} uncovered, ${count(words.omitted)} omitted); output words: ${count(words.unsupported)} unsupported, ${count(words.repeated)} repeated.`];
  if (summary.aer !== null) parts.push(`The alignment error rate on the reference is ${(100 * summary.aer).toFixed(1)} %.`);
  if (summary.empty) parts.push(`${count(summary.empty)} empty lines were skipped.`);
  if (!isComplete) parts.push(`This page lists the worst ${count(sentences.length)}; the counts include all.`);
  find("headline").textContent = parts.join(" ");
  find("description").textContent = `Maps: ${facts.shows}.`;
}

function start() {
  showHeadline();
  makeRankings();
  find("histograms").replaceChildren(...Object.entries(corpus.summary.histograms).map(([name, bins]) => histogram(name, bins)));
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
