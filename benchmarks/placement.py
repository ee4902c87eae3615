"""Where placeholders and tags land: `python -m benchmarks.placement MODEL test.en test.de --output FILE.json`.

English–German captions. The answers are known: LEXICON has words with one translation, written by hand. A source word
of it that occurs once, in a sentence whose translation has its German word once, gets a tag around it or a placeholder
before it. A tag is right if it surrounds the German word and nothing else; a placeholder, if it stands before the word
or before the adjectives and the article of the word (at most two words earlier). BLEU is that of the translations
without the placeholders. A second set has the placeholder instead of the word, and the reference too: its BLEU and chrF
count the placeholder as a word.
"""

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

import sacrebleu

from softgaze.documents.html import split_html
from softgaze.documents.inline import Segment
from softgaze.documents.translate import SegmentTranslator, SegmentView
from softgaze.search.options import SearchOptions
from softgaze.translator import Translator, load

LEXICON = {
    "dog": "hund|hundes|hunde", "dogs": "hunde|hunden", "man": "mann|mannes", "woman": "frau", "boy": "junge|jungen",
    "girl": "mädchen", "ball": "ball", "horse": "pferd", "hat": "hut|mütze", "guitar": "gitarre", "beach": "strand",
    "snow": "schnee", "children": "kinder|kindern", "tree": "baum", "table": "tisch", "book": "buch",
    "camera": "kamera", "grass": "gras", "bench": "bank", "bus": "bus", "boat": "boot", "wall": "wand|mauer",
    "car": "auto", "baby": "baby", "water": "wasser", "red": "rot|rote|roten|rotem|roter|rotes",
    "blue": "blau|blaue|blauen|blauem|blauer|blaues", "white": "weiß|weiße|weißen|weißem|weißer|weißes",
    "black": "schwarz|schwarze|schwarzen|schwarzem|schwarzer|schwarzes",
    "green": "grün|grüne|grünen|grünem|grüner|grünes", "yellow": "gelb|gelbe|gelben|gelbem|gelber|gelbes",
}  # fmt: skip
PLACEHOLDER = "%(name)s"
NEAR = 2  # words between a placeholder and its noun


class Masks(SegmentTranslator):
    """Mask every placeholder with a number; those that the model loses are inserted by alignment."""

    def aligns(self, view: SegmentView) -> bool:
        return False


METHODS = {"alignment": SegmentTranslator, "masks, then alignment": Masks}


def words_of(text: str) -> list[str]:
    return re.findall(r"[\w%()<>/{}]+", text.lower())


def known_words(sources: list[str], translations: list[str]) -> list[tuple[int, str]]:
    """Return (sentence, English word) of each answer that is known."""
    known = []
    for index, (source, target) in enumerate(zip(sources, translations, strict=True)):
        for word in LEXICON:
            matches = [each for each in words_of(target) if re.fullmatch(LEXICON[word], each)]
            if words_of(source).count(word) == 1 and len(matches) == 1:
                known.append((index, word))
    return known


def german_words(text: str, word: str) -> list[str]:
    return [each for each in re.findall(r"\w+", text) if re.fullmatch(LEXICON[word], each.lower())]


def tagged_right(markup: str, word: str) -> bool:
    inside = re.findall(r"<b>(.*?)</b>", markup)
    return len(inside) == 1 and re.fullmatch(LEXICON[word], inside[0].strip().lower()) is not None


def placed_right(text: str, word: str) -> bool:
    after = words_of(text.partition(PLACEHOLDER)[2])[: NEAR + 1]
    return text.count(PLACEHOLDER) == 1 and any(re.fullmatch(LEXICON[word], each) for each in after)


def marked(source: str, word: str, template: str) -> str:
    return re.sub(rf"(?i)\b({word})\b", template, source, count=1)


def measure(
    translator: Translator, sources: list[str], references: list[str], options: SearchOptions
) -> dict[str, Any]:
    plain = [each.text for each in translator.translate(sources, options)]
    known = known_words(sources, plain)
    result: dict[str, Any] = {
        "sentences": len(sources),
        "answers": len(known),
        "bleu_without_placeholders": sacrebleu.corpus_bleu(
            [plain[index] for index, _ in known], [[references[index] for index, _ in known]]
        ).score,
        "methods": {},
    }
    tagged = [
        part
        for index, word in known
        for part in split_html(marked(sources[index], word, r"<b>\1</b>"))
        if isinstance(part, Segment)
    ]
    found = [best for best, *_ in SegmentTranslator(translator, options).translate(tagged)]
    result["tags_right"] = sum(tagged_right(best, word) for best, (_, word) in zip(found, known, strict=True))
    texts = [marked(sources[index], word, rf"{PLACEHOLDER} \1") for index, word in known]
    nouns = [(index, word) for index, word in known if len(german_words(references[index], word)) == 1]
    replaced = [marked(sources[index], word, PLACEHOLDER) for index, word in nouns]
    expected = [
        references[index].replace(german_words(references[index], word)[0], PLACEHOLDER) for index, word in nouns
    ]
    result["replaced"] = len(replaced)
    for name, method in METHODS.items():
        start = time.perf_counter()
        found = [best for best, *_ in method(translator, options).translate([Segment(text, text) for text in texts])]
        seconds = time.perf_counter() - start
        bare = [" ".join(best.replace(PLACEHOLDER, " ").split()) for best in found]
        result["methods"][name] = {
            "lost": sum(best.count(PLACEHOLDER) != 1 for best in found),
            "right": sum(placed_right(best, word) for best, (_, word) in zip(found, known, strict=True)),
            "bleu": sacrebleu.corpus_bleu(bare, [[references[index] for index, _ in known]]).score,
            "seconds": round(seconds, 1),
        }
        found = [best for best, *_ in method(translator, options).translate([Segment(text, text) for text in replaced])]
        result["methods"][name]["bleu_replaced"] = sacrebleu.corpus_bleu(found, [expected]).score
        result["methods"][name]["chrf_replaced"] = sacrebleu.corpus_chrf(found, [expected]).score
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--engine", default="auto")
    arguments = parser.parse_args()
    sources, references = (path.read_text().splitlines() for path in (arguments.source, arguments.reference))
    translator = load(arguments.model, engine=arguments.engine)
    result = measure(translator, sources, references, SearchOptions(beam_size=5))
    text = json.dumps(result, indent=2) + "\n"
    print(text, end="")
    if arguments.output:
        arguments.output.write_text(text)


if __name__ == "__main__":
    main()
