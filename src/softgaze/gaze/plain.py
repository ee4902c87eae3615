"""What a map says, in one plain sentence: which word looked at which, and what of the source nobody used.

Words are taken without the punctuation attached to them, as links are: that the full stop of "쉬어요." looks at that of
"home." says nothing of the verb. So a weight said here may differ from that of its cell in the map.

The page says the same in the same words (`assets/page.js`); a rule that changes here changes there.
"""

import math
from collections.abc import Sequence

from softgaze.gaze.attention import Attention, gathered
from softgaze.gaze.recording import Matrix
from softgaze.gaze.words import ATTACHED, Label, Side

UNUSED = 0.1  # a source word to which all output words together gave less was not used
SHOWN = 3  # words named before the rest is only counted

# What a rank correlation means, from the best down.
HONESTY = (
    (0.6, "what it looked at most is mostly what mattered"),
    (0.3, "what it looked at most is partly what mattered"),
    (0.1, "what it looked at says little about what mattered"),
    (-1.0, "where it looked does not show what mattered"),
)


def plain(attention: Attention) -> str:
    """`학교에 ← school 0.83, 갔어요 ← went 0.71; 1 source word unused: very`."""
    return "; ".join([strongest(attention), unused(attention)])


def strongest(attention: Attention) -> str:
    """The looks that are surest, in the order of the output."""
    words, rest = chosen_rows(attention), meant(attention)
    looks = [(row, int(rest[row].argmax())) for row in words if rest[row].any()]
    surest = sorted(sorted(looks, key=lambda look: -rest[look])[:SHOWN])
    links = [f"{attention.target[row]} ← {attention.source[column]} {rest[row, column]:.2f}" for row, column in surest]
    return ", ".join(links) or "no word looked at anything"


def chosen_rows(attention: Attention) -> list[int]:
    """Rows of words, not of marks."""
    return [row for row, label in enumerate(attention.row_labels) if label.word is not None]


def meant(attention: Attention) -> Matrix:
    """(T, S) as shown, but words are without the punctuation attached to them."""
    if attention.view.unit == "subwords":
        return attention.weights
    rows, columns = attention.row_side, attention.column_side
    return gathered(attention.recording.map(attention.view), attention.as_rows(bare(rows)), bare(columns))


def bare(side: Side) -> list[Label]:
    """Words and marks, with the pieces that say what a word means."""
    kept = [core != ATTACHED for core in side.core_of]
    return [each._replace(places=tuple(filter(kept.__getitem__, each.places))) for each in side.whole_words()]


def unused(attention: Attention) -> str:
    """Which columns hardly anything was looked at."""
    noun = "cell" if attention.grid else "word" if attention.view.unit == "words" else "subword"
    names = [attention.source[column] for column in unused_columns(attention)]
    owner = "" if attention.view.kind == "decoder" or attention.grid else "source "
    if not names:
        return f"every {owner}{noun} was used"
    return f"{len(names)} {owner}{noun}{'s' if len(names) > 1 else ''} unused: {listed(names)}"


def unused_columns(attention: Attention) -> list[int]:
    """Columns of words that all rows together gave less than `UNUSED`."""
    labels, given = attention.column_labels, meant(attention)[chosen_rows(attention)].sum(axis=0)
    return [column for column, label in enumerate(labels) if label.word is not None and given[column] < UNUSED]


def listed(names: Sequence[str], shown: int = 2 * SHOWN) -> str:
    """The first names, and how many more there are; not with commas between, since words may end in one."""
    more = [f"and {len(names) - shown} more"] if len(names) > shown else []
    return " · ".join([*names[:shown], *more])


def honesty_in_words(value: float) -> str:
    """A rank correlation, with what it means."""
    if math.isnan(value):
        return "unknown: there is nothing to rank in so short a sentence"
    return f"{value:.2f}: {next(words for least, words in HONESTY if value >= least)}"


def entropy_in_words(attention: Attention) -> str:
    """How much the looks are spread."""
    most = math.log(max(len(attention.source), 1))
    values = attention.entropy()
    mean = float(values.mean()) if len(values) else 0.0
    return f"{mean:.2f} nats in the mean (0 looks at one thing, {most:.2f} at all {len(attention.source)} alike)"


def coverage_in_words(attention: Attention) -> str:
    """The least and the most used of what was looked at."""
    labels, given = attention.column_labels, attention.coverage()
    columns = sorted((column for column, label in enumerate(labels) if label.word is not None), key=given.__getitem__)
    if not columns:
        return "no words to look at"
    least, most = (f"{labels[column].text} {given[column]:.2f}" for column in (columns[0], columns[-1]))
    giver = "source" if attention.view.kind == "encoder" else "output"
    return f"from {least} to {most} (1 is as much as one {giver} word has to give)"


def sink_in_words(attention: Attention) -> str:
    """What goes to marks."""
    return f"{100 * attention.sink:.0f} % of the looks go to marks (the end of the sentence): to nothing in particular"
