"""Describe an attention map in one sentence and its numbers in words.

Words are taken without their attached punctuation, as in alignments, so a weight given here may differ from that of the
cell in the map. The page computes the same sentence in `assets/attention.js`: change both together.
"""

import math
from collections.abc import Sequence

from softgaze.explain.attention_map import Attention, group_tokens
from softgaze.explain.recording import Matrix
from softgaze.explain.word_spans import ATTACHED, Label, TokenizedText

UNUSED = 0.1  # a source word with a smaller sum of weights over all output words was not used
MAX_LISTED = 3  # strongest words listed

# Meaning of a rank correlation, from the best down.
FAITHFULNESS = (
    (0.6, "the most attended words are mostly those that mattered"),
    (0.3, "the most attended words are partly those that mattered"),
    (0.1, "attention says little about what mattered"),
    (-1.0, "attention does not show what mattered"),
)


def summarize(attention: Attention) -> str:
    """Return, for example, `학교에 ← school 0.83, 갔어요 ← went 0.71; 1 source word unused: very`."""
    weights = _core_weights(attention)
    links = [(row, int(weights[row].argmax())) for row in _word_rows(attention) if weights[row].any()]
    strongest = sorted(sorted(links, key=lambda link: -weights[link])[:MAX_LISTED])
    listed = [
        f"{attention.target[row]} ← {attention.source[column]} {weights[row, column]:.2f}" for row, column in strongest
    ]
    noun = "cell" if attention.grid else "word" if attention.view.unit == "words" else "subword"
    if attention.view.kind != "decoder" and not attention.grid:
        noun = f"source {noun}"
    names = [attention.source[column] for column in unused_columns(attention)]
    unused = f"{len(names)} {noun}{'s' if len(names) > 1 else ''} unused: {list_words(names)}"
    return f"{', '.join(listed) or 'no word attends to anything'}; {unused if names else f'every {noun} was used'}"


def unused_columns(attention: Attention) -> list[int]:
    """Return the columns of words whose weights sum to less than `UNUSED` over the output words."""
    coverage = _core_weights(attention)[_word_rows(attention)].sum(axis=0)
    return [
        column
        for column, label in enumerate(attention.column_labels)
        if label.word is not None and coverage[column] < UNUSED
    ]


def _word_rows(attention: Attention) -> list[int]:
    return [row for row, label in enumerate(attention.row_labels) if label.word is not None]


def _core_weights(attention: Attention) -> Matrix:
    """Return (T, S) as shown, but words without their attached punctuation."""
    if attention.view.unit == "subwords":
        return attention.weights

    def labels(text: TokenizedText) -> list[Label]:
        core_of = text.core_of
        return [
            label._replace(positions=tuple(token for token in label.positions if core_of[token] != ATTACHED))
            for label in text.word_labels()
        ]

    rows, columns = attention.to_row_labels(labels(attention.query_text)), labels(attention.key_text)
    return group_tokens(attention.recording.map(attention.view), rows, columns)


def list_words(words: Sequence[str]) -> str:
    """Join the first words and count the rest; not with commas, which words may end in."""
    limit = 2 * MAX_LISTED
    more = [f"and {len(words) - limit} more"] if len(words) > limit else []
    return " · ".join([*words[:limit], *more])


def describe_faithfulness(value: float) -> str:
    """Return a rank correlation with its meaning."""
    if math.isnan(value):
        return "unknown: the sentence is too short to rank its words"
    return f"{value:.2f}: {next(words for least, words in FAITHFULNESS if value >= least)}"


def describe_entropy(attention: Attention) -> str:
    """Return the mean entropy with its range."""
    columns = len(attention.source)
    values = attention.entropy()
    mean = float(values.mean()) if len(values) else 0.0
    return f"{mean:.2f} nats on average (0: one column, {math.log(max(columns, 1)):.2f}: uniform over {columns})"


def describe_coverage(attention: Attention) -> str:
    labels, coverage = attention.column_labels, attention.coverage()
    columns = sorted((i for i, label in enumerate(labels) if label.word is not None), key=coverage.__getitem__)
    if not columns:
        return "no words to cover"
    least, most = (f"{labels[column].text} {coverage[column]:.2f}" for column in (columns[0], columns[-1]))
    return f"from {least} to {most} (each {'source' if attention.view.kind == 'encoder' else 'output'} word gives 1)"


def describe_sink(attention: Attention) -> str:
    return f"{100 * attention.sink:.0f} % of the attention is on BOS and EOS"
