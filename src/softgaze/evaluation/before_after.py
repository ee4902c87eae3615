"""The effect of fine-tuning on a test set: scores before and after, p-values, and the sentences that changed most.

The same evaluation is printed, and written to the run directory as JSON and as an offline page.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from softgaze.atomic_io import write_text
from softgaze.evaluation.report import (
    DIGITS,
    INTERVAL,
    MEANINGS,
    NONE,
    Evaluation,
    System,
    difference_cells,
    evaluation_record,
    p_cell,
    score_cell,
)
from softgaze.evaluation.significance import TITLES, count_ngrams
from softgaze.evaluation.tables import Table, escape
from softgaze.explain.render.pages import document
from softgaze.explain.render.text_layout import clean

BEFORE, AFTER = "before", "after"
JSON, PAGE = "before-after.json", "before-after.html"
PRINTED, LISTED = 3, 20  # sentences of each kind on the terminal and on the page
P_MEANING = "the larger p-value of two paired tests, bootstrap (Koehn 2004) and approximate randomisation."


@dataclass(frozen=True)
class SentenceChange:
    """A test sentence whose translation fine-tuning changed; `change` is the gain in chrF."""

    line: int  # from 1
    source: str
    reference: str
    before: str
    after: str
    chrf_before: float
    chrf_after: float

    @property
    def change(self) -> float:
        return self.chrf_after - self.chrf_before


@dataclass(frozen=True)
class BeforeAfter:
    """Two models on one test set."""

    facts: dict[str, Any]  # paths, search, sizes
    evaluation: Evaluation  # the system after fine-tuning, then that before
    changes: tuple[SentenceChange, ...]  # largest gain first

    @property
    def gains(self) -> list[SentenceChange]:
        return [change for change in self.changes if change.change > 0]

    @property
    def losses(self) -> list[SentenceChange]:
        return [change for change in reversed(self.changes) if change.change < 0]

    def to_dict(self) -> dict[str, Any]:
        changes = [{**asdict(change), "change": round(change.change, DIGITS)} for change in self.changes]
        return {**self.facts, **evaluation_record(self.evaluation), "changed_sentences": changes}


def compare_translations(
    pairs: Sequence[tuple[str, str]],
    before: Sequence[str],
    after: Sequence[str],
    *,
    language: str = "",
    facts: dict[str, Any] | None = None,
) -> BeforeAfter:
    """Compare two translations of (source, reference) pairs; `language` is the target language."""
    references = [reference for _, reference in pairs]
    systems = [count_ngrams(texts, references, language=language) for texts in (before, after)]
    chrf = [[one.subset([index]).score("chrf") for index in range(len(pairs))] for one in systems]
    changes = [
        SentenceChange(index + 1, *pair, old, new, round(chrf[0][index], 2), round(chrf[1][index], 2))
        for index, (pair, old, new) in enumerate(zip(pairs, before, after, strict=True))
        if old != new
    ]
    evaluation = Evaluation((System(AFTER, systems[1]), System(BEFORE, systems[0])))
    changes.sort(key=lambda change: (-change.change, change.line))
    return BeforeAfter({"sentences": len(pairs), **(facts or {})}, evaluation, tuple(changes))


def write_before_after(directory: Path, result: BeforeAfter) -> tuple[Path, Path]:
    """Write the JSON and the page into a run directory; return their paths."""
    paths = directory / JSON, directory / PAGE
    write_text(paths[0], json.dumps(result.to_dict(), ensure_ascii=False, indent=2) + "\n")
    write_text(paths[1], before_after_page(result))
    return paths


# --- text and HTML ----------------------------------------------------------------------------------------------


def score_table(result: BeforeAfter) -> Table:
    """Return one row per metric: before, after, difference, p."""
    evaluation = result.evaluation
    [comparison] = evaluation.comparisons
    rows = []
    for metric, title in TITLES.items():
        after, before = evaluation.overall[metric]
        difference = comparison.overall[metric]
        shown, interval, *_ = difference_cells(difference)
        p = p_cell(difference.p) if difference.is_tested else NONE
        rows.append([title, score_cell(before), score_cell(after), shown, interval, p])
    count, changed = result.facts["sentences"], len(result.changes)
    title = f"Test set of {count:,} sentences, {changed:,} translated differently after fine-tuning"
    return Table(title, ["", BEFORE, AFTER, "difference", INTERVAL, "p"], rows, "* both tests below 0.05")


def before_after_text(result: BeforeAfter) -> str:
    """Return the scores and a few sentences for a terminal."""
    blocks = [score_table(result).text()]
    for title, changes in sections(result):
        for change in changes[:PRINTED]:
            blocks.append(f"{title}: line {change.line:,}, chrF {change.chrf_before:.1f} → {change.chrf_after:.1f}")
            blocks[-1] += "".join(f"\n  {name:<10} {clean(text)}" for name, text in texts_of(change))
    return "\n\n".join(blocks)


def sections(result: BeforeAfter) -> list[tuple[str, list[SentenceChange]]]:
    return [("largest gain", result.gains), ("largest loss", result.losses)]


def texts_of(change: SentenceChange) -> list[tuple[str, str]]:
    return [(name, getattr(change, name)) for name in ("source", "reference", BEFORE, AFTER)]


def before_after_page(result: BeforeAfter) -> str:
    """Return the page: scores, the sentences that changed most, and the meaning of the terms."""
    title = "Before and after fine-tuning"
    shown = ((name.replace("_", " "), str(value)) for name, value in result.facts.items())
    facts = " · ".join(f"{escape(name)} <code>{escape(value)}</code>" for name, value in shown)
    signatures = result.evaluation.signatures.items()
    signed = "<br>".join(f"{TITLES[metric]} <code>{escape(value)}</code>" for metric, value in signatures)
    body = [f"<h1>{title}</h1>", f'<p class="faint">{facts}</p>', score_table(result).html()]
    for name, changes in sections(result):
        listed = changes[:LISTED]
        of_all = f" of {len(changes)}" if len(listed) < len(changes) else ""
        counted = f"{len(listed)}{of_all} sentences"
        body.append(f"<h2>{name.capitalize()} in chrF, {counted}</h2>")
        body += map(change_html, listed)
    meanings = {INTERVAL: MEANINGS[INTERVAL], "p": P_MEANING}
    glossary = "".join(f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in meanings.items())
    footer = f'<h2>How to read this</h2><dl class="meanings">{glossary}</dl><p class="faint">{signed}</p>'
    return document(title, "\n".join([*body, f"<footer>{footer}</footer>"]), styles=("evaluation.css",))


def change_html(change: SentenceChange) -> str:
    rows = "".join(f'<tr><th scope="row">{name}</th><td>{escape(text)}</td></tr>' for name, text in texts_of(change))
    scores = f"line {change.line:,} · chrF {change.chrf_before:.1f} → {change.chrf_after:.1f}"
    return f'<p class="faint">{scores}</p><div class="scroll"><table class="texts"><tbody>{rows}</tbody></table></div>'
