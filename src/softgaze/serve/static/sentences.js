/* Split a text into sentences exactly as data/sentence_split.py does (a test compares them), and keep the line breaks. */

const END = new RegExp(
  "(?<mark>[!?…]+|\\.+)[\"'”’»)\\]]*(?=\\s)" +
  "|[。！？｡]+[\"'”’」』）]*(?![\"'”’」』）]*(?:と|って))" +
  "|(?<=[가-힣])[.!?]+(?=[가-힣])", "gu");
const LAST_WORD = /([^\s(["'“‘„«]+)$/u;
const LETTER = "[\\p{L}\\p{Nl}\\p{No}]";
const INITIALS = new RegExp(`^(?:${LETTER}\\.)*${LETTER}$`, "u"); // J. R., e.g., z. B., U.S.
const ORDINAL = /^(?:\p{Nd}{1,2}|[ivxIVX]+)$/u; // 3. Mai, 1. Open the file
const ABBREVIATION = new RegExp(
  "^(?:mrs?|ms|mx|dr|prof|st|[js]r|gen|col|lt|sgt|capt|rev|hon|gov|sen|rep|pres|messrs|vs|cf|ca|approx|incl|esp" +
  "|inc|ltd|corp|co|bros|dept|univ|mt|ft|jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec" +
  "|bzw|evtl|ggf|inkl|exkl|vgl|sog|bspw|hrn?|fr|dipl|ing|mag|nr|str|tel|zzgl|abzgl" +
  "|mme|mlle|mgr|env|ej|sra|srta|uds?|dña|pág)$", "iu");
const BEFORE_NUMBER = /^(?:nos?|figs?|eqs?|sec|ch|vol|pp?|art|abs|ref|tab|bd|kap|s|n|n[úu]m)$/iu;

/* [{text, gap}]: each sentence and the line breaks before it; sentences of one line are separated by a space. */
export function splitSentences(text) {
  const sentences = [];
  let gap = "";
  text.split(/\r\n|[\n\r\u2028\u2029]/).forEach((line, index) => {
    if (index) gap += "\n";
    for (const sentence of splitLine(line.replace(/\s+/gu, " ").trim())) {
      sentences.push({ text: sentence, gap });
      gap = "";
    }
  });
  return sentences;
}

function splitLine(line) {
  const ends = [...line.matchAll(END)].filter((found) => isSentenceEnd(line, found));
  const offsets = [0, ...ends.map((found) => found.index + found[0].length), line.length];
  return offsets.slice(1).map((end, index) => line.slice(offsets[index], end).trim()).filter(Boolean);
}

/* Whether a mark ends a sentence: not that of an abbreviation or ordinal, nor one before a small letter. */
function isSentenceEnd(line, found) {
  const end = found.index + found[0].length;
  const following = line.slice(end, end + 2).trimStart();
  if (/^\p{Lowercase}/u.test(following)) return false;
  const word = LAST_WORD.exec(line.slice(Math.max(0, found.index - 40), found.index))?.[1];
  if (found.groups.mark !== "." || word === undefined) return true;
  const isShort = INITIALS.test(word) && word.toLowerCase() !== word.toUpperCase() && !"IOo".includes(word);
  const isReference = /^\p{Nd}/u.test(following) && BEFORE_NUMBER.test(word);
  return !(ORDINAL.test(word) || isShort || isReference || ABBREVIATION.test(word));
}

/* Join translations with the line breaks of the source. */
export function joinSentences(sentences, texts, isSpaced) {
  return sentences.map(({ gap }, index) => `${gap || (index && isSpaced ? " " : "")}${texts[index] ?? ""}`).join("");
}
