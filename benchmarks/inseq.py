"""Compare attributions of softgaze with those of Inseq, for the same Marian model and the same sentence pairs.

    python -m benchmarks.marian_model new train.en.gz train.de.gz -o untrained
    softgaze import untrained -o start
    softgaze train --init start --train train.en.gz train.de.gz --dev val.en.gz val.de.gz --steps 2000 -o trained \\
        --set training.learning_rate=2e-3 --set training.warmup=400 --set training.decay=0.3 \\
        --set training.label_smoothing=0.1 --set training.batch_tokens=1024 --set validation.every=400
    python -m benchmarks.marian_model fill untrained trained -o marian
    softgaze import marian -o imported
    python -m benchmarks.inseq pairs imported test.en.gz test.de.gz -o pairs.json
    python -m benchmarks.inseq links train.en.gz train.de.gz test.en.gz test.de.gz -o links.txt
    pip install -c constraints.txt inseq==0.7.1 torch transformers sentencepiece      # in another environment
    python benchmarks/peers/attribute_inseq.py marian pairs.json -o maps.json --methods attention input_x_gradient
    python benchmarks/peers/attribute_inseq.py marian pairs.json -o maps.json --methods integrated_gradients --every 5
    python benchmarks/peers/attribute_inseq.py marian pairs.json -o maps.json --methods occlusion --every 5
    python -m benchmarks.inseq score imported pairs.json maps.json --links links.txt --dev val.en.gz val.de.gz

`pairs` writes the first 50 pairs of 3 to 20 words: 50 references, then 50 greedy translations of the same sources.
`links` writes the links of Eflomal, grow-diag, for the test pairs, which are among the pairs it learns from.
`score` compares links of the references with an alignment file (Pharaoh, from 0, a line for each pair of the test
files), and erases the words that a map names for the greedy translations. Writes `inseq.json` and `inseq.md`.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.aligners import eflomal_links
from benchmarks.report import circumstances
from softgaze.data.corpus import read_lines, read_pairs
from softgaze.evaluation.tables import Table
from softgaze.explain.alignment import Alignment, count_corpus, parse_lines
from softgaze.explain.attention_map import row_column_normalize
from softgaze.explain.attribution import attribute, group, word_positions
from softgaze.explain.erasure import erasure_scores
from softgaze.explain.explanation import tokenized_pair
from softgaze.explain.map_selection import SENTENCE_LENGTHS
from softgaze.explain.recording import Matrix
from softgaze.search.options import SearchOptions
from softgaze.translation import Translation
from softgaze.translator import Translator, load

SENTENCES = 50
HEADER = ["tool", "map", "sentences", "AER", "comprehensiveness", "sufficiency", "CPU seconds per sentence"]
NOTE = (
    "AER: references against the links of Eflomal; each output word is linked to the source word with its "
    "largest score after the same normalisation of rows and columns. Comprehensiveness (higher is better) and "
    "sufficiency (lower is better): as many greedy translations. CPU seconds: one thread."
)


def chosen_lines(sources: Sequence[str], targets: Sequence[str]) -> list[int]:
    fitting = [n for n, pair in enumerate(zip(sources, targets, strict=True)) if all(fits(side) for side in pair)]
    return fitting[:SENTENCES]


def fits(text: str) -> bool:
    return len(text.split()) in SENTENCE_LENGTHS


def write_pairs(model: Path, files: Sequence[Path], output: Path) -> None:
    pairs = list(read_pairs(*files))
    lines = chosen_lines(*zip(*pairs, strict=True))
    translations = load(model, "cpu", engine="torch").translate(
        [pairs[line].source for line in lines], SearchOptions(beam_size=1)
    )
    content = {
        "lines": lines,
        "pairs": [[*pairs[line]] for line in lines] + [[each.source, each.text] for each in translations],
    }
    output.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def write_links(train: Sequence[Path], test: Sequence[Path], output: Path) -> None:
    pairs = list(read_pairs(*test))
    links = eflomal_links([*read_pairs(*train), *pairs], pairs).alignments["Eflomal, grow-diag"]
    output.write_text("".join(f"{each}\n" for each in links), encoding="utf-8")


def word_map(translator: Translator, translation: Translation, tokens: dict[str, Any]) -> Matrix:
    """Return (target words, source words) of a map of tokens, grouped like the attributions of softgaze."""
    pair = tokenized_pair(translator, translation)
    source, target = pair.texts(translator.bundle.tokenizers)
    [words] = word_positions(pair, source, target)
    matrix = np.array(tokens["matrix"])
    rows = matrix[-len(words.target) - 1 : -1]  # without the start token, if it has a row, and EOS
    if rows.shape[0] != len(words.target) or matrix.shape[1] != len(words.source) + 1:
        raise ValueError(
            f"{translation.source!r}: expected {len(words.target)} × {len(words.source)} tokens without EOS, got "
            f"{matrix.shape}: {tokens['source']} {tokens['target']}"
        )
    return group(rows, words.target, words.source, (len(target.words), len(source.words)))


def link_words(weights: Matrix) -> Alignment:
    """Link each output word to its largest weight, as `Attention.alignment` does."""
    normalized = enumerate(row_column_normalize(weights.clip(min=0)))
    return Alignment(frozenset((int(values.argmax()), row) for row, values in normalized if values.any()))


def own_maps(translator: Translator, translations: Sequence[Translation]) -> dict[str, tuple[float, list[Matrix]]]:
    """Return the CPU seconds and the maps of each measure of softgaze."""

    def selected() -> list[Matrix]:
        found = translator.attentions(translations)
        return [each.word_weights() for each in found if each is not None]

    def mean() -> list[Matrix]:
        found = translator.attentions(translations)
        return [each.plain().mean().predicting().word_weights() for each in found if each is not None]

    def attributed(method: str) -> Callable[[], list[Matrix]]:
        return lambda: [attribute(translator, each, method).source for each in translations]

    measures: dict[str, Callable[[], list[Matrix]]] = {
        "attention, selected map": selected,
        "attention, mean of all": mean,
        "gradient × input": attributed("gradient"),
        "norm of gradient × input": attributed("gradient-norm"),
        "L1 contribution": attributed("contribution"),
        "occlusion": attributed("occlusion"),
    }
    results = {}
    for name, compute in measures.items():
        start = time.process_time()
        maps = compute()
        results[name] = time.process_time() - start, maps
    return results


class Maps(NamedTuple):
    """One measure of one tool for every `every`th pair."""

    tool: str
    name: str
    seconds: float  # of the CPU, per sentence
    references: list[Matrix]
    own: list[Matrix]  # of the greedy translations
    every: int = 1

    def subset(self, every: int) -> "Maps":
        return self._replace(references=self.references[::every], own=self.own[::every], every=every)


def score(model: Path, content: dict[str, Any], peer: dict[str, Any], gold: Sequence[Alignment], dev: Any) -> Any:
    translator = load(model, "cpu", engine="torch").with_selected_map(dev)
    translations = [translator.score(*pair) for pair in content["pairs"]]
    references, own = translations[:SENTENCES], translations[SENTENCES:]
    own_maps(translator, references[:1])  # warm-up
    of_references, of_own = own_maps(translator, references), own_maps(translator, own)
    measures = [
        Maps("softgaze", name, seconds / SENTENCES, found, of_own[name][1])
        for name, (seconds, found) in of_references.items()
    ]
    random = np.random.default_rng(0)
    shapes = [[each.shape for each in found] for found in measures[-1][3:5]]
    of_random = [[random.random(each) for each in side] for side in shapes]
    measures.append(Maps("", "random", float("nan"), of_random[0], of_random[1]))
    for name, result in peer.items():
        if name != "versions":
            every = result.get("every", 1)
            found = [word_map(translator, *each) for each in zip(translations[::every], result["maps"], strict=True)]
            seconds, half = result["seconds"] / len(found), len(found) // 2
            measures.append(Maps("Inseq", name.replace("_", " "), seconds, found[:half], found[half:], every))
    full = [each for each in measures if each.every == 1]
    groups = [full]
    for every in sorted({each.every for each in measures} - {1}):
        groups.append([*(each.subset(every) for each in full), *(each for each in measures if each.every == every)])
    rows = [row for group in groups for row in score_group(translator, group, own, gold)]
    selected = translator.selected_map
    return {
        "versions": peer["versions"],
        "selected": selected.describe() if selected else "",
        "links": sum(map(len, gold)),
        "rows": rows,
    }


def score_group(
    translator: Translator, measures: Sequence[Maps], own: Sequence[Translation], gold: Sequence[Alignment]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each of some measures of the same pairs."""
    every = measures[0].every
    erased = erasure_scores(
        translator.scorer,
        translator.bundle.tokenizers,
        [tokenized_pair(translator, each) for each in own[::every]],
        list(zip(*(each.own for each in measures), strict=True)),
    )
    for each, erasure in zip(measures, erased, strict=True):
        aer = count_corpus([link_words(found) for found in each.references], gold[::every]).aer
        yield {
            "tool": each.tool,
            "map": each.name,
            "sentences": len(each.references),
            "aer": round(aer, 4),
            **erasure.to_dict(),
            "seconds": None if np.isnan(each.seconds) else round(each.seconds, 4),
        }


def report(results: Any) -> str:
    cells = [
        [
            row["tool"],
            row["map"],
            f"{row['sentences']}",
            f"{100 * row['aer']:.1f} %",
            f"{row['comprehensiveness']:.3f}",
            f"{row['sufficiency']:.3f}",
            "" if row["seconds"] is None else f"{row['seconds']:.3f}",
        ]
        for row in results["rows"]
    ]
    versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    table = Table("", HEADER, cells, NOTE).markdown()
    sizes = f"{results['links']:,} links; {results['rows'][0]['words']:,} output words. {versions}."
    return f"# Attributions of softgaze and of Inseq\n\n{circumstances('inseq')}\n\n{sizes}\n\n{table}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(required=True, dest="command")
    pairs = commands.add_parser("pairs")
    pairs.add_argument("model", type=Path)
    pairs.add_argument("files", type=Path, nargs=2)
    pairs.add_argument("-o", "--output", type=Path, required=True)
    links = commands.add_parser("links")
    links.add_argument("files", type=Path, nargs=4)
    links.add_argument("-o", "--output", type=Path, required=True)
    scoring = commands.add_parser("score")
    scoring.add_argument("model", type=Path)
    scoring.add_argument("pairs", type=Path)
    scoring.add_argument("maps", type=Path)
    scoring.add_argument("--links", type=Path, required=True)
    scoring.add_argument("--dev", type=Path, nargs=2, required=True)
    given = parser.parse_args()
    if given.command == "pairs":
        write_pairs(given.model, given.files, given.output)
        return
    if given.command == "links":
        write_links(given.files[:2], given.files[2:], given.output)
        return
    content, peer = (json.loads(path.read_text(encoding="utf-8")) for path in (given.pairs, given.maps))
    alignments = parse_lines(list(read_lines(given.links)), 0, str(given.links))
    gold = [alignments[line] for line in content["lines"]]
    results = score(given.model, content, peer, gold, list(read_pairs(*given.dev)))
    folder = Path(__file__).parent
    (folder / "inseq.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    text = report(results)
    print(text)
    (folder / "inseq.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
