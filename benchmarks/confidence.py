"""Is the confidence of words calibrated? Reliability on test text that neither training nor the fit has seen.

`python -m benchmarks.confidence NAME MODEL SRC TGT [NAME MODEL SRC TGT …]` writes `confidence.md` and `confidence.svg`.
A word is right if the reference has it where a minimal edit distance aligns both texts.
"""

import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.report import circumstances
from docs.dark import with_dark_colours
from softgaze.data.corpus import read_pairs
from softgaze.evaluation.confidence_metrics import Reliability, reliability_chart
from softgaze.evaluation.tables import Table
from softgaze.explain.confidence import Calibration, label_words
from softgaze.translator import load

HEADER = ["", "sentences", "words", "right", "error, raw", "error, calibrated", "AUC, raw", "AUC, calibrated", "time"]
NOTE = (
    "Right: share of the words that the reference has too. Error: expected calibration error, ten bins. Raw: the "
    "model's probability of the word. Calibrated: the logistic function that training fits on at most 250 held-out "
    "pairs. AUC: probability that a right word has a higher confidence than a wrong one. Time: of the confidence, as a "
    "share of the time to translate; it is spent only if confidence is requested."
)


def measure(model: Path, source: Path, target: Path) -> tuple[Reliability, list[str]]:
    """Return the reliability of a model on a test set, and the cells of its row."""
    translator = load(model)
    sources, references = zip(*read_pairs(source, target), strict=True)
    translator.translate("a")  # loads everything
    start = time.perf_counter()
    translations = translator.translate(list(sources))
    translated = time.perf_counter()
    translator.confidences(translations)
    share = (time.perf_counter() - translated) / (translated - start)
    calibration = Calibration.of_facts(translator.bundle.facts)
    if calibration is None:
        raise SystemExit(f"{model}: is not calibrated")
    features, is_right = label_words(translator, translations, references)
    raw = Reliability.of(np.exp(features[:, 0]), is_right)
    fitted = Reliability.of(calibration.probs(features), is_right, calibration)
    percents = [f"{100 * value:.1f} %" for value in (fitted.right, raw.ece, fitted.ece)]
    areas = [f"{each.auc:.3f}" for each in (raw, fitted)]
    return fitted, [f"{len(sources):,}", f"{fitted.words:,}", *percents, *areas, f"{100 * share:.0f} %"]


def main() -> None:
    arguments = iter(sys.argv[1:])
    results = {}
    while row := list(islice(arguments, 4)):
        name, model, source, target = row
        results[name] = measure(Path(model), Path(source), Path(target))
    folder = Path(__file__).parent
    rows = [[name, *cells] for name, (_, cells) in results.items()]
    text = f"# Confidence of words\n\n{circumstances('confidence')}\n\n{Table('', HEADER, rows, NOTE).markdown()}\n\n"
    (folder / "confidence.md").write_text(f"{text}![Reliability diagram](confidence.svg)\n", encoding="utf-8")
    chart = reliability_chart({name: reliability for name, (reliability, _) in results.items()})
    (folder / "confidence.svg").write_text(with_dark_colours(chart) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
