"""Texts with placeholders, made at random: `python -m documents.fuzz MODEL 10000 ENGINE` counts the damaged ones."""

import random
import sys

from softgaze.documents.inline import Segment
from softgaze.documents.placeholders import PLACEHOLDERS
from softgaze.documents.translate import SegmentTranslator
from softgaze.search.options import SearchOptions

SAMPLES = """
%s %d %1$s %2$d %.2f %(name)s %(count)d %@ %% %HOME% {name} {0} {} {{name}} ${name} ${a.b} #{x} {n,number}
[X0X] [X12X] <b> </b> <br/> https://example.org/a?b=c&d=1 http://x.y www.example.com/q me@example.org mailto:a.b@c.de
`code()` ``a`b``
""".split()  # noqa: SIM905
SAMPLES += ["{{ user.name }}", "{{ name | upper }}", '<x id="0"/>', '<a href="/x?a=1">', "</a>", "{when, date, short}"]
SAMPLES += ["{count, plural, one {# file} other {# files}}", "{g, select, a {x {b}} other {y}}", "3.5 GB", "20 °C"]
WORDS = """
the dog runs A cat is red in park 100% 50 % 731 7,310 { } < > $ a<b x>y don't 개 \\ & % … ( ) `
""".split()  # noqa: SIM905
PLAIN_WORDS = [*WORDS[:9], "개가", "don't", "…", "(", ")", "-", "731"]
MAX_LENGTH = 40
JOINS = (" ", " ", " ", "", ", ", "-", ".")


def random_text(generator):
    """Return words, placeholders and fragments of both, with or without spaces between them."""
    parts = []
    for _ in range(generator.randint(1, 9)):
        part = generator.choice(SAMPLES if generator.random() < 0.45 else WORDS)
        if generator.random() < 0.1:
            start = generator.randrange(len(part) or 1)
            part = part[start : start + generator.randint(1, 6)]
        parts += [part, generator.choice(JOINS)]
    return "".join(parts)


def known_text(generator):
    """Return a text with placeholders apart from each other, and these placeholders."""
    chosen = generator.choices(SAMPLES, k=generator.randint(1, 4))
    words = [generator.choice(PLAIN_WORDS) for _ in range(generator.randint(1, 8))]
    parts = [(part + generator.choice(("", "", ",", "!")) if part[-1].isalnum() else part) for part in words]
    for placeholder in chosen:
        parts.insert(generator.randint(0, len(parts)), placeholder)
    return " ".join(parts), chosen


def is_intact(text, placeholders):
    """Return whether a text has each placeholder exactly as often as it was written, longest first."""
    for placeholder in sorted(set(placeholders), key=len, reverse=True):
        if text.count(placeholder) != placeholders.count(placeholder):
            return False
        text = text.replace(placeholder, "\0")
    return True


def translated(translator, texts, batch=500):
    job = SegmentTranslator(translator, SearchOptions(beam_size=1, max_length=MAX_LENGTH))
    for start in range(0, len(texts), batch):
        own = texts[start : start + batch]
        yield from (best for best, *_ in job.translate([Segment(text, text) for text in own]))


def count_damaged(translator, number, seed=0):
    """Return the texts that lost or gained a placeholder, and how many were translated at all.

    Half of the texts have known placeholders; the others are fragments, whose placeholders are those that are found.
    """
    generator = random.Random(seed)
    known = [known_text(generator) for _ in range(number // 2)]
    texts = [text for text, _ in known] + [random_text(generator) for _ in range(number - len(known))]
    damaged, changed = [], 0
    for index, (text, best) in enumerate(zip(texts, translated(translator, texts), strict=True)):
        changed += best != text
        found = PLACEHOLDERS.values(best) == PLACEHOLDERS.values(text)
        if not (is_intact(best, known[index][1]) if index < len(known) else found):
            damaged.append((text, best))
    return damaged, changed


def main():
    from softgaze.translator import load

    engine = sys.argv[3] if len(sys.argv) > 3 else "auto"
    damaged, changed = count_damaged(load(sys.argv[1], engine=engine), int(sys.argv[2]))
    print(f"{sys.argv[2]} texts, {changed} changed by the translation, {len(damaged)} damaged ({engine})")
    for text, best in damaged[:20]:
        print(repr(text), "->", repr(best))


if __name__ == "__main__":
    main()
