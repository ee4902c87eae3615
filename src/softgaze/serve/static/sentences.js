/* Split a text into sentences exactly as translator.py does (a test compares them), and keep the line breaks. */

// Closing punctuation before a space ends a sentence, with closing quotes. Exceptions: the full stop of a number, of one
// or two letters that start with a capital (Mr., U.S.), and one before a lowercase letter. 。！？ need no space.
const LETTER = "[\\p{L}\\p{N}_]";
const END = new RegExp(
  `(?:[!?…]+|(?<!\\p{Nd})(?<!(?<!${LETTER})[A-Z])(?<!(?<!${LETTER})[A-Z]${LETTER})\\.+)["'”’»)\\]]*(?=\\s)|[。！？｡]+["'”’」』）]*`, "gu");

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
  const ends = [...line.matchAll(END)].map((match) => match.index + match[0].length);
  const offsets = [0, ...ends.filter((end) => !/^\p{Lowercase}/u.test(line.slice(end, end + 2).trimStart())), line.length];
  return offsets.slice(1).map((end, index) => line.slice(offsets[index], end).trim()).filter(Boolean);
}

/* Join translations with the line breaks of the source. */
export function joinSentences(sentences, texts, isSpaced) {
  return sentences.map(({ gap }, index) => `${gap || (index && isSpaced ? " " : "")}${texts[index] ?? ""}`).join("");
}
