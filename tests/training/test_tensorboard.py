"""TensorBoard's own reader finds what was written."""

import sys

import pytest

from softgaze.errors import ResourceError
from softgaze.training.listeners import Update, Validation
from softgaze.training.run import RunDirectory
from softgaze.training.tensorboard import Events


@pytest.fixture
def read():
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

    def scalars(directory):
        found = accumulator.EventAccumulator(str(directory)).Reload()
        return {
            tag: [(event.step, pytest.approx(event.value, rel=1e-6)) for event in found.Scalars(tag)]
            for tag in found.Tags()["scalars"]
        }

    return scalars


def tell(directory, first, last):
    """Updates, and a validation at the end."""
    events = Events(directory)
    for step in range(first, last + 1):
        events.updated(Update(step, 0, 5.0 / step, 10, 1e-3 * step, 1.0 * step), None)
    events.validated(Validation(last, 0, 9.0, 2.5, 30.0, 40.0, (("a", "b", "c"),), True))
    events.close()


def test_what_is_written_is_read_back(tmp_path, read):
    tell(tmp_path / "events", 1, 3)
    assert read(tmp_path / "events") == {
        "train/loss": [(1, 5.0), (2, 2.5), (3, 5 / 3)],
        "train/learning_rate": [(1, 1e-3), (2, 2e-3), (3, 3e-3)],
        "dev/loss": [(3, 2.5)],
        "dev/bleu": [(3, 30.0)],
        "dev/chrf": [(3, 40.0)],
    }


def test_what_a_resume_repeats_is_shown_once(tmp_path, read):
    tell(tmp_path / "events", 1, 4)
    tell(tmp_path / "events", 3, 6)
    found = read(tmp_path / "events")
    assert [step for step, _ in found["train/loss"]] == [1, 2, 3, 4, 5, 6]
    assert found["dev/bleu"] == [(6, 30.0)]


def test_a_new_run_is_still_new(tmp_path):
    """The run is made after its listeners: nothing may lie in it before the first event."""
    pytest.importorskip("tensorboard")
    events = Events(tmp_path / "run" / "tensorboard")
    RunDirectory(tmp_path / "run").check()
    events.close()
    assert not (tmp_path / "run").exists()


def test_without_the_extra_one_line_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ResourceError, match=r"pip install 'softgaze\[tensorboard\]'"):
        Events(tmp_path)
