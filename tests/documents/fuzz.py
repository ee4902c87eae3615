"""Texts with placeholders, made at random. `python -m documents.fuzz MODEL 10000` counts the damaged ones."""

import random
import sys
from collections import Counter

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
SAMPLES += ["{count, plural, one {# file} other {# files}}"]
WORDS = """
the dog runs A cat is red in park 100% 50 % 731 7,310 { } < > $ a<b x>y don't 개 \\ & % … ( ) `
""".split()  # noqa: SIM905
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


def count_damaged(translator, number, seed=0, batch=500):
    """Return how many texts have other placeholders after a translation, and how many were translated at all."""
    generator = random.Random(seed)
    texts = [random_text(generator) for _ in range(number)]
    damaged, changed = [], 0
    job = SegmentTranslator(translator, SearchOptions(beam_size=1))
    for start in range(0, number, batch):
        own = texts[start : start + batch]
        for text, [best, *_] in zip(own, job.translate([Segment(text, text) for text in own]), strict=True):
            changed += best != text
            if Counter(PLACEHOLDERS.values(best)) != PLACEHOLDERS.values(text):
                damaged.append((text, best))
    return damaged, changed


def main():
    from softgaze.translator import load

    damaged, changed = count_damaged(load(sys.argv[1]), int(sys.argv[2]))
    print(f"{sys.argv[2]} texts, {changed} changed by the translation, {len(damaged)} damaged")
    for text, best in damaged[:20]:
        print(repr(text), "->", repr(best))


if __name__ == "__main__":
    main()
