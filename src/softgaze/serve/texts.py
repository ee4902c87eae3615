"""Texts as people send them: of several lines, which stay lines. Each line is translated for itself.

The work of a batch: all lines of all its texts go to the model together.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from softgaze.search.settings import Search
from softgaze.serve.shelf import Model
from softgaze.translator import Translation, Translator, combined_score


def translate_texts(translator: Translator, texts: Sequence[str], search: Search) -> list[Translation]:
    """One translation for each text, line by line."""
    lines = [text.splitlines(keepends=True) for text in texts]
    found = translator.translate_block([line for own in lines for line in own], search)
    return [joined(text, list(islice(found, len(own))), search) for text, own in zip(texts, lines, strict=True)]


def joined(text: str, lines: Sequence[Translation], search: Search) -> Translation:
    """Lines as one translation, with the line ends and indents they had; alternatives are those of all lines."""
    if not lines:
        return Translation(text, text, 0.0, (), search=search)
    depth = max(len(line.alternatives) for line in lines)
    ranked = [[line, *line.alternatives] for line in lines]
    every = [whole(text, [own[min(rank, len(own) - 1)] for own in ranked], search) for rank in range(depth + 1)]
    return replace(every[0], alternatives=tuple(distinct(every[1:], every[0].text)))


def whole(text: str, lines: Sequence[Translation], search: Search) -> Translation:
    """Translations of lines, one after the other."""
    parts = tuple(part for line in lines for part in line.parts)
    written = "".join(framed(line.source, line.text) for line in lines)
    return replace(lines[0], source=text, text=written, score=combined_score(parts, search.length_penalty), parts=parts)


def framed(line: str, text: str) -> str:
    """What was written, between the white space that was around what was read."""
    body = line.strip()
    if not body:
        return line
    start = line.index(body)
    return f"{line[:start]}{text}{line[start + len(body) :]}"


def distinct(others: Sequence[Translation], best: str) -> list[Translation]:
    """Alternatives that differ in more than how they are spelled in subwords."""
    by_text = {each.text: each for each in reversed(others) if each.text != best}
    return [*by_text.values()][::-1]


def relined(before: Translation, after: Translation) -> Translation:
    """What `what_if` wrote of a text of several lines, in its lines again: it changes no line's number of parts."""
    translator = after.asked()
    lines = before.source.splitlines(keepends=True)
    counts = map(len, translator.readings(lines, before.search))
    parts = iter(after.parts)
    found = [
        translator.translation(line, tuple(islice(parts, count)), before.search)
        for line, count in zip(lines, counts, strict=True)
    ]
    return replace(after, text="".join(framed(line.source, line.text) for line in found))


# --- work -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Translate:
    """Texts in, translations out."""

    model: Model
    search: Search

    def run(self, texts: Sequence[str]) -> list[Translation]:
        """One for each."""
        return translate_texts(self.model.translator, texts, self.search)


def finite(score: float) -> float | None:
    """A number that JSON has."""
    return score if math.isfinite(score) else None


def told(translation: Translation) -> dict[str, Any]:
    """Everything about a translation but where it looked."""
    alternatives = [brief(each) for each in translation.alternatives]
    tokens = {"source": translation.source, "source_tokens": [*translation.source_tokens]}
    return {**brief(translation), **tokens, "alternatives": alternatives, "attention": None}


def brief(translation: Translation) -> dict[str, Any]:
    """What there is of an alternative, too."""
    return {
        "text": translation.text,
        "score": finite(translation.score),
        "log_probability": finite(translation.log_probability),
        "finished": translation.finished,
        "tokens": [*translation.tokens],
    }
