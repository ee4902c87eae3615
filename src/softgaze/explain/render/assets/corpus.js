/* A table of sentences that can be ranked, sorted, searched and paged; an open sentence shows its map. */

const PAGE_SIZE = 50; // rows at once; a thousand would slow down typing
const BYTE_LEVELS = 255; // of a packed weight

const find = (id) => document.getElementById(id);
const corpus = JSON.parse(find("softgaze-page").textContent);
const count = (value) => formatNumber(value);
const percent = (value) => t("percent", { value: Math.round(100 * value) });

/* Columns to sort by: the value (null if missing), whether large is bad, and the format. */
const COLUMNS = {
  line: { value: (sentence) => sentence.line, isBad: false, show: count },
  uncovered: { value: (sentence) => (sentence.uncovered?.length ?? 0) + (sentence.shortfall ?? 0) / 1000, isBad: true, show: (value) => String(Math.floor(value)) },
  omitted: { value: (sentence) => (sentence.omitted ? sentence.misfit : 0), isBad: true, show: (value) => t("in-nats", { value: value.toFixed(1) }) },
  unsupported: { value: (sentence) => sentence.unsupported?.length ?? 0, isBad: true, show: String },
  repetition: { value: (sentence) => (sentence.repeated?.length ?? 0) / Math.max(sentence.output.length, 1), isBad: true, show: percent },
  coverage: { value: (sentence) => sentence.coverage, isBad: false, show: percent },
  reliability: { value: (sentence) => sentence.reliability ?? null, isBad: false, show: percent },
  faithfulness: { value: (sentence) => sentence.faithfulness, isBad: false, show: (value) => value.toFixed(2) },
  aer: { value: (sentence) => sentence.aer ?? null, isBad: true, show: percent },
  chrf: { value: (sentence) => sentence.scores?.chrf ?? null, isBad: false, show: (value) => value.toFixed(0) },
  length: { value: (sentence) => sentence.source.length, isBad: true, show: String },
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
  find("count").textContent = sentences.length === 1 ? t("one-sentence") : t("sentences", { count: count(sentences.length) });
  find("explanation").textContent = state.ranking ? `${t(`title-${state.ranking}`)}: ${t(`explained-${state.ranking}`)}` : "";
  find("all").hidden = !state.ranking && !state.search && state.column === "line";
  showPager(sentences.length);
}

function showRankings() {
  for (const button of find("rankings").children) button.setAttribute("aria-pressed", String(button.dataset.name === state.ranking));
}

function makeRankings() {
  const buttons = Object.keys(corpus.rankings).map((name) => {
    const total = corpus.summary.rankings[name];
    if (!total) return null;
    const button = make("button", { type: "button", "data-name": name, title: t(`explained-${name}`) }, make("b", {}, count(total)), make("span", {}, t(`title-${name}`)));
    button.addEventListener("click", () => rank(name));
    return button;
  });
  find("rankings").replaceChildren(...buttons.filter(Boolean));
}

function showHead() {
  const cells = shownColumns.map((name) => {
    const button = make("button", { type: "button" }, t(`column-${name}`));
    button.addEventListener("click", () => { sortBy(name); document.querySelector(`th[data-name="${name}"] button`).focus(); });
    const sorted = state.column === name && (state.isUp ? "ascending" : "descending");
    return make("th", { scope: "col", class: "number", "data-name": name, "aria-sort": sorted }, button);
  });
  const text = make("th", { scope: "col" }, make("span", { class: "faint" }, t("sentence")));
  find("table").tHead.replaceChildren(make("tr", {}, cells[0], text, ...cells.slice(1)));
}

function rowsOf(sentence) {
  const isOpen = state.open === sentence.line;
  const numbers = shownColumns.map((name) => numberCell(name, sentence));
  const row = make("tr", { "data-line": sentence.line }, numbers[0], make("td", { class: "text" }, openButton(sentence, isOpen)), ...numbers.slice(1));
  return isOpen ? [row, detailRow(sentence)] : [row];
}

function numberCell(name, sentence) {
  const { value, show: format, isBad } = COLUMNS[name], number = value(sentence);
  const isEmpty = number === null || (isBad && number === 0);
  return make("td", { class: isEmpty ? "number zero" : "number", "data-title": t(`column-${name}`) }, isEmpty ? "–" : format(number));
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
    return [...(index ? [" "] : []), names.length ? make("span", { class: names.join(" "), title: names.map((name) => t(`is-${name}`)).join(", ") }, text) : text];
  });
}

function toggle(line) {
  show({ open: state.open === line ? null : line });
  document.querySelector(`tr[data-line="${line}"] .open-sentence`).focus();
}

// --- one sentence --------------------------------------------------------------------------------------------------

function detailRow(sentence) {
  const stage = make("div", { class: "stage" }), heat = make("div", { class: "heat", role: "img", tabindex: 0, "aria-label": t("map-label") });
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
  drawings[0].show(map, null, { column: t("source"), row: t("output") });
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
    [t("column-uncovered"), sentence.uncovered && named(sentence.source, sentence.uncovered)],
    [t("column-omitted"), sentence.omitted && t("omitted-words", { words: named(sentence.source, sentence.omitted), nats: sentence.misfit.toFixed(1) })],
    [t("column-unsupported"), sentence.unsupported && named(sentence.output, sentence.unsupported)],
    [t("column-repetition"), sentence.repeated && named(sentence.output, sentence.repeated)],
    [t("reference-title"), sentence.reference && sentence.reference.join(" ")],
    [t("scores"), sentence.scores?.chrf !== undefined && `chrF ${sentence.scores.chrf.toFixed(1)}, BLEU ${sentence.scores.bleu.toFixed(1)}`],
    [t("sink"), t("sink-share", { share: percent(sentence.sink) })],
  ];
  return make("dl", {}, ...facts.filter(([, text]) => text).flatMap(([name, text]) => [make("dt", {}, name), make("dd", { dir: "auto" }, text)]));
}

// --- distributions, pages, the head --------------------------------------------------------------------------------

const binText = (edges, i, total) => t("bin", { low: edges[i], high: edges[i + 1], count: total });

function histogram(name, { edges, counts }) {
  const most = Math.max(1, ...counts), barWidth = 300 / counts.length;
  const bars = counts.map((total, i) => {
    const height = (80 * total) / most;
    const bar = makeSvg("rect", { x: i * barWidth + 1, y: 92 - height, width: barWidth - 2, height: Math.max(height, total ? 1 : 0) });
    bar.append(makeSvg("title", {}, binText(edges, i, count(total))));
    return bar;
  });
  const texts = edges.map((edge, i) => makeSvg("text", { x: Math.min(Math.max(i * barWidth, 8), 292), y: 104 }, String(edge)));
  const label = counts.map((total, i) => binText(edges, i, total)).join("; ");
  return make("figure", {}, makeSvg("svg", { viewBox: "0 0 300 108", role: "img", "aria-label": label }, ...bars, ...texts), make("figcaption", {}, t(`histogram-${name}`)));
}

function showPager(total) {
  const page = (text, first) => {
    const button = make("button", { type: "button", disabled: first < 0 || first >= total }, text);
    button.addEventListener("click", () => { show({ first, open: null }); find("table").scrollIntoView(); });
    return button;
  };
  const last = Math.min(state.first + PAGE_SIZE, total);
  const where = make("span", { class: "faint" }, total ? t("range", { first: count(state.first + 1), last: count(last), count: count(total) }) : t("none-found"));
  find("pager").replaceChildren(...(total > PAGE_SIZE ? [page(t("previous"), state.first - PAGE_SIZE), where, page(t("next"), state.first + PAGE_SIZE)] : total ? [] : [where]));
}

function showHeadline() {
  const { summary, facts, sentences, isComplete } = corpus, { words } = summary;
  const counts = { sentences: summary.sentences, words: words.all, ...words };
  const shown = Object.fromEntries(Object.entries(counts).map(([name, value]) => [name, count(value)]));
  const parts = [t("headline", { corpus: facts.corpus, model: facts.model, beam: facts.beam_size, ...shown })];
  if (summary.aer !== null) parts.push(t("headline-aer", { aer: t("percent", { value: (100 * summary.aer).toFixed(1) }) }));
  if (summary.empty) parts.push(t("headline-empty", { count: count(summary.empty) }));
  if (!isComplete) parts.push(t("headline-worst", { count: count(sentences.length) }));
  find("headline").textContent = parts.join(" ");
  find("description").textContent = t("maps", { description: facts.shows });
}

function start() {
  for (const [name, { title, explained }] of Object.entries(corpus.rankings)) Object.assign(STRINGS.en, { [`title-${name}`]: title, [`explained-${name}`]: `${explained}.` });
  initLanguage(find("page-language"));
  find("search").addEventListener("input", (event) => show({ search: event.target.value, first: 0, open: null }));
  find("controls").addEventListener("submit", (event) => event.preventDefault());
  find("all").addEventListener("click", () => {
    find("search").value = "";
    show({ ranking: null, column: "line", isUp: true, search: "", first: 0, open: null });
    find("search").focus();
  });
  const worst = Object.keys(corpus.rankings).find((name) => corpus.summary.rankings[name]);
  if (worst) rank(worst);
  onLanguageChange(() => {
    showHeadline();
    makeRankings();
    find("histograms").replaceChildren(...Object.entries(corpus.summary.histograms).map(([name, bins]) => histogram(name, bins)));
    show({});
  });
}

start();
