"use strict";
/* Every map of a recording, computed as recording.py, words.py, view.py and attention.py compute it; a test holds them
   equal. Knows no page. A matrix is {height, width, values}; a map also has the labels of its `rows` and `columns`. */

const STEPS = 65535; // of a packed weight
const OWN_SHARE = 0.5; // in a rollout, how much of a vector is itself
const HARDLY = 1; // nats: a source word that did no more than this to the whole output counts for little
const NO_WORD = -1, ATTACHED = -2; // in `word_of` a mark; in `core_of` punctuation attached to a word
const BEGIN_MARK = "⇥", END_MARK = "⏎";

// --- reading -------------------------------------------------------------------------------------------------------

function bytesOf(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let place = 0; place < letters.length; place++) bytes[place] = letters.charCodeAt(place);
  return bytes.buffer;
}

/* Unpacked when first looked at: most kinds of a long sentence never are. */
function readStack(stored) {
  if (!stored) return null;
  const [layers, heads, height, width] = stored.shape;
  let weights, norms;
  return {
    layers, heads, height, width,
    get weights() { return (weights ??= new Uint16Array(bytesOf(stored.weights))); }, // little-endian, as is every browser
    get norms() { return (norms ??= new Float32Array(bytesOf(stored.norms))); },
  };
}

/* `cores` say for each side which pieces make links (`Side.core_of`); without them all pieces of words do. */
function readRecording(stored, cores = {}) {
  const parts = stored.parts.map((part) => ({
    cross: readStack(part.cross), encoder: readStack(part.encoder), decoder: readStack(part.decoder),
  }));
  const side = (name) => ({ ...stored[name], core_of: cores[name] });
  return { source: side("source"), target: side("target"), parts, note: stored.note ?? "" };
}

const kindsOf = (recording) => ["cross", "encoder", "decoder"].filter((kind) => recording.parts[0]?.[kind]);

// --- matrices ------------------------------------------------------------------------------------------------------

const matrix = (height, width) => ({ height, width, values: new Float64Array(height * width) });

function identity(size) {
  const found = matrix(size, size);
  for (let place = 0; place < size; place++) found.values[place * (size + 1)] = 1;
  return found;
}

function product(first, second) {
  const found = matrix(first.height, second.width);
  for (let row = 0; row < first.height; row++) {
    const own = rowOf(found, row);
    rowOf(first, row).forEach((factor, inner) => { if (factor) addTo(own, factor, rowOf(second, inner)); });
  }
  return found;
}

function addTo(values, factor, others) {
  for (let place = 0; place < values.length; place++) values[place] += factor * others[place];
}

function mixed(own, looked) {
  return { ...own, values: own.values.map((value, place) => OWN_SHARE * value + (1 - OWN_SHARE) * looked.values[place]) };
}

const rowOf = (map, row) => map.values.subarray(row * map.width, (row + 1) * map.width);
const at = (map, row, column) => map.values[row * map.width + column];
function sum(values) {
  let total = 0;
  for (let place = 0; place < values.length; place++) total += values[place];
  return total;
}

const mean = (values) => (values.length ? sum(values) / values.length : 0);

/* Rows that sum to 1; a row that looked nowhere stays zero. */
function shares(map) {
  for (let row = 0; row < map.height; row++) {
    const own = rowOf(map, row), total = sum(own);
    if (total > 0) own.forEach((value, column) => { own[column] = value / total; });
  }
  return map;
}

function alongTheDiagonal(blocks) {
  const whole = matrix(sum(blocks.map((block) => block.height)), sum(blocks.map((block) => block.width)));
  let top = 0, left = 0;
  for (const block of blocks) {
    for (let row = 0; row < block.height; row++) whole.values.set(rowOf(block, row), (top + row) * whole.width + left);
    top += block.height;
    left += block.width;
  }
  return whole;
}

// --- one part ------------------------------------------------------------------------------------------------------

function partMap(part, view) {
  if (view.measure === "rollout") return rollout(part, view.kind);
  const byLength = view.measure === "norms";
  const found = meanOf(part[view.kind], view.layer, view.head, byLength);
  return byLength ? shares(found) : found;
}

const chosen = (number, count) => (number === null ? [...Array(count).keys()] : [number]);

/* The mean of one or all layers and heads, each weight times the length of its value if asked. */
function meanOf(stack, layer, head, byLength = false) {
  const found = matrix(stack.height, stack.width), size = stack.height * stack.width;
  const layers = chosen(layer, stack.layers), heads = chosen(head, stack.heads);
  const step = 1 / (STEPS * layers.length * heads.length), { weights, norms, width } = stack;
  for (const one of layers) {
    for (const other of heads) {
      const number = one * stack.heads + other;
      for (let place = 0; place < size; place++) {
        const length = byLength ? norms[number * width + (place % width)] : 1;
        found.values[place] += weights[number * size + place] * length * step;
      }
    }
  }
  return found;
}

function rollout(part, kind) {
  if (kind !== "cross") return through(layerMeans(part[kind]));
  const read = part.encoder ? through(layerMeans(part.encoder)) : identity(part.cross.width);
  const own = part.decoder ? layerMeans(part.decoder) : [];
  let seen = matrix(part.cross.height, part.cross.width);
  layerMeans(part.cross).forEach((look, layer) => {
    if (own[layer]) seen = mixed(seen, product(own[layer], seen));
    seen = mixed(seen, product(look, read));
  });
  return shares(seen);
}

const layerMeans = (stack) => chosen(null, stack.layers).map((layer) => meanOf(stack, layer, null));

const through = (layers) =>
  layers.reduce((seen, look) => mixed(seen, product(look, seen)), identity(layers[0].width));

// --- labels --------------------------------------------------------------------------------------------------------

/* {text, word, places}: word is null for a mark. */
function subwords(side) {
  return side.pieces.map((text, place) => ({ text, word: wordOf(side, place), places: [place] }));
}

const wordOf = (side, place) => (side.word_of[place] === NO_WORD ? null : side.word_of[place]);

function wholeWords(side) {
  const places = side.words.map(() => []), labels = [];
  side.word_of.forEach((word, place) => { if (word !== NO_WORD) places[word].push(place); });
  const last = Math.max(-1, ...places.map((own) => own.at(-1) ?? -1));
  const add = (end) => {
    for (; done < end; done++) labels.push({ text: side.words[done], word: done, places: places[done] });
  };
  let done = 0;
  side.word_of.forEach((word, place) => {
    const ends = side.pieces[place] === END_MARK && place > last; // words without a piece stand before it, too
    add(ends ? side.words.length : word + 1);
    if (word === NO_WORD) labels.push({ text: side.pieces[place], word: null, places: [place] });
  });
  add(side.words.length);
  return labels;
}

/* What a decoder reads while it writes this: each part begins with BEGIN and its END is never read. */
function asRead(side) {
  const pieces = [], numbers = [], own = [], coreOf = side.core_of ?? side.word_of;
  let start = 0;
  side.pieces.forEach((piece, end) => {
    if (piece !== END_MARK || side.word_of[end] !== NO_WORD) return;
    pieces.push(BEGIN_MARK, ...side.pieces.slice(start, end));
    numbers.push(NO_WORD, ...side.word_of.slice(start, end));
    own.push(NO_WORD, ...coreOf.slice(start, end));
    start = end + 1;
  });
  return { pieces, word_of: numbers, core_of: own, words: side.words };
}

const labelsOf = (side, unit) => (unit === "words" ? wholeWords(side) : subwords(side));

/* A label for each word, without marks: what links are made of. `core_of` may leave out more than marks. */
function cores(side) {
  const places = side.words.map(() => []);
  (side.core_of ?? side.word_of).forEach((word, place) => { if (word >= 0) places[word].push(place); });
  return side.words.map((text, number) => ({ text, word: number, places: places[number] }));
}

const rowSide = (recording, view) => (view.kind === "encoder" ? recording.source : recording.target);
const columnSide = (recording, view) => (view.kind === "decoder" ? asRead(recording.target) : recording.source);

/* Where the row of a word is the step after the one that wrote it; an encoder reads all words at once. */
function asRows(labels, view) {
  if (view.rows !== "reading" || view.kind === "encoder") return labels;
  return labels.filter(isWord).map((label) => ({ ...label, places: label.places.map((place) => place + 1) }));
}

const isWord = (label) => label.word !== null;

/* Without a row for the end of the sentence, rows can only mean what they predict. */
function canRead(recording) {
  const rows = asRows(subwords(recording.target), { kind: "cross", rows: "reading" });
  return rows.every((label) => label.places.every((place) => place < recording.target.pieces.length));
}

// --- maps ----------------------------------------------------------------------------------------------------------

/* The maps of all parts, one below and right of the other. */
const pieceMap = (recording, view) => alongTheDiagonal(recording.parts.map((part) => partMap(part, view)));

function mapOf(recording, view, pieces = pieceMap(recording, view)) {
  const rows = asRows(labelsOf(rowSide(recording, view), view.unit), view);
  const columns = labelsOf(columnSide(recording, view), view.unit);
  let meant;
  return { ...gathered(pieces, rows, columns), rows, columns, view, get meant() { return (meant ??= meantMap(recording, view, pieces, this)); } };
}

/* The same map, but words are without the punctuation attached to them, as `meant` in plain.py has it. */
function meantMap(recording, view, pieces, map) {
  if (view.unit === "subwords") return map;
  const rows = asRows(bare(rowSide(recording, view)), view), columns = bare(columnSide(recording, view));
  return { ...gathered(pieces, rows, columns), rows, columns, view };
}

const bare = (side) =>
  wholeWords(side).map((label) => ({ ...label, places: label.places.filter((place) => side.core_of?.[place] !== ATTACHED) }));

/* (target words, source words), whatever is shown. */
function wordWeights(recording, view, pieces = pieceMap(recording, view)) {
  return gathered(pieces, asRows(cores(rowSide(recording, view)), view), cores(columnSide(recording, view)));
}

/* Pieces of a word are summed as columns and averaged as rows, so rows still sum to 1. */
function gathered(pieces, rows, columns) {
  const found = matrix(rows.length, columns.length);
  rows.forEach((row, number) => {
    const own = rowOf(found, number), share = 1 / Math.max(row.places.length, 1);
    for (const place of row.places) {
      const looked = rowOf(pieces, place);
      columns.forEach((column, other) => {
        for (const inner of column.places) own[other] += looked[inner] * share;
      });
    }
  });
  return found;
}

function numbersOf(values, fits) {
  return values.flatMap((value, number) => (fits(value) ? [number] : []));
}

/* The first of the largest; -1 where there is none or all are zero. */
function largest(values) {
  let best = -1;
  values.forEach((value, place) => { if (value > (best < 0 ? 0 : values[best])) best = place; });
  return best;
}

/* The share of each row × the share of each column: what everybody looks at counts for less. */
function mutual(weights) {
  const { height, width, values } = weights, rows = new Float64Array(height), columns = new Float64Array(width);
  values.forEach((weight, place) => {
    rows[Math.floor(place / width)] += weight;
    columns[place % width] += weight;
  });
  return { height, width, values: values.map((weight, place) => weight && weight ** 2 / (rows[Math.floor(place / width)] * columns[place % width])) };
}

/* [source word, target word] of each output word and what it looked at most, sorted, as Attention.alignment links them. */
function linksOf(recording, view) {
  const weights = mutual(wordWeights(recording, view)), links = [];
  for (let row = 0; row < weights.height; row++) {
    const column = largest(rowOf(weights, row));
    if (column >= 0) links.push([column, row]);
  }
  return links.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
}

// --- numbers -------------------------------------------------------------------------------------------------------

const entropyOf = (values) => -sum(Array.from(values, (value) => (value > 0 ? value * Math.log(value) : 0)));

const entropies = (map) => map.rows.map((_, row) => entropyOf(rowOf(map, row)));

/* Of each column, what all words of the output together looked at it. */
function coverages(map) {
  const given = new Float64Array(map.width);
  for (const row of numbersOf(map.rows, isWord)) addTo(given, 1, rowOf(map, row));
  return Array.from(given);
}

/* The mean share of a row that goes to marks. */
function sinkOf(map) {
  const marks = numbersOf(map.columns, (label) => !isWord(label));
  return mean(map.rows.map((_, row) => sum(marks.map((column) => at(map, row, column)))));
}

/* Rank correlation of a map with the influence of leaving words out, mean over words; NaN where nothing can be ranked. */
function honestyOf(weights, influence) {
  const found = [];
  for (let row = 0; row < weights.height; row++) {
    const mattered = rowOf(influence, row);
    const known = numbersOf(Array.from(mattered), (value) => !Number.isNaN(value));
    const looked = rowOf(weights, row);
    found.push(correlation(ranks(known.map((place) => looked[place])), ranks(known.map((place) => mattered[place]))));
  }
  const ranked = found.filter((value) => !Number.isNaN(value));
  return ranked.length ? mean(ranked) : NaN;
}

/* From 0; equals share a mean rank. */
function ranks(values) {
  const order = [...values.keys()].sort((one, other) => values[one] - values[other]), found = [];
  for (let start = 0, end; start < order.length; start = end) {
    for (end = start + 1; values[order[end]] === values[order[start]];) end++;
    order.slice(start, end).forEach((place) => { found[place] = (start + end - 1) / 2; });
  }
  return found;
}

const centred = (values, middle = mean(values)) => values.map((value) => value - middle);

function correlation(first, second) {
  const [one, other] = [centred(first), centred(second)];
  const along = (left, right) => sum(left.map((value, place) => value * right[place]));
  const spread = Math.sqrt(along(one, one) * along(other, other));
  return spread > 0 ? along(one, other) / spread : NaN;
}

// --- usefulness ----------------------------------------------------------------------------------------------------

/* How much of what mattered most the most looked-at words reach, from 0 to 1 (`pointed` in choice.py). */
function pointing(weights, influence) {
  const known = { ...influence, values: influence.values.map((value) => Math.max(value || 0, 0)) };
  const totals = new Float64Array(influence.width).fill(HARDLY);
  for (let row = 0; row < weights.height; row++) addTo(totals, 1, rowOf(known, row));
  let reached = 0, reachable = 0;
  for (let row = 0; row < weights.height; row++) {
    const mattered = Array.from(rowOf(known, row), (value, column) => value / totals[column]);
    reached += mattered[Math.max(largest(rowOf(weights, row)), 0)] ?? 0;
    reachable += mattered.reduce((most, value) => Math.max(most, value), 0);
  }
  return reachable > 0 ? reached / reachable : 0;
}

/* How surely words look at words, from 0 (at all alike, or only at marks) to 1 (each at one). */
function sharpness(weights) {
  const most = Math.log(weights.width);
  const rows = Array.from({ length: weights.height }, (_, row) => Array.from(rowOf(weights, row)));
  return mean(rows.map((row) => {
    const total = sum(row);
    if (!(total > 0)) return 0;
    return total * (most > 0 ? 1 - entropyOf(row.map((value) => value / total)) / most : 1);
  }));
}

// --- in words ------------------------------------------------------------------------------------------------------

/* What a figure says of itself, as View.describe does; `names` are the tables of view.py. */
function describe(recording, view, names) {
  const { layers, heads } = recording.parts[0][view.kind];
  const which = view.measure === "rollout" ? []
    : [describeOne("layer", view.layer, layers), describeOne("head", view.head, heads)];
  const parts = [names.kind[view.kind], ...which, names.measure[view.measure], names.unit[view.unit]];
  const rows = names.rows[view.kind === "encoder" ? "reading" : view.rows];
  return `${parts.join(", ")}; a row is where the model looked ${rows}`;
}

function describeOne(name, number, count) {
  if (count === 1) return `one ${name}`;
  return number === null ? `mean of ${count} ${name}s` : `${name} ${number} of 0–${count - 1}`;
}

const FIELDS = ["kind", "layer", "head", "rows", "measure", "unit"];

const isSameView = (one, other, fields = FIELDS) => fields.every((field) => one[field] === other[field]);

/* As Attention.shows: what was changed while it was written is said, and a map that was chosen says so in any unit. */
function showsOf(recording, view, names, choice) {
  const isChosen = choice && isSameView(choice.view, view, FIELDS.filter((field) => field !== "unit"));
  return [describe(recording, view, names), recording.note, isChosen ? choice.text : ""].filter(Boolean).join("; ");
}
