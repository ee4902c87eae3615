"""Models that were run are compared by length, and documents show it; nothing is trained for that."""

import json
import sys

import pytest
import yaml

from bundles import make_bundle
from recipes import lengths, run, tables
from softgaze.evaluation.significance import count_ngrams

SOURCES = [" ".join(["word"] * length) for length in range(4, 16) for _ in range(4)]
REFERENCES = [" ".join(f"wort{number}" for number in range(len(source.split()))) for source in SOURCES]
FORGOTTEN = [text if len(text.split()) < 8 else "wort0 wort1 wort2 und so weiter" for text in REFERENCES]
TRAINING = {"parameters": 1000, "minutes": 1.0}
FOUND = {"training": TRAINING, "date": "2026-01-02", "commit": "0123456789", "machine": "a computer"}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A recipe of two models, and what running it left: one forgets what is long, the other is right."""
    for module, name in ((run, "HERE"), (tables, "HERE"), (tables, "ROOT")):
        monkeypatch.setattr(module, name, tmp_path)
    for name in ("toy", "data", "runs", "docs/pictures"):
        (tmp_path / name).mkdir(parents=True)
    files = {part: [f"{part}.en", f"{part}.de"] for part in ("train", "dev", "test")}
    (tmp_path / "toy/recipe.yaml").write_text(yaml.safe_dump({**files, "models": ["rnn", "rnn-luong"]}))
    for source, target in files.values():
        (tmp_path / "data" / source).write_text("\n".join(SOURCES) + "\n")
        (tmp_path / "data" / target).write_text("\n".join(REFERENCES) + "\n")
    results = {}
    for model, written in (("rnn-luong", REFERENCES), ("rnn", FORGOTTEN)):
        make_bundle(tmp_path / "runs" / model, target_language="de")
        (tmp_path / f"runs/{model}.test.txt").write_text("\n".join(written) + "\n")
        counted = count_ngrams(written, REFERENCES, language="de")
        scores = {score: counted.score(score) for score in ("bleu", "chrf")}
        lower_cased = {"bleu": scores["bleu"], "signature": "case:lc"}
        results[model] = {**FOUND, **scores, "signatures": counted.signatures, "lower_cased": lower_cased}
    (tmp_path / "runs/results.json").write_text(json.dumps(results))
    options = ["toy", "--data", str(tmp_path / "data"), "--out", str(tmp_path / "runs")]
    monkeypatch.setattr(sys, "argv", ["lengths", *options])
    return tmp_path


def test_models_are_compared_with_the_first_and_documents_show_it(place):
    asked = ("results", "lengths", "differences")
    (place / "README.md").write_text("\n".join(f"<!-- {each}: toy -->\n<!-- end of {each} -->\n" for each in asked))
    lengths.main()
    results = json.loads((place / "toy/results.json").read_text())
    first, other = results["rnn"], results["rnn-luong"]
    assert "against" not in first["lengths"]
    [against] = other["lengths"]["against"]
    assert against["name"] == "rnn"
    assert against["difference"]["bleu"]["score"] == pytest.approx(other["bleu"] - first["bleu"], abs=1e-3)
    assert against["difference"]["bleu"]["randomisation_p"] < 0.05
    short, *_, long = (bucket["bleu"] for bucket in against["by_length"])
    assert short["score"] < long["score"]
    assert sum(bucket["sentences"] for bucket in first["lengths"]["by_length"]) == len(SOURCES)
    shown = (place / "README.md").read_text()
    assert shown.index("| `rnn` | 1,000 |") < shown.index("| `rnn-luong` | 1,000 |")
    assert "![BLEU of each model" in shown
    assert "`rnn-luong` − `rnn`" in shown
    assert "rnn-luong" in (place / "docs/pictures/toy-by-length.svg").read_text()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("results.json", "{}", "no results of the baseline, rnn"),
        ("rnn.test.txt", "\n".join(REFERENCES) + "\n", "results.json has"),
        ("rnn.test.txt", "nur eines\n", "1 translations cannot be scored against 48"),
        ("rnn/manifest.json", "{", "manifest.json"),
    ],
)
def test_inconsistent_files_are_one_line_errors(place, name, text, message):
    (place / "runs" / name).write_text(text)
    with pytest.raises(SystemExit, match=message) as stopped:
        lengths.main()
    assert "\n" not in str(stopped.value)
    assert not (place / "toy/results.json").exists()
