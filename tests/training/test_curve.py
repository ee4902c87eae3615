"""The curve of a run: a picture of what the journal holds, with round numbers on its axes."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

from softgaze.training.curve import write_curve


def journal(path, validations=3):
    updates = [{"kind": "update", "step": step, "elapsed": 10.0 * step, "loss": 5 / step} for step in range(1, 7)]
    looks = [
        {"kind": "validation", "step": 2 * step, "elapsed": 20.0 * step, "loss": 1.0, "bleu": 9.0 * step, "chrf": 9.5}
        for step in range(1, validations + 1)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in updates + looks))


def test_the_picture_has_every_curve_and_its_last_value(tmp_path):
    journal(tmp_path / "metrics.jsonl")
    write_curve(tmp_path / "metrics.jsonl", tmp_path / "curve.svg")
    picture = ElementTree.parse(tmp_path / "curve.svg").getroot()
    words = [element.text for element in picture.iter() if element.text]
    for label in ("training loss 0.833", "dev loss 1", "dev BLEU 27", "dev chrF 9.5", "minutes of training"):
        assert label in words
    lines = [element for element in picture.iter() if element.tag.endswith("polyline")]
    assert len(lines) == 4


@pytest.mark.parametrize("validations", [1, 2])
def test_short_runs_have_pictures_too(tmp_path, validations):
    journal(tmp_path / "metrics.jsonl", validations)
    write_curve(tmp_path / "metrics.jsonl", tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").exists()


def test_nothing_to_draw_is_no_file(tmp_path):
    write_curve(tmp_path / "missing.jsonl", tmp_path / "curve.svg")
    assert not (tmp_path / "curve.svg").exists()
