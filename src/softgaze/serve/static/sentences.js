/* A text as its sentences, cut where translator.py cuts (a test holds them equal), and line breaks kept. */

// A mark before a space ends a sentence, closing quotes included; but not the full stop of a number or of one or two
// letters that begin with a capital (Mr., U.S.), nor one before a small letter. 。！？ need no space.
const LETTER = "[\\p{L}\\p{N}_]";
const END = new RegExp(
  `(?:[!?…]+|(?<!\\p{Nd})(?<!(?<!${LETTER})[A-Z])(?<!(?<!${LETTER})[A-Z]${LETTER})\\.+)["'”’»)\\]]*(?=\\s)|[。！？｡]+["'”’」』）]*`, "gu");

/* [{text, gap}]: each sentence and the line breaks, or "", that stand before it; sentences of one line have a space between them. */
export function sentencesOf(text) {
  const found = [];
  let gap = "";
  text.split(/\r\n|[\n\r\u2028\u2029]/).forEach((line, number) => {
    if (number) gap += "\n";
    for (const sentence of cut(line.replace(/\s+/gu, " ").trim())) {
      found.push({ text: sentence, gap });
      gap = "";
    }
  });
  return found;
}

function cut(line) {
  const ends = [...line.matchAll(END)].map((mark) => mark.index + mark[0].length);
  const places = [0, ...ends.filter((end) => !/^\p{Lowercase}/u.test(line.slice(end, end + 2).trimStart())), line.length];
  return places.slice(1).map((end, number) => line.slice(places[number], end).trim()).filter(Boolean);
}

/* Translations put together again as the text was. */
export function joinedText(sentences, texts, isSpaced) {
  return sentences.map(({ gap }, number) => `${gap || (number && isSpaced ? " " : "")}${texts[number] ?? ""}`).join("");
}
