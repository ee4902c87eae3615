"""CTranslate2 called directly, without softgaze: lines of pieces from a file to a file.

Like `clocked.py` it prints on stderr when the model was loaded and when the last line was written.
"""

import json
import sys
import time

import ctranslate2


def main(model: str, source: str, target: str, threads: str, beam: str, batch: str, unit: str) -> None:
    """Translate all lines in one call: CTranslate2 sorts them by length and distributes them to its workers."""
    translator = ctranslate2.Translator(model, inter_threads=int(threads), intra_threads=1)
    loaded = time.monotonic()
    with open(source, encoding="utf-8") as file:
        pieces = [line.split() for line in file]
    found = translator.translate_batch(pieces, beam_size=int(beam), max_batch_size=int(batch), batch_type=unit)
    with open(target, "w", encoding="utf-8") as file:
        file.writelines(" ".join(each.hypotheses[0]) + "\n" for each in found)
    print(json.dumps({"loaded": loaded, "done": time.monotonic()}), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
