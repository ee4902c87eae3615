/* One sentence's attention to play with: what is shown, what a person points at, and the parts of the page. */

const UNUSED = 0.1; // a source word to which all output words together gave less was not used (as plain.py has it)
const BEAT = 900; // milliseconds a word stays lit in a replay

const find = (id) => document.getElementById(id);
const record = JSON.parse(find("softgaze-attention").textContent);
const facts = JSON.parse(find("softgaze-page").textContent);
const recording = readRecording(record.recording, facts.cores);
const influence = facts.influence && { ...facts.influence, values: new Float32Array(bytesOf(facts.influence.values)) };

const state = { view: record.view, map: null, hasGold: Boolean(facts.gold), hover: null, focus: null, pinned: null, isReplay: false, timer: null };

// --- what is lit ---------------------------------------------------------------------------------------------------

function active() {
  const found = state.pinned ?? state.hover ?? state.focus;
  return found && { ...found, isPinned: found === state.pinned, isReplay: state.isReplay && found === state.focus };
}

const isSame = (one, other) => one?.side === other?.side && one?.number === other?.number;

const reactions = {
  point: (place) => { state.hover = place; },
  leave: () => { state.hover = null; },
  focus: (place, event) => { if (event.target.matches(":focus-visible")) state.focus = place; },
  blur: () => { if (!state.timer) Object.assign(state, { focus: null, isReplay: false }); },
  press: (place) => { stop(); state.pinned = isSame(state.pinned, place) ? null : place; },
};

function listen(what, side, number, event, column = null) {
  const place = { side, number, column };
  if (what === "point" && isSame(state.hover, place) && state.hover.column === column) return;
  reactions[what](place, event);
  showActive();
}

function letGo() {
  stop();
  Object.assign(state, { pinned: null, hover: null, focus: null, isReplay: false });
  showActive();
}

function showActive() {
  const found = active();
  ribbons.light(found);
  heat.light(found);
  const words = sentence(state.map, found);
  find("sentence").replaceChildren(...words);
  showNumbers(found);
}

// --- one plain sentence --------------------------------------------------------------------------------------------

/* Text and words by turns; words are elements, so that a right-to-left one does not turn its neighbours. */
function sentence(map, found) {
  if (!map.rows.some(isWord)) return ["The output is empty: no word looked at anything."];
  if (!found) return [...clearest(map.meant), "; ", ...unused(map)];
  if (found.side === "column") return columnInWords(map, found.number);
  return found.column === null || found.isPinned ? [...rowInWords(map, found.number), "; ", ...unused(map)] : cellInWords(map, found.number, found.column);
}

/* The looks that are surest, in the order of the output. */
function clearest(map) {
  const looks = numbersOf(map.rows, isWord).map((row) => ({ row, column: largest(rowOf(map, row)) }))
    .filter((look) => look.column >= 0).map((look) => ({ ...look, weight: at(map, look.row, look.column) }));
  const surest = looks.sort((one, other) => other.weight - one.weight).slice(0, SHOWN).sort((one, other) => one.row - other.row);
  if (!surest.length) return ["no word looked at anything"];
  return joined(surest.map(({ row, column, weight }) =>
    [word(map.rows[row].text), " ← ", word(map.columns[column].text), ` ${two(weight)}`]));
}

function rowInWords(map, row) {
  const order = topOf(Array.from(rowOf(map, row)));
  const looked = order.map(([column, weight]) => [word(map.columns[column].text), ` ${two(weight)}`]);
  return [word(map.rows[row].text), " ← ", ...(looked.length ? joined(looked) : ["nothing"])];
}

function cellInWords(map, row, column) {
  const most = largest(rowOf(map, row)), own = [word(map.rows[row].text), " ← ", word(map.columns[column].text), ` ${two(at(map, row, column))}`];
  return most < 0 || most === column ? own : [...own, "; most: ", word(map.columns[most].text), ` ${two(at(map, row, most))}`];
}

function columnInWords(map, column) {
  const order = topOf(map.rows.map((_, row) => at(map, row, column)));
  const looked = order.map(([row, weight]) => [word(map.rows[row].text), ` ${two(weight)}`]);
  const total = `; looked at by all words together: ${two(coverages(map)[column])}`;
  return [word(map.columns[column].text), " → ", ...(looked.length ? joined(looked) : ["nobody"]), total];
}

function unused(map) {
  const noun = map.view.unit === "words" ? "word" : "subword";
  const owner = map.view.kind === "decoder" ? "" : "source ";
  const names = unusedLabels(map).map((label) => [word(label.text)]);
  if (!names.length) return [`every ${owner}${noun} was used`];
  const more = names.length > 2 * SHOWN ? [[`and ${names.length - 2 * SHOWN} more`]] : [];
  return [`${names.length} ${owner}${noun}${names.length > 1 ? "s" : ""} unused: `, ...joined([...names.slice(0, 2 * SHOWN), ...more], " · ")]; // words may end in a comma
}

function unusedLabels(map) {
  const given = coverages(map.meant);
  return map.columns.filter((label, column) => isWord(label) && given[column] < UNUSED);
}

// --- numbers -------------------------------------------------------------------------------------------------------

function numbersNow() {
  const { map, view } = state, spread = entropies(map), given = coverages(map), words = numbersOf(map.columns, isWord);
  const found = {
    entropy: { value: mean(spread), rows: spread, name: "Entropy", unit: "nats",
      means: `How spread the looks are, in the mean: 0 looks at one thing, ${two(Math.log(Math.max(map.width, 1)))} at all ${map.width} alike.` },
    coverage: { value: words.length - unusedLabels(map).length, columns: given, name: "Coverage", unit: `of ${words.length} used`,
      means: `What all words together looked at a word. 1 is as much as one word has to give; below ${UNUSED}, it was not used.` },
    sink: { value: sinkOf(map), name: "Sink", unit: "",
      means: "The share that goes to marks, such as the end of the sentence: looking at nothing in particular." },
  };
  if (influence && view.kind === "cross") {
    found.honesty = { value: honestyOf(wordWeights(recording, view), influence), name: "Honesty", unit: "",
      means: "Rank correlation with what really mattered when words were left out: 1 shows what mattered, 0 tells nothing." };
  }
  return found;
}

function showNumbers(lit) {
  const cards = Object.entries(state.numbers).map(([name, { value, rows, columns, unit, means, ...own }]) => {
    const single = lit && (lit.side === "row" ? rows : columns)?.[lit.number];
    const label = lit && state.map[lit.side === "row" ? "rows" : "columns"][lit.number];
    const shown = name === "coverage" ? String(value) : Number.isNaN(value) ? "unknown" : two(value);
    const values = single === undefined || single === null ? [make("b", {}, shown), ` ${unit}`] : [make("b", {}, two(single)), " ", word(label.text)];
    return make("div", { "data-name": name }, make("dt", {}, own.name), make("dd", {}, ...values), make("dd", { class: "faint" }, means));
  });
  find("numbers").replaceChildren(...cards);
}

/* A table that a screen reader can walk through. */
function showAsText() {
  if (!find("as-text").open) return;
  const { map } = state, heads = ["Word", "looked most at", "then", "then", "Entropy"];
  const spread = entropies(map);
  const rows = map.rows.map((label, row) => {
    const top = topOf(Array.from(rowOf(map, row)));
    const cells = [0, 1, 2].map((rank) => make("td", {}, ...(top[rank] ? [word(map.columns[top[rank][0]].text), ` ${two(top[rank][1])}`] : ["–"])));
    return make("tr", {}, make("th", { scope: "row" }, word(label.text)), ...cells, make("td", {}, two(spread[row])));
  });
  const head = make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text))));
  find("as-text").querySelector("div").replaceChildren(make("table", {}, head, make("tbody", {}, ...rows)));
}

// --- which map -----------------------------------------------------------------------------------------------------

/* Another view, as the methods of Attention make it: kinds have layers of their own, and a rollout knows no single one. */
function setView(changes) {
  const view = { ...state.view, ...changes };
  if (view.kind !== state.view.kind && !("layer" in changes)) Object.assign(view, { layer: null, head: null });
  if (changes.measure === "rollout") Object.assign(view, { layer: null, head: null });
  if (view.measure === "rollout" && (view.layer !== null || view.head !== null)) view.measure = "weights";
  state.view = view;
  Object.assign(state, { hover: null, focus: null, pinned: null, isReplay: false });
  showView();
}

/* [row, column, whether it is sure] of the right links, in the unit of the map; null where they say nothing. */
function goldCells(map) {
  if (!facts.gold || !state.hasGold || map.view.kind !== "cross") return null;
  return [...facts.gold.links.map((link) => [...link, true]), ...facts.gold.possible.map((link) => [...link, false])]
    .flatMap(([source, target, isSure]) => numbersOf(map.rows, (label) => label.word === target)
      .flatMap((row) => numbersOf(map.columns, (label) => label.word === source).map((column) => [row, column, isSure])));
}

const LINES = {
  cross: { column: "source", row: "output" },
  encoder: { column: "looked at", row: "looking" },
  decoder: { column: "looked at", row: "looking" },
};

function showView() {
  state.map = mapOf(recording, state.view);
  state.numbers = numbersNow();
  const gold = goldCells(state.map), shows = showsOf(recording, state.view, facts.names, facts.choice);
  ribbons.show(state.map, gold, LINES[state.view.kind]);
  heat.show(state.map, gold);
  find("heat").setAttribute("aria-label", `Heat map of the ${shows}. The same is told below, word by word.`);
  find("shows").textContent = shows;
  showControls();
  showTiles();
  showAsText();
  showActive();
}

// --- controls ------------------------------------------------------------------------------------------------------

const GROUPS = { kind: "Attention", measure: "Measure", rows: "A row is", unit: "Unit" };

function makeControls() {
  const groups = [optionGroup("kind", kindsOf(recording)), select("layer"), select("head"),
    optionGroup("measure", Object.keys(facts.names.measure)), optionGroup("rows", Object.keys(facts.names.rows)),
    optionGroup("unit", Object.keys(facts.names.unit))];
  const toggles = [];
  if (facts.gold) toggles.push(toggle("gold", "Right links", () => { state.hasGold = !state.hasGold; showView(); }));
  if (facts.choice) toggles.push(toggle("chosen", "Chosen map", () => setView({ ...facts.choice.view, unit: state.view.unit })));
  find("controls").replaceChildren(...groups.filter(Boolean), ...toggles);
}

const toggle = (id, text, act) => {
  const button = make("button", { type: "button", id }, text);
  button.addEventListener("click", act);
  return button;
};

function optionGroup(field, options) {
  if (options.length < 2) return null;
  const buttons = options.map((option) => {
    const button = make("button", { type: "button", "data-option": option, title: facts.names[field][option] }, option);
    button.addEventListener("click", () => setView({ [field]: option }));
    return button;
  });
  return make("div", { class: "options", role: "group", "aria-label": GROUPS[field], "data-field": field }, make("span", { class: "faint" }, GROUPS[field]), ...buttons);
}

function select(field) {
  const box = make("select", { "data-field": field });
  box.addEventListener("change", () => setView({ [field]: box.value === "" ? null : Number(box.value) }));
  return make("label", { class: "options" }, make("span", { class: "faint" }, field === "layer" ? "Layer" : "Head"), box);
}

function showControls() {
  const { view } = state, meant = { ...view, rows: view.kind === "encoder" ? "reading" : view.rows };
  for (const group of document.querySelectorAll("#controls [role=group]")) {
    for (const button of group.querySelectorAll("button")) button.setAttribute("aria-pressed", String(meant[group.dataset.field] === button.dataset.option));
  }
  for (const box of document.querySelectorAll("#controls select")) {
    const count = recording.parts[0][view.kind][`${box.dataset.field}s`];
    box.replaceChildren(make("option", { value: "" }, count > 1 ? `mean of ${count}` : "the only one"), ...chosen(null, count > 1 ? count : 0).map((number) => make("option", { value: number }, number)));
    box.value = view[box.dataset.field] ?? "";
    if (box.selectedIndex < 0) box.selectedIndex = 0; // layer 0 of one layer is the only one
    box.disabled = count < 2;
  }
  const rows = document.querySelector("#controls [data-field=rows]");
  for (const button of rows.querySelectorAll("button")) button.disabled = view.kind === "encoder" || (button.dataset.option === "reading" && !canRead(recording));
  if (facts.gold) find("gold").disabled = view.kind !== "cross"; // right links are between source and output
  find("save-pharaoh").disabled = view.kind !== "cross"; // as are all links
  find("gold")?.setAttribute("aria-pressed", String(state.hasGold));
  find("chosen")?.setAttribute("aria-pressed", String(isSameView(facts.choice.view, { ...view, unit: facts.choice.view.unit })));
}

// --- all layers and heads ------------------------------------------------------------------------------------------

/* Heads, the mean of each layer and the mean of all, the most useful first. */
function tilesOf(view) {
  const { layers, heads } = recording.parts[0][view.kind];
  const places = chosen(null, layers).flatMap((layer) => [...(heads > 1 ? [null] : []), ...chosen(null, heads)].map((head) => ({ layer, head })));
  if (layers > 1) places.push({ layer: null, head: null });
  const measure = view.measure === "rollout" ? "weights" : view.measure;
  const tiles = places.map((place) => {
    const own = { ...view, ...place, measure }, pieces = pieceMap(recording, own);
    const map = mapOf(recording, own, pieces), weights = wordWeights(recording, own, pieces);
    const isMeasured = influence && view.kind === "cross";
    const isChosen = facts.choice && isSameView(facts.choice.view, own, ["kind", "layer", "head"]);
    return { ...place, isChosen, map, score: isMeasured ? pointing(weights, influence) : sharpness(weights) };
  });
  return tiles.sort((one, other) => other.score - one.score || Boolean(other.isChosen) - Boolean(one.isChosen));
}

function tileName({ layer, head }) {
  if (layer === null) return "all layers · mean";
  return `layer ${layer} · ${head === null ? "mean" : `head ${head}`}`;
}

let tilesShown = "";

function showTiles() {
  const { view } = state, key = JSON.stringify([view.kind, view.rows, view.measure === "norms", view.unit]);
  if (key !== tilesShown) {
    tilesShown = key;
    find("tiles").replaceChildren(...tilesOf(view).map(tileButton));
    find("order").textContent = influence && view.kind === "cross"
      ? "Sorted by how well the most looked-at words are those that mattered when left out (1: always)."
      : "Sorted by how surely words look at words (1: each at one); looks at marks count as nothing.";
  }
  const tiles = [...find("tiles").children];
  for (const tile of tiles) {
    const isShown = view.measure !== "rollout" && tile.dataset.layer === String(view.layer) && sameHead(tile, view);
    tile.setAttribute("aria-pressed", String(isShown));
  }
  setRoving(tiles, Math.max(tiles.findIndex((tile) => tile.ariaPressed === "true"), 0));
}

/* Where a layer has one head, its number and the mean are the same. */
const sameHead = (tile, view) => tile.dataset.head === String(view.head) || recording.parts[0][view.kind].heads === 1;

function tileButton(tile) {
  const canvas = make("canvas", { "aria-hidden": "true" }), { choice } = facts;
  paint(canvas, tile.map, currentHue());
  const badge = tile.isChosen ? [make("span", { class: "badge", title: choice.text }, "chosen")] : [];
  const button = make("button", { type: "button", class: "tile", "data-layer": String(tile.layer), "data-head": String(tile.head) },
    make("span", { class: "frame" }, canvas), tileName(tile), make("span", { class: "score faint" }, two(tile.score), ...badge));
  button.addEventListener("click", () => setView({ layer: tile.layer, head: tile.head }));
  return button;
}

// --- replay and keys -----------------------------------------------------------------------------------------------

function step(number) {
  const words = ribbons.words.row;
  if (!words.length) return;
  const place = Math.min(Math.max(number, 0), words.length - 1);
  Object.assign(state, { pinned: null, hover: null, focus: { side: "row", number: place, column: null }, isReplay: true });
  setRoving(words, place);
  words[place].scrollIntoView({ block: "nearest", inline: "nearest" });
  showActive();
}

const stepBy = (count) => { stop(); step(state.focus?.side === "row" ? state.focus.number + count : 0); };

function play() {
  if (state.timer) return stop();
  step(0);
  state.timer = setInterval(() => (state.focus.number + 1 < state.map.height ? step(state.focus.number + 1) : stop()), BEAT);
  find("play").setAttribute("aria-pressed", "true");
}

function stop() {
  clearInterval(state.timer);
  state.timer = null;
  find("play").setAttribute("aria-pressed", "false");
}

/* Arrow keys: along the words of a sentence, the heads or the tabs; from anywhere else they replay the output. */
function onKey(event) {
  if (event.key === "Escape") return letGo();
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select, #heat, .scroll, #what-if")) return;
  const group = event.target.closest(".line, #tiles, #tabs");
  if (group) return moveWithin(group, event);
  if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
  event.preventDefault();
  focusWord(state.focus?.side === "row" ? state.focus.number + (event.key === "ArrowRight" ? 1 : -1) : 0);
}

function moveWithin(group, event) {
  const all = [...group.querySelectorAll("button")], current = all.indexOf(document.activeElement);
  const place = arrowed(event.key, current, all.length, group.dir === "rtl" && !ribbons.isDown);
  if (place === null) return;
  event.preventDefault();
  if (group === ribbons.lines.row) return focusWord(place);
  setRoving(all, place);
  all[place].focus();
  if (group.id === "tabs") all[place].click();
}

function focusWord(number) {
  stop();
  const place = Math.min(Math.max(number, 0), ribbons.words.row.length - 1);
  ribbons.words.row[place]?.focus({ preventScroll: true });
  step(place);
}

// --- what if -------------------------------------------------------------------------------------------------------

const ASKED = { mask: "Hide a source word", ablate: "Switch off a head", sharpen: "Look more or less sharply" };

function makeWhatIf() {
  if (!facts.answers.length) return;
  find("tabs").hidden = false;
  find("look").setAttribute("role", "tabpanel");
  find("look").setAttribute("aria-labelledby", "tab-look");
  for (const tab of find("tabs").children) tab.addEventListener("click", () => showTab(tab));
  setRoving([...find("tabs").children], 0);
  find("asked").textContent = "What would it write if it could not look? Answered when this page was made, by the model itself.";
  const kinds = [...new Set(facts.answers.map((answer) => answer.kind))];
  find("questions").replaceChildren(...kinds.map(questionGroup));
}

function showTab(chosenTab) {
  for (const tab of find("tabs").children) {
    tab.setAttribute("aria-selected", String(tab === chosenTab));
    find(tab.getAttribute("aria-controls")).hidden = tab !== chosenTab;
  }
  setRoving([...find("tabs").children], [...find("tabs").children].indexOf(chosenTab));
  const isAsking = chosenTab.id === "tab-what-if";
  find("shows").hidden = isAsking;
  if (isAsking && !find("answer").hasChildNodes()) showAnswer(facts.answers.find(isChanged) ?? facts.answers[0]);
}

const isChanged = (answer) => answer.diff.some(([what]) => what !== "same");

function questionGroup(kind) {
  const own = facts.answers.filter((answer) => answer.kind === kind);
  const buttons = kind === "mask" ? recording.source.words.map((text, number) => questionButton(own.find((answer) => answer.source_word === number), text))
    : own.map((answer) => questionButton(answer, answer.question));
  return make("div", { class: "question", role: "group", "aria-label": ASKED[kind] ?? kind }, make("h2", {}, ASKED[kind] ?? kind), make("div", { class: "line" }, ...buttons));
}

function questionButton(answer, text) {
  const button = make("button", { type: "button", class: "word", disabled: !answer, "data-answer": answer ? facts.answers.indexOf(answer) : null }, word(text));
  if (answer) {
    button.classList.toggle("changes", isChanged(answer));
    button.title = isChanged(answer) ? "changes what is written" : "changes nothing";
    button.addEventListener("click", () => showAnswer(answer));
  }
  return button;
}

function showAnswer(answer) {
  const number = String(facts.answers.indexOf(answer)), { attention } = answer;
  for (const button of document.querySelectorAll("#questions button")) button.setAttribute("aria-pressed", String(button.dataset.answer === number));
  const verdict = isChanged(answer) ? "it would write" : "it would write the same";
  find("answer").replaceChildren(make("h2", {}, `${capital(answer.question)}, ${verdict}`),
    textLine("before", answer.diff, "removed", "del"), textLine("now", answer.diff, "added", "ins"), ...scoreLine(answer));
  for (const part of ["answer-stage", "nowhere"]) find(part).hidden = true;
  find("answer-shows").textContent = attention ? attention.shows : "";
  if (attention) showAnswerMap(attention);
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function scoreLine({ before, score }) {
  if (score === null) return [];
  const scores = [before, score].filter((each) => each !== null).map((each) => two(each).replace("-", "−"));
  return [make("p", { class: "faint" }, `Score ${scores.join(" → ")}: the log-probability of a subword, in the mean; 0 is certain.`)];
}

const PLAIN = { kind: "cross", layer: null, head: null, rows: "predicting", measure: "weights", unit: "words" };

function showAnswerMap(attention) {
  answerRibbons ??= new Ribbons(find("answer-stage"), lightAnswer);
  answerRibbons.active = null;
  const map = mapOf(readRecording(attention), PLAIN), isNowhere = !map.values.some((weight) => weight > 0);
  find("answer-stage").hidden = isNowhere;
  find("nowhere").hidden = !isNowhere; // as when the head that is shown was switched off
  answerRibbons.show(map, null, LINES.cross);
}

let answerRibbons = null;

function lightAnswer(what, side, number) {
  answerRibbons.light(what === "leave" || what === "blur" ? null : { side, number });
}

// --- saving --------------------------------------------------------------------------------------------------------

function makeDownloads() {
  const shown = () => find("shows").textContent;
  const json = () => JSON.stringify(recordOf(record, state.map, shown()));
  const svg = () => drawing(ribbons, state.map, goldCells(state.map), shown(), json());
  const files = {
    SVG: () => save("attention.svg", svg(), "image/svg+xml"),
    PNG: async () => save("attention.png", await rasterised(svg())),
    Pharaoh: () => save("attention.pharaoh", `${linksOf(recording, state.view).map((link) => link.join("-")).join(" ")}\n`, "text/plain"),
    JSON: () => save("attention.json", `${json()}\n`, "application/json"),
  };
  find("downloads").append(...Object.entries(files).map(([name, act]) => toggle(`save-${name.toLowerCase()}`, name, act)));
}

// --- begin ---------------------------------------------------------------------------------------------------------

const ribbons = new Ribbons(find("stage"), listen);
const heat = new Heat(find("heat"), listen);

function begin() {
  makeControls();
  makeWhatIf();
  makeDownloads();
  showView();
  document.addEventListener("keydown", onKey);
  find("back").addEventListener("click", () => stepBy(-1));
  find("forth").addEventListener("click", () => stepBy(1));
  find("play").addEventListener("click", play);
  find("as-text").addEventListener("toggle", showAsText);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { tilesShown = ""; showView(); });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; heat.show(state.map, goldCells(state.map)); } });
}

begin();
