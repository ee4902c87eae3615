"""Quality of a parallel corpus: unusual pairs, their lines, and a fixed copy (`softgaze check`).

No model, dictionary or list of languages is needed: all pairs are compared with the corpus itself. The files are read
twice, as a stream. Memory holds about 28 bytes per pair (two hashes to find repetitions, twelve bytes of evidence for
shifts), more while hashes are sorted, and a sample of at most `SAMPLE` pairs.

    rules → misalignment → check → fix
"""

from softgaze.data.quality.check import Example, Finding, QualityReport, check_corpus
from softgaze.data.quality.fix import FixResult, fix_corpus
from softgaze.data.quality.rules import LengthStatistics, Level, SideStatistics

__all__ = [
    "Example",
    "Finding",
    "FixResult",
    "LengthStatistics",
    "Level",
    "QualityReport",
    "SideStatistics",
    "check_corpus",
    "fix_corpus",
]
