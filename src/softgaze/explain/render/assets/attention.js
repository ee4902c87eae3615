/* The page of one sentence: its state, the highlighted word, and the parts of the page. */

const UNUSED = 0.1; // a source word with less coverage was not used, as in terminal.py
const REPLAY_MS = 900; // for each word

const find = (id) => document.getElementById(id);
const record = JSON.parse(find("softgaze-attention").textContent);
const data = JSON.parse(find("softgaze-page").textContent);
const recording = readRecording(record.recording, data.cores);
const occlusion = data.occlusion && { ...data.occlusion, values: new Float32Array(decodeBytes(data.occlusion.values)) };

const state = { view: record.view, showsOcclusion: Boolean(occlusion && data.opensWith === "occlusion"), map: null, showsGold: Boolean(data.gold), hovered: null, focused: null, pinned: null, isReplay: false, timer: null };

// --- highlight -----------------------------------------------------------------------------------------------------

function activeWord() {
  const active = state.pinned ?? state.hovered ?? state.focused;
  return active && { ...active, isPinned: active === state.pinned, isReplay: state.isReplay && active === state.focused };
}

const isSameWord = (a, b) => a?.side === b?.side && a?.number === b?.number;

const reactions = {
  point: (target) => { state.hovered = target; },
  leave: () => { state.hovered = null; },
  focus: (target, event) => { if (event.target.matches(":focus-visible")) state.focused = target; },
  blur: () => { if (!state.timer) Object.assign(state, { focused: null, isReplay: false }); },
  press: (target) => { stopReplay(); state.pinned = isSameWord(state.pinned, target) ? null : target; },
};

function onWordEvent(name, side, number, event, column = null) {
  const target = { side, number, column };
  if (name === "point" && isSameWord(state.hovered, target) && state.hovered.column === column) return;
  reactions[name](target, event);
  showActive();
}

function clearActive() {
  stopReplay();
  Object.assign(state, { pinned: null, hovered: null, focused: null, isReplay: false });
  showActive();
}

function showActive() {
  const active = activeWord();
  ribbons.highlight(active);
  heatmap.highlight(active);
  find("sentence").replaceChildren(...describeActive(state.map, active));
  showNumbers(active);
}

// --- the map in one sentence: lists of text and word elements, so that right-to-left words keep their direction ------

function describeActive(map, active) {
  if (!map.rows.some(isWord)) return [t("output-empty")];
  if (!active) return [...describeStrongest(map.coreMap), "; ", ...describeUnused(map)];
  if (active.side === "column") return describeColumn(map, active.number);
  if (active.column !== null && !active.isPinned) return describeCell(map, active.number, active.column);
  return [...describeRow(map, active.number), "; ", ...describeUnused(map)];
}

/* The output words with the largest weights, in the order of the output, as summarize in terminal.py. */
function describeStrongest(map) {
  const links = indicesWhere(map.rows, isWord).map((row) => ({ row, column: argmax(rowOf(map, row)) }))
    .filter(({ column }) => column >= 0).map((link) => ({ ...link, weight: at(map, link.row, link.column) }));
  const strongest = links.sort((a, b) => b.weight - a.weight).slice(0, MAX_LISTED).sort((a, b) => a.row - b.row);
  if (!strongest.length) return [t("no-attention")];
  return joinGroups(strongest.map(({ row, column, weight }) =>
    [word(map.rows[row].text), " ← ", word(map.columns[column].text), ` ${twoDecimals(weight)}`]));
}

function describeRow(map, row) {
  const top = topOf(Array.from(rowOf(map, row))).map(([column, weight]) => [word(map.columns[column].text), ` ${twoDecimals(weight)}`]);
  return [word(map.rows[row].text), " ← ", ...(top.length ? joinGroups(top) : [t("nothing")])];
}

function describeCell(map, row, column) {
  const top = argmax(rowOf(map, row)), cell = [word(map.rows[row].text), " ← ", word(map.columns[column].text), ` ${twoDecimals(at(map, row, column))}`];
  return top < 0 || top === column ? cell : [...cell, t("largest"), word(map.columns[top].text), ` ${twoDecimals(at(map, row, top))}`];
}

function describeColumn(map, column) {
  const top = topOf(map.rows.map((_, row) => at(map, row, column))).map(([row, weight]) => [word(map.rows[row].text), ` ${twoDecimals(weight)}`]);
  return [word(map.columns[column].text), " → ", ...(top.length ? joinGroups(top) : [t("nothing")]), t("coverage-of", { value: twoDecimals(coverages(map)[column]) })];
}

function describeUnused(map) {
  const noun = `noun-${map.view.kind === "decoder" ? "" : "source-"}${map.view.unit === "words" ? "word" : "subword"}`;
  const names = unusedLabels(map).map((label) => [word(label.text)]);
  if (!names.length) return [t("all-used", { noun: t(noun) })];
  const more = names.length > 2 * MAX_LISTED ? [[t("more", { count: names.length - 2 * MAX_LISTED })]] : [];
  return [t("unused", { count: names.length, noun: t(names.length > 1 ? `${noun}s` : noun) }), ...joinGroups([...names.slice(0, 2 * MAX_LISTED), ...more], " · ")]; // words may end in a comma
}

function unusedLabels(map) {
  const coverage = coverages(map.coreMap);
  return map.columns.filter((label, column) => isWord(label) && coverage[column] < UNUSED);
}

// --- numbers -------------------------------------------------------------------------------------------------------

function computeNumbers() {
  const { map, view } = state, entropy = entropies(map), coverage = coverages(map), words = indicesWhere(map.columns, isWord);
  const numbers = {
    entropy: { value: mean(entropy), rows: entropy, unit: t("nats"),
      meaning: t("entropy-meaning", { most: twoDecimals(Math.log(Math.max(map.width, 1))), count: map.width }) },
    coverage: { value: words.length - unusedLabels(map).length, columns: coverage, unit: t("of-used", { count: words.length }),
      meaning: t("coverage-meaning", { limit: UNUSED }) },
    sink: { value: sinkOf(map), unit: "", meaning: t("sink-meaning") },
  };
  if (data.reliability && isShownSelected()) {
    const { value, links } = data.reliability;
    numbers.reliability = { value, rows: map.rows.map((label) => links[label.word] ?? null), unit: t("links-right"),
      meaning: t("reliability-meaning") };
  }
  if (data.sourceShare?.length && view.kind === "cross") {
    numbers.source = { value: mean(data.sourceShare), rows: map.rows.map((label) => data.sourceShare[label.word] ?? null), title: t("share-title"), unit: t("share-unit"), meaning: t("share-meaning") };
  }
  if (occlusion && view.kind === "cross" && !state.showsOcclusion) {
    numbers.faithfulness = { value: faithfulnessOf(wordWeights(recording, view), occlusion), unit: "",
      meaning: t("faithfulness-meaning") };
  }
  return numbers;
}

function showNumbers(active) {
  const cards = Object.entries(state.numbers).map(([name, { value, rows, columns, unit, meaning, title = t(name) }]) => {
    const single = active && (active.side === "row" ? rows : columns)?.[active.number];
    const label = active && state.map[active.side === "row" ? "rows" : "columns"][active.number];
    const shown = name === "coverage" ? String(value) : Number.isNaN(value) ? t("unknown") : twoDecimals(value);
    const values = single === undefined || single === null ? [make("b", {}, shown), ` ${unit}`] : [make("b", {}, twoDecimals(single)), " ", word(label.text)];
    return make("div", { "data-name": name }, make("dt", {}, title), make("dd", {}, ...values), make("dd", { class: "faint" }, meaning));
  });
  find("numbers").replaceChildren(...cards);
}

const isShownSelected = () => !state.showsOcclusion && isSelectedView(state.view, data.selected);

const shownWarning = () => state.showsOcclusion ? warningOf({}, data.selected) : warningOf(state.view, data.selected);

function shownDetails() {
  if (!state.showsOcclusion) return detailsOf(recording, state.view, data.names, data.selected);
  return [OCCLUSION_DESCRIPTION, data.selected && !shownWarning() ? data.selected.reliability.other : ""].filter(Boolean).join("; ");
}

/* How far the shown map can be relied on; a low value is a warning. */
function showReliability() {
  const { reliability } = data, element = find("reliability"), which = isShownSelected() ? "here" : "selected";
  element.hidden = !reliability && !occlusion; // the map of no model
  element.classList.toggle("warning", Boolean(reliability?.is_low));
  const share = reliability && t(`right-${which}`, { share: percentOf(reliability.value) });
  element.textContent = !reliability ? t("not-measured") : reliability.is_low ? `${t(`wrong-${which}`)} ${share}` : share;
}

const FLAGS = { row: "unsupported", column: "omitted" };

const percentOf = (share) => t("percent", { value: Math.round(100 * share) });
const shareOf = (number) => t("source-share", { share: percentOf(data.sourceShare[number]) });

/* Mark output words without support and source words without a translation; a tooltip has the share of the source. */
function showFlags() {
  if (state.map.view.kind !== "cross") return;
  if (data.sourceShare) {
    state.map.rows.forEach((label, number) => {
      if (label.word in data.sourceShare) ribbons.words.row[number].title = shareOf(label.word);
    });
  }
  for (const [side, name] of Object.entries(FLAGS)) {
    state.map[`${side}s`].forEach((label, number) => {
      if (label.word === null || !data.flags[side].includes(label.word)) return;
      ribbons.words[side][number].classList.add(name);
      ribbons.words[side][number].title = [t(name), ribbons.words[side][number].title].filter(Boolean).join(". ");
    });
  }
}

/* The marked words as text. */
function describeFlags() {
  const words = { row: recording.target.words, column: recording.source.words };
  const lines = Object.entries(FLAGS).filter(([side]) => data.flags[side].length)
    .map(([side, name]) => make("span", {}, `${t(name)}: `, ...joinGroups(data.flags[side].map((number) => [word(words[side][number])]), " · ")));
  find("flags").hidden = !lines.length;
  find("flags").replaceChildren(...joinGroups(lines.map((line) => [line]), make("br")));
}

/* The map as a table for screen readers. */
function showAsText() {
  if (!find("as-text").open) return;
  const { map } = state, headings = ["word", "largest-weight", "second", "third", "entropy"];
  const entropy = entropies(map);
  const rows = map.rows.map((label, row) => {
    const top = topOf(Array.from(rowOf(map, row)));
    const cells = [0, 1, 2].map((rank) => make("td", {}, ...(top[rank] ? [word(map.columns[top[rank][0]].text), ` ${twoDecimals(top[rank][1])}`] : ["–"])));
    return make("tr", {}, make("th", { scope: "row" }, word(label.text)), ...cells, make("td", {}, twoDecimals(entropy[row])));
  });
  const head = make("thead", {}, make("tr", {}, ...headings.map((text) => make("th", { scope: "col" }, t(text)))));
  find("as-text").querySelector("div").replaceChildren(make("table", {}, head, make("tbody", {}, ...rows)));
}

// --- the shown map -------------------------------------------------------------------------------------------------

/* As the methods of Attention: each kind has its own layers, and a rollout has no single layer. */
function setView(changes) {
  const view = { ...state.view, ...changes };
  if (view.kind !== state.view.kind && !("layer" in changes)) Object.assign(view, { layer: null, head: null });
  if (changes.measure === "rollout") Object.assign(view, { layer: null, head: null });
  if (view.measure === "rollout" && (view.layer !== null || view.head !== null)) view.measure = "weights";
  state.view = view;
  state.showsOcclusion = false;
  Object.assign(state, { hovered: null, focused: null, pinned: null, isReplay: false });
  showView();
}

/* [row, column, is sure] of the gold links in the unit of the map; null if they are not shown. */
function goldCells(map) {
  if (!data.gold || !state.showsGold || map.view.kind !== "cross") return null;
  return [...data.gold.links.map((link) => [...link, true]), ...data.gold.possible.map((link) => [...link, false])]
    .flatMap(([source, target, isSure]) => indicesWhere(map.rows, (label) => label.word === target)
      .flatMap((row) => indicesWhere(map.columns, (label) => label.word === source).map((column) => [row, column, isSure])));
}

const sideNames = (kind) => (kind === "cross" ? { column: t("source"), row: t("output") } : { column: t("keys"), row: t("queries") });

function showView() {
  state.map = state.showsOcclusion ? occlusionMap(recording, occlusion) : mapOf(recording, state.view);
  state.numbers = computeNumbers();
  const gold = goldCells(state.map);
  const description = [shownWarning(), shownDetails()].filter(Boolean).join("; ");
  ribbons.show(state.map, gold, sideNames(state.map.view.kind));
  showFlags();
  heatmap.show(state.map, gold);
  find("heat").setAttribute("aria-label", t("heat-label", { description }));
  find("description").textContent = description;
  showReliability();
  showControls();
  showTiles();
  showAsText();
  showActive();
}

// --- controls ------------------------------------------------------------------------------------------------------

const OCCLUSION_DESCRIPTION = "occlusion: each row is how much less likely the output word becomes without each source word, as shares";

/* The two questions a map answers; the second needs occlusion. */
function mapSwitch() {
  if (!occlusion) return null;
  const buttons = ["attention", "occlusion"].map((name) => {
    const element = make("button", { type: "button", "data-option": name }, t(`map-${name}`));
    element.addEventListener("click", () => { clearActive(); state.showsOcclusion = name === "occlusion"; showView(); });
    return element;
  });
  return make("div", { class: "options", role: "group", "aria-label": t("map"), "data-field": "map" }, ...buttons);
}

function makeControls() {
  const groups = [mapSwitch(), optionGroup("kind", kindsOf(recording)), viewSelect("layer"), viewSelect("head"),
    ...["measure", "rows", "unit"].map((field) => optionGroup(field, Object.keys(data.names[field])))];
  if (data.gold) groups.push(button("gold", t("gold"), () => { state.showsGold = !state.showsGold; showView(); }));
  if (data.selected) groups.push(button("selected", t("selected"), () => setView({ ...data.selected.view, unit: state.view.unit })));
  find("controls").replaceChildren(...groups.filter(Boolean));
}

const button = (id, text, onClick) => {
  const element = make("button", { type: "button", id }, text);
  element.addEventListener("click", onClick);
  return element;
};

function optionGroup(field, options) {
  if (options.length < 2) return null;
  const buttons = options.map((option) => {
    const element = make("button", { type: "button", "data-option": option, title: data.names[field][option] }, t(`${field}-${option}`));
    element.addEventListener("click", () => setView({ [field]: option }));
    return element;
  });
  return make("div", { class: "options", role: "group", "aria-label": t(field), "data-field": field }, make("span", { class: "faint" }, t(field)), ...buttons);
}

const viewSelect = (field) => indexSelect(field, t(field), 1, null, (index) => setView({ [field]: index }));

function showControls() {
  const { view } = state, map = state.showsOcclusion ? "occlusion" : "attention";
  const shown = { ...view, map, rows: view.kind === "encoder" ? "reading" : view.rows };
  for (const group of document.querySelectorAll("#controls [role=group]")) {
    for (const element of group.querySelectorAll("button")) element.setAttribute("aria-pressed", String(shown[group.dataset.field] === element.dataset.option));
  }
  for (const box of document.querySelectorAll("#controls select")) {
    const count = recording.parts[0][view.kind][`${box.dataset.field}s`];
    box.replaceChildren(...indexOptions(count));
    box.value = view[box.dataset.field] ?? "";
    if (box.selectedIndex < 0) box.selectedIndex = 0; // layer 0 of one layer is the only one
    box.disabled = count < 2;
  }
  const rows = document.querySelector("#controls [data-field=rows]");
  for (const element of rows.querySelectorAll("button")) element.disabled = view.kind === "encoder" || (element.dataset.option === "reading" && !hasReadingRows(recording));
  if (data.gold) find("gold").disabled = view.kind !== "cross"; // gold links are between source and output
  find("save-pharaoh").disabled = view.kind !== "cross" || state.showsOcclusion; // as are all links
  find("save-json").disabled = state.showsOcclusion; // the file has attention
  find("gold")?.setAttribute("aria-pressed", String(state.showsGold));
  find("selected")?.setAttribute("aria-pressed", String(isShownSelected()));
}

// --- all layers and heads ------------------------------------------------------------------------------------------

/* All heads, the mean of each layer and the mean of all, sorted by agreement with occlusion, else by sharpness. */
function tilesOf(view) {
  const { layers, heads } = recording.parts[0][view.kind];
  const indices = selectIndices(null, layers).flatMap((layer) => [...(heads > 1 ? [null] : []), ...selectIndices(null, heads)].map((head) => ({ layer, head })));
  if (layers > 1) indices.push({ layer: null, head: null });
  const measure = view.measure === "rollout" ? "weights" : view.measure;
  const tiles = indices.map(({ layer, head }) => {
    const tileView = { ...view, layer, head, measure }, tokenWeights = tokenMap(recording, tileView);
    const map = mapOf(recording, tileView, tokenWeights), weights = wordWeights(recording, tileView, tokenWeights);
    const isSelected = Boolean(data.selected && isSameView(data.selected.view, tileView, ["kind", "layer", "head"]));
    return { layer, head, isSelected, map, score: occlusion && view.kind === "cross" ? occlusionAgreement(weights, occlusion) : sharpness(weights) };
  });
  return tiles.sort((a, b) => b.score - a.score || b.isSelected - a.isSelected);
}

function tileName({ layer, head }) {
  if (layer === null) return t("all-layers");
  return head === null ? t("layer-mean", { layer }) : t("layer-head", { layer, head });
}

let shownTiles = ""; // tiles depend on only a part of the view

function showTiles() {
  const { view } = state, key = JSON.stringify([view.kind, view.rows, view.measure === "norms", view.unit]);
  if (key !== shownTiles) {
    shownTiles = key;
    find("tiles").replaceChildren(...tilesOf(view).map(tileButton));
    find("order").textContent = t(occlusion && view.kind === "cross" ? "by-agreement" : "by-sharpness");
  }
  const tiles = [...find("tiles").children];
  const isOneHead = recording.parts[0][view.kind].heads === 1; // then the head and the mean are the same
  for (const tile of tiles) {
    const isShown = view.measure !== "rollout" && tile.dataset.layer === String(view.layer) && (isOneHead || tile.dataset.head === String(view.head));
    tile.setAttribute("aria-pressed", String(isShown));
  }
  setRoving(tiles, Math.max(tiles.findIndex((tile) => tile.ariaPressed === "true"), 0));
}

function tileButton(tile) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  paint(canvas, tile.map, currentHue());
  const badge = tile.isSelected ? [make("span", { class: "badge", title: data.selected.text }, t("is-selected"))] : [];
  const element = make("button", { type: "button", class: "tile", "data-layer": String(tile.layer), "data-head": String(tile.head) },
    make("span", { class: "frame" }, canvas), tileName(tile), make("span", { class: "score faint" }, twoDecimals(tile.score), ...badge));
  element.addEventListener("click", () => setView({ layer: tile.layer, head: tile.head }));
  return element;
}

// --- replay and keyboard -------------------------------------------------------------------------------------------

function replayWord(number) {
  const words = ribbons.words.row;
  if (!words.length) return;
  const index = Math.min(Math.max(number, 0), words.length - 1);
  Object.assign(state, { pinned: null, hovered: null, focused: { side: "row", number: index, column: null }, isReplay: true });
  setRoving(words, index);
  words[index].scrollIntoView({ block: "nearest", inline: "nearest" });
  showActive();
}

const stepReplay = (count) => { stopReplay(); replayWord(state.focused?.side === "row" ? state.focused.number + count : 0); };

function toggleReplay() {
  if (state.timer) return stopReplay();
  replayWord(0);
  state.timer = setInterval(() => (state.focused.number + 1 < state.map.height ? replayWord(state.focused.number + 1) : stopReplay()), REPLAY_MS);
  find("play").setAttribute("aria-pressed", "true");
}

function stopReplay() {
  clearInterval(state.timer);
  state.timer = null;
  find("play").setAttribute("aria-pressed", "false");
}

/* Arrow keys move along the words of a sentence, the heads or the tabs; elsewhere they replay the output. */
function onKey(event) {
  if (event.key === "Escape") return clearActive();
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select, #heat, .scroll, #what-if")) return;
  const group = event.target.closest(".line, #tiles, #tabs");
  if (group) return moveWithin(group, event);
  if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
  event.preventDefault();
  focusWord(state.focused?.side === "row" ? state.focused.number + (event.key === "ArrowRight" ? 1 : -1) : 0);
}

function moveWithin(group, event) {
  const buttons = [...group.querySelectorAll("button")], current = buttons.indexOf(document.activeElement);
  const index = arrowTarget(event.key, current, buttons.length, group.dir === "rtl" && !ribbons.isVertical);
  if (index === null) return;
  event.preventDefault();
  if (group === ribbons.lines.row) return focusWord(index);
  setRoving(buttons, index);
  buttons[index].focus();
  if (group.id === "tabs") buttons[index].click();
}

function focusWord(number) {
  stopReplay();
  const index = Math.min(Math.max(number, 0), ribbons.words.row.length - 1);
  ribbons.words.row[index]?.focus({ preventScroll: true });
  replayWord(index);
}

// --- what if -------------------------------------------------------------------------------------------------------

function makeWhatIf() {
  if (!data.counterfactuals.length) return;
  find("tabs").hidden = false;
  find("explore").setAttribute("role", "tabpanel");
  find("explore").setAttribute("aria-labelledby", "tab-explore");
  for (const tab of find("tabs").children) tab.addEventListener("click", () => showTab(tab));
  setRoving([...find("tabs").children], 0);
}

function showQuestions() {
  const kinds = [...new Set(data.counterfactuals.map((answer) => answer.kind))];
  find("questions").replaceChildren(...kinds.map(questionGroup));
  if (shownAnswer) showAnswer(shownAnswer);
}

const phraseOf = ({ kind, values }) => t(values.factor < 1 ? "flatten" : kind, values);

function showTab(shownTab) {
  for (const tab of find("tabs").children) {
    tab.setAttribute("aria-selected", String(tab === shownTab));
    find(tab.getAttribute("aria-controls")).hidden = tab !== shownTab;
  }
  setRoving([...find("tabs").children], [...find("tabs").children].indexOf(shownTab));
  const isWhatIf = shownTab.id === "tab-what-if";
  find("description").hidden = isWhatIf;
  if (isWhatIf && !find("answer").hasChildNodes()) showAnswer(data.counterfactuals.find(isChanged) ?? data.counterfactuals[0]);
}

const isChanged = (answer) => answer.diff.some(([kind]) => kind !== "same");

function questionGroup(kind) {
  const answers = data.counterfactuals.filter((answer) => answer.kind === kind);
  const buttons = kind === "mask" ? recording.source.words.map((text, index) => questionButton(answers.find((answer) => answer.source_word === index), text))
    : answers.map((answer) => questionButton(answer, phraseOf(answer)));
  return make("div", { class: "question", role: "group", "aria-label": t(`ask-${kind}`) }, make("h2", {}, t(`ask-${kind}`)), make("div", { class: "line" }, ...buttons));
}

function questionButton(answer, text) {
  const element = make("button", { type: "button", class: "word", disabled: !answer, "data-answer": answer ? data.counterfactuals.indexOf(answer) : null }, word(text));
  if (answer) {
    element.classList.toggle("changes", isChanged(answer));
    element.title = t(isChanged(answer) ? "changes" : "unchanged");
    element.addEventListener("click", () => showAnswer(answer));
  }
  return element;
}

let shownAnswer = null;

function showAnswer(answer) {
  shownAnswer = answer;
  const number = String(data.counterfactuals.indexOf(answer)), { attention } = answer;
  for (const element of document.querySelectorAll("#questions button")) element.setAttribute("aria-pressed", String(element.dataset.answer === number));
  const heading = t(isChanged(answer) ? "now-changes" : "now-same", { question: phraseOf(answer) });
  find("answer").replaceChildren(make("h2", {}, heading),
    textLine(t("before"), answer.diff, "removed", "del"), textLine(t("after"), answer.diff, "added", "ins"), ...scoreLine(answer));
  for (const id of ["answer-stage", "no-attention"]) find(id).hidden = true;
  find("answer-description").textContent = attention ? attention.shows : "";
  if (attention) showAnswerMap(attention);
}

function scoreLine({ before, score }) {
  if (score === null) return [];
  const scores = [before, score].filter((value) => value !== null).map((value) => twoDecimals(value).replace("-", "−"));
  return [make("p", { class: "faint" }, t("score", { scores: scores.join(" → ") }))];
}

const PLAIN_VIEW = { kind: "cross", layer: null, head: null, rows: "predicting", measure: "weights", unit: "words" };
let answerRibbons = null;

function showAnswerMap(attention) {
  answerRibbons ??= new Ribbons(find("answer-stage"), (name, side, number) =>
    answerRibbons.highlight(name === "leave" || name === "blur" ? null : { side, number }));
  answerRibbons.active = null;
  const map = mapOf(readRecording(attention), PLAIN_VIEW), isEmpty = !map.values.some((weight) => weight > 0);
  find("answer-stage").hidden = isEmpty;
  find("no-attention").hidden = !isEmpty; // the shown head is ablated
  answerRibbons.show(map, null, sideNames("cross"));
}

// --- files ---------------------------------------------------------------------------------------------------------

function makeDownloads() {
  const json = () => JSON.stringify(toRecord(record, state.map, find("description").textContent));
  const notes = () => [{ text: shownWarning(), isWarning: true }, { text: shownDetails() }];
  const svg = () => drawSvg(ribbons, state.map, goldCells(state.map), notes(), state.showsOcclusion ? "" : json()); // a file of attention is read again as attention
  const files = {
    SVG: () => save("attention.svg", svg(), "image/svg+xml"),
    PNG: async () => save("attention.png", await rasterize(svg())),
    Pharaoh: () => save("attention.pharaoh", `${alignmentLinks(recording, state.view).map((link) => link.join("-")).join(" ")}\n`, "text/plain"),
    JSON: () => save("attention.json", `${json()}\n`, "application/json"),
  };
  find("downloads").append(...Object.entries(files).map(([name, onClick]) => button(`save-${name.toLowerCase()}`, name, onClick)));
}

// --- start ---------------------------------------------------------------------------------------------------------

const ribbons = new Ribbons(find("stage"), onWordEvent);
const heatmap = new Heatmap(find("heat"), onWordEvent);

function start() {
  makeWhatIf();
  makeDownloads();
  initLanguage(find("page-language"));
  onLanguageChange(() => {
    shownTiles = "";
    makeControls();
    showQuestions();
    describeFlags();
    showView();
  });
  document.addEventListener("keydown", onKey);
  find("previous").addEventListener("click", () => stepReplay(-1));
  find("next").addEventListener("click", () => stepReplay(1));
  find("play").addEventListener("click", toggleReplay);
  find("as-text").addEventListener("toggle", showAsText);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { shownTiles = ""; showView(); });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; heatmap.show(state.map, goldCells(state.map)); } });
}

start();
