"""Recognise spoken digits: synthesise them with several voices, train, and test on voices never heard.

    python -m recipes.audio_digits --out runs/audio-digits

Needs espeak-ng (Debian: apt-get install espeak-ng) and softgaze[audio]. Every utterance has two to five digits, a
random speed and pitch, and noise of 5 to 30 dB below the voice. The report has the character error rate on held-out
voices, and how often the attention moves forward from one word to the next. `attention.html` shows one utterance.
"""

import argparse
import json
import random
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from recipes.run import HERE, circumstances, softgaze

DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
VOICES = {
    "train": "en-us en-gb en-gb-scotland en-us+m1 en-us+m3 en-us+m7 en-gb+f1 en-us+f3 en-gb+m5 en-us+f5",
    "dev": "en-gb-x-rp+m2 en-us+f2",
    "test": "en-us+m4 en-gb+f4 en-gb-scotland+m6",
}
COUNTS = {"train": 2400, "dev": 120, "test": 240}
RATE = 16_000  # hertz


def synthesise(text: str, voice: str, rng: random.Random) -> np.ndarray:
    """Return the samples of a text, with a random speed, pitch and noise."""
    import soundfile

    speed, pitch = rng.randint(120, 210), rng.randint(25, 75)
    command = ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "--stdout", text]
    try:
        done = subprocess.run(command, capture_output=True, check=True)
    except FileNotFoundError:
        sys.exit("espeak-ng is not installed; on Debian: apt-get install espeak-ng")
    samples, rate = soundfile.read(BytesIO(done.stdout))
    positions = np.arange(0, len(samples) - 1, rate / RATE)
    samples = np.interp(positions, np.arange(len(samples)), samples)
    level = np.sqrt((samples**2).mean()) * 10 ** (-rng.uniform(5, 30) / 20)
    noise = np.random.default_rng(rng.getrandbits(32)).normal(0, level, len(samples))
    return np.asarray(np.clip(samples + noise, -1, 1))


def write_sounds(out: Path, counts: dict[str, int]) -> None:
    """Write the sounds and a caption file for each part."""
    import soundfile

    (out / "sounds").mkdir(parents=True, exist_ok=True)
    for part, count in counts.items():
        path = out / f"{part}.en.tsv"
        if path.exists():
            continue
        rng, lines, voices = random.Random(part), [], VOICES[part].split()
        for number in range(count):
            text = " ".join(rng.choice(DIGITS) for _ in range(rng.randint(2, 5)))
            samples = synthesise(text, voices[number % len(voices)], rng)
            soundfile.write(out / "sounds" / f"{part}-{number:04d}.wav", samples, RATE, subtype="PCM_16")
            lines.append(f"{part}-{number:04d}.wav\t{text}\n")
        path.write_text("".join(lines), encoding="utf-8")


def edits(one: str, other: str) -> int:
    """Return the number of inserted, deleted and replaced characters."""
    before = list(range(len(other) + 1))
    for row, character in enumerate(one, 1):
        current = [row]
        for column, expected in enumerate(other, 1):
            current.append(min(before[column] + 1, current[-1] + 1, before[column - 1] + (character != expected)))
        before = current
    return before[-1]


def error_rate(outputs: list[str], references: list[str]) -> float:
    """Return the character error rate in per cent."""
    return 100 * sum(map(edits, outputs, references)) / sum(map(len, references))


def forward_share(attentions: list[Any]) -> dict[str, float | None]:
    """Return how often the centre of attention moves forward between words, and its rank correlation with time.

    Both are None if no transcription has two words.
    """
    steps, correlations = [], []
    for attention in attentions:
        weights = attention.words().word_weights()
        centers = weights @ np.arange(weights.shape[1]) / np.maximum(weights.sum(1), 1e-9)
        steps += (np.diff(centers) > 0).tolist()
        if len(centers) > 1:
            ranks = centers.argsort().argsort()
            correlations.append(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])
    if not steps:
        return {"forward_steps": None, "rank_correlation": None}
    return {
        "forward_steps": round(float(np.mean(steps)), 3),
        "rank_correlation": round(float(np.mean(correlations)), 3),
    }


def main() -> None:
    """Make the sounds, train and score."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the utterances to make")
    parser.add_argument("--minutes", type=float, help="training time; default: that of the recipe")
    arguments = parser.parse_args()
    out = arguments.out
    write_sounds(out, {part: max(3, round(count * arguments.scale)) for part, count in COUNTS.items()})
    config = HERE / "audio-digits/digits.yaml"
    limit = ("--minutes", str(arguments.minutes)) if arguments.minutes else ()
    data = ("--features", str(out / "sounds"), "--captions", str(out / "train.en.tsv"))
    dev = ("--dev", str(out / "sounds"), str(out / "dev.en.tsv"))
    softgaze("train", "--config", str(config), *data, *dev, *limit, "--out", str(out / "model"))

    from softgaze.translator import load

    rows = [line.split("\t") for line in (out / "test.en.tsv").read_text(encoding="utf-8").splitlines()]
    translator = load(out / "model", "cpu", engine="torch")
    files = [str(out / "sounds" / name) for name, _ in rows]
    translations = translator.translate(files, beam_size=5)
    outputs, references = [each.text for each in translations], [text for _, text in rows]
    attentions = [each for each in translator.attentions(translations) if each is not None]
    attentions[0].to_html(out / "attention.html", title=references[0])
    facts = json.loads((out / "model/manifest.json").read_text(encoding="utf-8"))["facts"]
    result = {
        "test_utterances": len(rows),
        "held_out_voices": VOICES["test"].split(),
        "character_error_rate": round(error_rate(outputs, references), 2),
        "exact": round(100 * float(np.mean([a == b for a, b in zip(outputs, references, strict=True)])), 1),
        "attention": forward_share(attentions),
        "training": {key: facts[key] for key in ("minutes", "step", "parameters", "pairs", "seed", "dev")},
        **circumstances(),
    }
    (out / "results.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
