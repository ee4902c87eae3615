"use strict";
/* Every map of a recording, computed as recording.py, word_spans.py and attention_map.py do; a test holds them equal.
   Independent of the page. A matrix is {height, width, values}; a map also has the labels of its `rows` and `columns`. */

const LEVELS = 65535; // of a packed weight
const RESIDUAL_SHARE = 0.5; // in a rollout, the share of a layer's output from its residual connection
const MIN_EFFECT = 1; // nats: a source word that changed the whole output by less than this counts for little
const NO_WORD = -1, ATTACHED = -2; // in `word_of`: BOS or EOS; in `core_of`: punctuation attached to a word
const BOS_MARK = "⇥", EOS_MARK = "⏎";

// --- reading -------------------------------------------------------------------------------------------------------

function decodeBytes(base64) {
  const chars = atob(base64), bytes = new Uint8Array(chars.length);
  for (let i = 0; i < chars.length; i++) bytes[i] = chars.charCodeAt(i);
  return bytes.buffer;
}

/* Weights are unpacked when first used: most kinds of a long sentence are never shown. */
function readStack(stored) {
  if (!stored) return null;
  const [layers, heads, height, width] = stored.shape;
  let weights, norms;
  return {
    layers, heads, height, width,
    get weights() { return (weights ??= new Uint16Array(decodeBytes(stored.weights))); }, // little-endian, like every browser
    get norms() { return (norms ??= new Float32Array(decodeBytes(stored.norms))); },
  };
}

/* `cores` is `TokenizedText.core_of` of each side; without it every token of a word counts for alignments. */
function readRecording(stored, cores = {}) {
  const parts = stored.parts.map((part) => ({
    cross: readStack(part.cross), encoder: readStack(part.encoder), decoder: readStack(part.decoder),
  }));
  const text = (side) => { // the file format calls tokens "pieces"
    const { pieces, ...rest } = stored[side];
    return { ...rest, tokens: pieces, core_of: cores[side] };
  };
  return { source: text("source"), target: text("target"), parts, note: stored.note ?? "" };
}

const kindsOf = (recording) => ["cross", "encoder", "decoder"].filter((kind) => recording.parts[0]?.[kind]);

// --- matrices ------------------------------------------------------------------------------------------------------

const zeros = (height, width) => ({ height, width, values: new Float64Array(height * width) });

function identity(size) {
  const matrix = zeros(size, size);
  for (let i = 0; i < size; i++) matrix.values[i * (size + 1)] = 1;
  return matrix;
}

function product(first, second) {
  const result = zeros(first.height, second.width);
  for (let row = 0; row < first.height; row++) {
    const values = rowOf(result, row);
    rowOf(first, row).forEach((factor, inner) => { if (factor) addScaled(values, factor, rowOf(second, inner)); });
  }
  return result;
}

function addScaled(values, factor, others) {
  for (let i = 0; i < values.length; i++) values[i] += factor * others[i];
}

const rowOf = (map, row) => map.values.subarray(row * map.width, (row + 1) * map.width);
const at = (map, row, column) => map.values[row * map.width + column];

function sum(values) {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i];
  return total;
}

const mean = (values) => (values.length ? sum(values) / values.length : 0);

/* In place: rows sum to 1, and rows of zeros stay zero. */
function normalizeRows(map) {
  for (let row = 0; row < map.height; row++) {
    const values = rowOf(map, row), total = sum(values);
    if (total > 0) values.forEach((value, column) => { values[column] = value / total; });
  }
  return map;
}

function blockDiagonal(blocks) {
  const result = zeros(sum(blocks.map((block) => block.height)), sum(blocks.map((block) => block.width)));
  let top = 0, left = 0;
  for (const block of blocks) {
    for (let row = 0; row < block.height; row++) result.values.set(rowOf(block, row), (top + row) * result.width + left);
    top += block.height;
    left += block.width;
  }
  return result;
}

// --- one part ------------------------------------------------------------------------------------------------------

function partMap(part, view) {
  if (view.measure === "rollout") return rollout(part, view.kind);
  const withNorms = view.measure === "norms";
  const map = meanWeights(part[view.kind], view.layer, view.head, withNorms);
  return withNorms ? normalizeRows(map) : map;
}

/* [index], or all indices if it is null. */
const selectIndices = (index, count) => (index === null ? [...Array(count).keys()] : [index]);

/* The mean of one or all layers and heads, optionally weighted by the norms of the values. */
function meanWeights(stack, layer, head, withNorms = false) {
  const result = zeros(stack.height, stack.width), size = stack.height * stack.width;
  const layers = selectIndices(layer, stack.layers), heads = selectIndices(head, stack.heads);
  const scale = 1 / (LEVELS * layers.length * heads.length), { weights, norms, width } = stack;
  for (const layerIndex of layers) {
    for (const headIndex of heads) {
      const offset = layerIndex * stack.heads + headIndex;
      for (let i = 0; i < size; i++) {
        const norm = withNorms ? norms[offset * width + (i % width)] : 1;
        result.values[i] += weights[offset * size + i] * norm * scale;
      }
    }
  }
  return result;
}

const layerMeans = (stack) => selectIndices(null, stack.layers).map((layer) => meanWeights(stack, layer, null));

/* Attention rollout (Abnar & Zuidema 2020), extended to decoders with cross-attention. */
function rollout(part, kind) {
  if (kind !== "cross") return rolloutLayers(layerMeans(part[kind]));
  const encoder = part.encoder ? rolloutLayers(layerMeans(part.encoder)) : identity(part.cross.width);
  const decoder = part.decoder ? layerMeans(part.decoder) : [];
  let shares = zeros(part.cross.height, part.cross.width);
  layerMeans(part.cross).forEach((weights, layer) => {
    if (decoder[layer]) shares = mixResidual(shares, product(decoder[layer], shares));
    shares = mixResidual(shares, product(weights, encoder));
  });
  return normalizeRows(shares);
}

const rolloutLayers = (layers) =>
  layers.reduce((shares, weights) => mixResidual(shares, product(weights, shares)), identity(layers[0].width));

const mixResidual = (residual, attended) => ({
  ...residual, values: residual.values.map((value, i) => RESIDUAL_SHARE * value + (1 - RESIDUAL_SHARE) * attended.values[i]),
});

// --- labels {text, word, positions}: word is null for BOS and EOS ---------------------------------------------------

const isWord = (label) => label.word !== null;

function tokenLabels(text) {
  return text.tokens.map((token, position) => {
    const word = text.word_of[position];
    return { text: token, word: word === NO_WORD ? null : word, positions: [position] };
  });
}

function wordLabels(text) {
  const positions = text.words.map(() => []), labels = [];
  text.word_of.forEach((word, position) => { if (word !== NO_WORD) positions[word].push(position); });
  const last = Math.max(-1, ...positions.map((own) => own.at(-1) ?? -1));
  let next = 0;
  const addWordsBefore = (end) => {
    for (; next < end; next++) labels.push({ text: text.words[next], word: next, positions: positions[next] });
  };
  text.word_of.forEach((word, position) => {
    const isLastEos = text.tokens[position] === EOS_MARK && position > last; // words without tokens come before it
    addWordsBefore(isLastEos ? text.words.length : word + 1);
    if (word === NO_WORD) labels.push({ text: text.tokens[position], word: null, positions: [position] });
  });
  addWordsBefore(text.words.length);
  return labels;
}

const labelsOf = (text, unit) => (unit === "words" ? wordLabels(text) : tokenLabels(text));

/* The decoder input of a target: each part starts with BOS, and its EOS is not read. */
function decoderInput(text) {
  const tokens = [], wordOf = [], coreOf = [], targetCoreOf = text.core_of ?? text.word_of;
  let start = 0;
  text.tokens.forEach((token, end) => {
    if (token !== EOS_MARK || text.word_of[end] !== NO_WORD) return;
    tokens.push(BOS_MARK, ...text.tokens.slice(start, end));
    wordOf.push(NO_WORD, ...text.word_of.slice(start, end));
    coreOf.push(NO_WORD, ...targetCoreOf.slice(start, end));
    start = end + 1;
  });
  return { tokens, word_of: wordOf, core_of: coreOf, words: text.words };
}

/* The words without attached punctuation, which alignments link; without BOS and EOS. */
function coreLabels(text) {
  const positions = text.words.map(() => []);
  (text.core_of ?? text.word_of).forEach((word, position) => { if (word >= 0) positions[word].push(position); });
  return text.words.map((word, index) => ({ text: word, word: index, positions: positions[index] }));
}

/* The labels of `wordLabels` without the positions of attached punctuation. */
const wordLabelsWithoutPunctuation = (text) => wordLabels(text).map((label) =>
  ({ ...label, positions: label.positions.filter((position) => text.core_of?.[position] !== ATTACHED) }));

const queryText = (recording, view) => (view.kind === "encoder" ? recording.source : recording.target);
const keyText = (recording, view) => (view.kind === "decoder" ? decoderInput(recording.target) : recording.source);

/* With rows "reading", the row of a word is the step after the one that predicted it; an encoder has no such steps. */
function toRowLabels(labels, view) {
  if (view.rows !== "reading" || view.kind === "encoder") return labels;
  return labels.filter(isWord).map((label) => ({ ...label, positions: label.positions.map((position) => position + 1) }));
}

/* Rows "reading" need a row for EOS. */
function hasReadingRows(recording) {
  const rows = toRowLabels(tokenLabels(recording.target), { kind: "cross", rows: "reading" });
  return rows.every((label) => label.positions.every((position) => position < recording.target.tokens.length));
}

// --- maps ----------------------------------------------------------------------------------------------------------

const tokenMap = (recording, view) => blockDiagonal(recording.parts.map((part) => partMap(part, view)));

/* `coreMap` is the same map with words taken without their attached punctuation, as in terminal.py. */
function mapOf(recording, view, weights = tokenMap(recording, view)) {
  const query = queryText(recording, view), key = keyText(recording, view);
  const grouped = (labels) => {
    const rows = toRowLabels(labels(query), view), columns = labels(key);
    return { ...groupTokens(weights, rows, columns), rows, columns, view };
  };
  const map = grouped((text) => labelsOf(text, view.unit));
  let coreMap = view.unit === "subwords" ? map : null;
  Object.defineProperty(map, "coreMap", { get: () => (coreMap ??= grouped(wordLabelsWithoutPunctuation)) });
  return map;
}

/* Occlusion as a map of words: the positive effects of each output word as shares; BOS and EOS have none. */
function occlusionMap(recording, occlusion) {
  const view = { kind: "cross", layer: null, head: null, rows: "predicting", measure: "occlusion", unit: "words" };
  const rows = wordLabels(recording.target), columns = wordLabels(recording.source), map = zeros(rows.length, columns.length);
  const effectOf = (row, column) => (isWord(row) && isWord(column) ? at(occlusion, row.word, column.word) : 0);
  rows.forEach((row, i) => columns.forEach((column, j) => { map.values[i * map.width + j] = Math.max(effectOf(row, column) || 0, 0); }));
  const shown = { ...normalizeRows(map), rows, columns, view };
  shown.coreMap = shown;
  return shown;
}

/* (target words, source words), for any unit. */
function wordWeights(recording, view, weights = tokenMap(recording, view)) {
  const rows = toRowLabels(coreLabels(queryText(recording, view)), view);
  return groupTokens(weights, rows, coreLabels(keyText(recording, view)));
}

/* Tokens of a word are summed as columns and averaged as rows, so rows still sum to 1. */
function groupTokens(weights, rows, columns) {
  const result = zeros(rows.length, columns.length);
  rows.forEach((row, index) => {
    const values = rowOf(result, index), share = 1 / Math.max(row.positions.length, 1);
    for (const position of row.positions) {
      const tokenRow = rowOf(weights, position);
      columns.forEach((column, columnIndex) => {
        for (const inner of column.positions) values[columnIndex] += tokenRow[inner] * share;
      });
    }
  });
  return result;
}

const indicesWhere = (values, condition) => values.flatMap((value, index) => (condition(value) ? [index] : []));

/* The first index of the largest value; -1 if there is none or all are zero. */
function argmax(values) {
  let best = -1;
  values.forEach((value, index) => { if (value > (best < 0 ? 0 : values[best])) best = index; });
  return best;
}

/* Row-normalised × column-normalised weights, as row_column_normalize in attention_map.py. */
function rowColumnNormalize(weights) {
  const { height, width, values } = weights, rowSums = new Float64Array(height), columnSums = new Float64Array(width);
  values.forEach((weight, i) => {
    rowSums[Math.floor(i / width)] += weight;
    columnSums[i % width] += weight;
  });
  return { height, width, values: values.map((weight, i) => weight && weight ** 2 / (rowSums[Math.floor(i / width)] * columnSums[i % width])) };
}

/* Sorted [source word, target word] pairs, as Attention.alignment links them. */
function alignmentLinks(recording, view) {
  const weights = rowColumnNormalize(wordWeights(recording, view)), links = [];
  for (let row = 0; row < weights.height; row++) {
    const column = argmax(rowOf(weights, row));
    if (column >= 0) links.push([column, row]);
  }
  return links.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

// --- numbers -------------------------------------------------------------------------------------------------------

const entropyOf = (values) => -sum(Array.from(values, (value) => (value > 0 ? value * Math.log(value) : 0)));

const entropies = (map) => map.rows.map((_, row) => entropyOf(rowOf(map, row)));

/* The sum of each column over the output words. */
function coverages(map) {
  const coverage = new Float64Array(map.width);
  for (const row of indicesWhere(map.rows, isWord)) addScaled(coverage, 1, rowOf(map, row));
  return Array.from(coverage);
}

/* The mean share of a row on BOS and EOS. */
function sinkOf(map) {
  const marks = indicesWhere(map.columns, (label) => !isWord(label));
  return mean(map.rows.map((_, row) => sum(marks.map((column) => at(map, row, column)))));
}

/* Mean rank correlation of attention and occlusion over the output words; NaN if nothing can be ranked. */
function faithfulnessOf(weights, occlusion) {
  const correlations = [];
  for (let row = 0; row < weights.height; row++) {
    const effects = rowOf(occlusion, row), attention = rowOf(weights, row);
    const known = indicesWhere(Array.from(effects), (value) => !Number.isNaN(value));
    correlations.push(correlation(ranks(known.map((i) => attention[i])), ranks(known.map((i) => effects[i]))));
  }
  const ranked = correlations.filter((value) => !Number.isNaN(value));
  return ranked.length ? mean(ranked) : NaN;
}

/* Ranks from 0; equal values share their mean rank. */
function ranks(values) {
  const order = [...values.keys()].sort((a, b) => values[a] - values[b]), result = [];
  for (let start = 0, end; start < order.length; start = end) {
    for (end = start + 1; values[order[end]] === values[order[start]];) end++;
    order.slice(start, end).forEach((index) => { result[index] = (start + end - 1) / 2; });
  }
  return result;
}

/* Pearson correlation; NaN for constants. */
function correlation(first, second) {
  const centred = (values, middle = mean(values)) => values.map((value) => value - middle);
  const dot = (a, b) => sum(a.map((value, i) => value * b[i]));
  const [x, y] = [centred(first), centred(second)], spread = Math.sqrt(dot(x, x) * dot(y, y));
  return spread > 0 ? dot(x, y) / spread : NaN;
}

/* Agreement of a map with occlusion, from 0 to 1, as occlusion_agreement in map_selection.py. */
function occlusionAgreement(weights, occlusion) {
  const effects = { ...occlusion, values: occlusion.values.map((value) => Math.max(value || 0, 0)) };
  const totals = new Float64Array(occlusion.width).fill(MIN_EFFECT);
  for (let row = 0; row < weights.height; row++) addScaled(totals, 1, rowOf(effects, row));
  let reached = 0, reachable = 0;
  for (let row = 0; row < weights.height; row++) {
    const shares = Array.from(rowOf(effects, row), (value, column) => value / totals[column]);
    reached += shares[Math.max(argmax(rowOf(weights, row)), 0)] ?? 0;
    reachable += shares.reduce((most, value) => Math.max(most, value), 0);
  }
  return reachable > 0 ? reached / reachable : 0;
}

/* From 0 (uniform, or only BOS and EOS) to 1 (one source word for each output word). */
function sharpness(weights) {
  const most = Math.log(weights.width);
  const rows = Array.from({ length: weights.height }, (_, row) => Array.from(rowOf(weights, row)));
  return mean(rows.map((row) => {
    const total = sum(row);
    if (!(total > 0)) return 0;
    return total * (most > 0 ? 1 - entropyOf(row.map((value) => value / total)) / most : 1);
  }));
}

// --- descriptions --------------------------------------------------------------------------------------------------

const FIELDS = ["kind", "layer", "head", "rows", "measure", "unit"];

const isSameView = (a, b, fields = FIELDS) => fields.every((field) => a[field] === b[field]);

/* As View.describe; `names` are the tables of recording.py. */
function describeView(recording, view, names) {
  const { layers, heads } = recording.parts[0][view.kind];
  const describeIndex = (name, index, count) =>
    count === 1 ? `one ${name}` : index === null ? `mean of ${count} ${name}s` : `${name} ${index} of ${count} (from 0)`;
  const indices = view.measure === "rollout" ? [] : [describeIndex("layer", view.layer, layers), describeIndex("head", view.head, heads)];
  const parts = [names.kind[view.kind], ...indices, names.measure[view.measure], names.unit[view.unit]];
  const rows = names.rows[view.kind === "encoder" ? "reading" : view.rows];
  return `${parts.join(", ")}; each row is the attention ${rows}`;
}

const isSelectedView = (view, selected) => Boolean(selected && isSameView(selected.view, view, FIELDS.filter((field) => field !== "unit")));

/* As Attention.warning: the reliability of the sentence if it is too low to rely on the map. */
function warningOf(view, selected) {
  if (!selected?.reliability.isLow) return "";
  return selected.reliability[isSelectedView(view, selected) ? "own" : "other"];
}

/* As Attention.details: the note of the recording, the selection, if this is the selected map in any unit, and the reliability. */
function detailsOf(recording, view, names, selected) {
  const isSelected = isSelectedView(view, selected);
  const reliability = selected && !selected.reliability.isLow ? selected.reliability[isSelected ? "own" : "other"] : "";
  return [describeView(recording, view, names), recording.note, isSelected ? selected.text : "", reliability].filter(Boolean).join("; ");
}

/* As Attention.description. */
function describeMap(recording, view, names, selected) {
  return [warningOf(view, selected), detailsOf(recording, view, names, selected)].filter(Boolean).join("; ");
}
