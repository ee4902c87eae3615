"""A film: what was written is read again, all frames are seen the same way, and a torn frame is none."""

import subprocess
import sys

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maps import random_attention
from softgaze.errors import DataError
from softgaze.gaze import Choice, View
from softgaze.gaze.attention import sharpest
from softgaze.gaze.film import NAME, Frame, read_film

CHOICE = Choice(View(layer=1, head=0, rows="reading", measure="norms"), 0.5, "influence", 24)


def frame(step):
    scores = {"loss": 9.0 / (step + 1), "bleu": float(step)} if step else {}
    return Frame(step, step / 10, scores, f"개가 \u2028자요 {step}", random_attention(seed=step))


def write(path, frames):
    path.write_text("".join(f"{each.to_line()}\n" for each in frames), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["", NAME])
def test_every_frame_comes_back_in_order(tmp_path, name):
    frames = [frame(step) for step in (0, 4, 8)]
    write(tmp_path / NAME, frames)
    again = read_film(tmp_path / name)
    for one, other in zip(again, frames, strict=True):
        assert (one.step, one.minutes, one.scores, one.text) == (other.step, other.minutes, other.scores, other.text)
        weights = [each.attention.recording.parts[0].cross.weights for each in (one, other)]
        assert numpy.allclose(*weights, atol=1e-4)


@pytest.mark.parametrize("choice", [None, CHOICE])
def test_all_frames_are_seen_the_same_way(tmp_path, choice):
    frames = read_film(write(tmp_path / NAME, [frame(step) for step in range(5)]), choice)
    assert {each.attention.view for each in frames} == {
        choice.view if choice else sharpest(frames[-1].attention.recording)
    }
    assert {each.attention.choice for each in frames} == {choice}


LINES = [f"{frame(step).to_line()}\n".encode() for step in (0, 4)]


@given(kept=st.integers(0, len(LINES[1])))
def test_a_frame_cut_anywhere_is_none(tmp_path_factory, kept):
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    path.write_bytes(LINES[0] + LINES[1][:kept])
    assert [each.step for each in read_film(path)] == ([0, 4] if kept == len(LINES[1]) else [0])


def test_no_frames_are_an_empty_film(tmp_path):
    assert read_film(write(tmp_path / NAME, [])) == []


@pytest.mark.parametrize("content", [None, "{}\n", "no film\n", '{"step": 1, "attention": 3}\n'])
def test_what_is_no_film_is_refused_in_one_line(tmp_path, content):
    if content is not None:
        (tmp_path / NAME).write_text(content)
    with pytest.raises(DataError, match=NAME) as caught:
        read_film(tmp_path)
    assert "\n" not in str(caught.value)


def test_reading_needs_no_torch():
    code = "import sys, softgaze.gaze.film; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
