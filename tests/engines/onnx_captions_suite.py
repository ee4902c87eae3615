"""The tests of captioners on ONNX Runtime, which `test_onnx.py` runs in a process without CTranslate2."""

import numpy
import pytest
import torch

from engines.exported import TOLD_BY_RNN, exported
from engines.suite import told
from pictures import HEARD, SEEN, make_captioner, write_scenes
from softgaze.bundle import Bundle, save_bundle
from softgaze.gaze.passages import Spoken
from softgaze.search.settings import Sampling
from softgaze.symbols import END
from softgaze.translator import load

VARIANTS = {
    "a CNN and an RNN": (SEEN, "rnn", "cnn"),
    "patches and a Transformer": (SEEN, "transformer", "patches"),
    "frames and an RNN": (HEARD, "rnn", "frames"),
    "frames and a Transformer": (HEARD, "transformer", "frames"),
}
WRITTEN = [(50, 60, END), (31,), (300, 41, 51, 61, 71, 9)]


def stirred(path):
    """Weights that are far from fresh, so that every one of them counts: norms are not 1, biases not 0."""
    bundle = Bundle.open(path)
    model = bundle.model()
    torch.manual_seed(3)
    for each in model.parameters():
        each.data.add_(torch.randn_like(each) * 0.2)
    save_bundle(path, model, bundle.description, bundle.tokenizers, bundle.detector, {})
    return path


def written_sources(folder, reader):
    """Three files that the reader can read; frames are of different lengths."""
    if reader is SEEN:
        return write_scenes(folder)
    paths, dice = [folder / f"{number}.npy" for number in range(3)], numpy.random.default_rng(5)
    for path, size in zip(paths, (9, 1, 14), strict=True):
        numpy.save(path, dice.normal(size=(size, len(reader))).astype("f4"))
    return paths


@pytest.fixture(scope="module", params=VARIANTS.values(), ids=VARIANTS)
def models(request, tmp_path_factory):
    """The translators of a captioner and of its export, and files to caption."""
    reader, decoder, encoder = request.param
    folder = tmp_path_factory.mktemp("captioner")
    source = stirred(make_captioner(folder / "trained", reader, decoder, encoder, layers=2, encoder_layers=2))
    made = exported(source, folder / "made", "onnx", told=TOLD_BY_RNN)
    return load(source, "cpu"), load(made, "cpu"), [str(path) for path in written_sources(folder, reader)]


def parts_of(translator, files):
    """Given captions of files."""
    items = translator.bundle.tokenizers.source.encode(files)
    return [Spoken(read, written) for read, written in zip(items, WRITTEN, strict=True)]


def test_every_captioner_is_the_same_there(models):
    """Log-probabilities, what a beam finds, what is drawn, and every look at the source."""
    trained, made, files = models
    parts = parts_of(trained, files)
    for one, other in zip(trained.engine.log_probabilities(parts), made.engine.log_probabilities(parts), strict=True):
        numpy.testing.assert_allclose(one, other, atol=1e-4)
    for options in ({"beam": 1}, {"beam": 3, "nbest": 3}, {"sampling": Sampling(seed=4), "nbest": 2}):
        pairs = zip(*(each.translate(files, **options, max_length=9) for each in (trained, made)), strict=True)
        for one, other in pairs:
            assert told(one) == told(other)
            assert one.score == pytest.approx(other.score, abs=2e-4)
    for one, other in zip(trained.engine.record(parts), made.engine.record(parts), strict=True):
        numpy.testing.assert_allclose(one.cross.weights, other.cross.weights, atol=1e-5)
        numpy.testing.assert_allclose(one.cross.norms, other.cross.norms, atol=1e-4, rtol=1e-5)


def test_neighbours_change_nothing(models):
    """Frames of other lengths beside it, or none."""
    _, made, files = models
    together = made.translate(files, nbest=2)
    assert [told(made.translate(file, nbest=2)) for file in files] == [told(each) for each in together]
    for one, other in zip(together, made.translate(files, nbest=2, batch_tokens=1), strict=True):
        assert told(one) == told(other)


def test_where_each_word_looked_is_told_without_torch(models):
    trained, made, files = models
    ours, theirs = (each.translate(files[0], max_length=9).attention for each in (trained, made))
    view = made.choice.view
    numpy.testing.assert_allclose(theirs.recording.map(view), ours.recording.map(view), atol=1e-5)
    assert (theirs.grid, theirs.recording.photo) == (ours.grid, ours.recording.photo)
    assert theirs.recording.chances == pytest.approx(ours.recording.chances, abs=1e-4)
