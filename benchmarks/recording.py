"""Cost of recording the attention of a translation, compared with translating it and with a forward pass.

`python -m benchmarks.recording` prints a table. Random parameters of the full size, a batch of sentences of 8 to 30
random subwords and outputs of the same lengths; runs take turns, and the table shows medians.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable

WORDS, SENTENCES = 7500, 32
CASES = ("transformer", "rnn-luong", "rnn-bahdanau", "conv")


def measure(arch: str, size: str, rounds: int) -> dict[str, float]:
    """Return the seconds of a forward pass, a recording and a beam search over the same batch."""
    import torch

    from softgaze.engines.torch_engine import TorchDecoder
    from softgaze.explain.recorder import AttentionRecorder
    from softgaze.models import Source, build_model
    from softgaze.search import SearchOptions
    from softgaze.search.beam import beam_search
    from softgaze.special_tokens import BOS, EOS

    torch.manual_seed(1)
    model = build_model(arch, size, source_vocabulary=WORDS).eval()
    sentences = [sentence(number) for number in range(SENTENCES)]
    source, target = (
        Source.of(rows) for rows in ([[*each, EOS] for each in sentences], [[BOS, *each] for each in sentences])
    )
    longest = max(map(len, sentences))
    options = SearchOptions(min_length=longest, max_length=longest)

    def recording() -> None:
        recorder = AttentionRecorder()
        model(source, target.values, recorder)
        for row, each in enumerate(sentences):
            recorder.part(row, len(each) + 1, len(each) + 1)

    runs = {
        "forward": lambda: model(source, target.values),
        "recording": recording,
        "search": lambda: beam_search(TorchDecoder(model, source), options),
    }
    with torch.no_grad():
        return in_turn(runs, rounds)


def sentence(seed: int) -> list[int]:
    dice = random.Random(seed)
    return [dice.randrange(4, WORDS) for _ in range(dice.randint(8, 30))]


def in_turn(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median seconds of each run, after one round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(own[1:]) for name, own in times.items()}


def main() -> None:
    """Measure the cases and print a row for each."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print("| | forward pass, ms | recording, ms | recording / forward | recording / beam search |")
    print("|---|---:|---:|---:|---:|")
    for arch in given.cases:
        found = measure(arch, given.size, given.rounds)
        forward, recording, search = (found[name] for name in ("forward", "recording", "search"))
        ratios = f"{recording / forward:.2f} | {recording / search:.3f}"
        print(f"| {arch} | {forward * 1e3:.0f} | {recording * 1e3:.0f} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
