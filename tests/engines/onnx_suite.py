"""The tests of ONNX Runtime, which `test_onnx.py` runs in a process without CTranslate2: together they never end."""

import numpy
import pytest

from bundles import lines
from engines.exported import exported, lively_bundle, trained_bundle
from engines.suite import PARTS, TEXTS, EngineSuite, told
from softgaze.attention import SCORES, WINDOWS
from softgaze.bundle import Bundle
from softgaze.engines.onnx import OnnxEngine
from softgaze.errors import DataError, ResourceError, UsageError
from softgaze.gaze import Choice, View
from softgaze.search.settings import Sampling
from softgaze.translator import load

TOLD = Choice(View(layer=0, head=0, rows="reading"), 0.5, "a coin", 3)
VARIANTS = {
    "luong": ("rnn-luong", {}),
    "luong that feeds itself": ("rnn-luong", {"input_feeding": True, "shortcut": True}),
    "luong, lstm, two layers": ("rnn-luong", {"cell": "lstm", "layers": 2, "input_feeding": True}),
    "bahdanau": ("rnn-bahdanau", {"shortcut": True}),
    "bahdanau, lstm, three layers": ("rnn-bahdanau", {"cell": "lstm", "layers": 3}),
    "bahdanau, two layers": ("rnn-bahdanau", {"layers": 2, "tie": "none"}),
    "without attention": ("rnn", {}),
    "without attention, lstm, two layers": ("rnn", {"cell": "lstm", "layers": 2}),
    **{f"luong, {score}": ("rnn-luong", {"score": score}) for score in SCORES},
    **{f"luong, {window}": ("rnn-luong", {"window": window, "reach": 2}) for window in WINDOWS},
    "bahdanau, local-p": ("rnn-bahdanau", {"window": "local-p", "reach": 3}),
}


def both(folder, arch, options):
    """The translators of a model and of its export."""
    source = lively_bundle(folder / "trained", arch=arch, options={"width": 16, **options})
    return load(source, "cpu"), load(exported(source, folder / "made", "onnx", told=TOLD), "cpu")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    source = trained_bundle("rnn-luong")
    made = exported(source, tmp_path_factory.mktemp("models") / "made", "onnx", told=TOLD)
    return load(source, "cpu"), load(made, "cpu")


class TestOnnx(EngineSuite):
    @pytest.fixture
    def torch(self, models):
        return models[0]

    @pytest.fixture
    def engine(self, models):
        return models[1]

    def test_what_only_torch_can_do_is_refused_in_one_line(self, engine):
        found = engine.translate("the dog runs.")
        for ask in (lambda: found.what_if(mask="dog"), lambda: found.beam):
            with pytest.raises(UsageError, match="the model it was made from"):
                ask()

    def test_the_same_seed_draws_the_same_text_as_torch(self, torch, engine):
        for drawn in (Sampling(seed=1), Sampling(temperature=0.7, top_k=9, top_p=0.8, seed=2)):
            ours, theirs = (each.translate(TEXTS, nbest=3, sampling=drawn) for each in (torch, engine))
            assert [told(each) for each in theirs] == [told(each) for each in ours]


@pytest.mark.parametrize(("arch", "options"), VARIANTS.values(), ids=VARIANTS)
def test_every_rnn_is_the_same_there(tmp_path, arch, options):
    """Log-probabilities, what a beam finds, and all there is to see."""
    torch, engine = both(tmp_path, arch, options)
    for one, other in zip(torch.engine.log_probabilities(PARTS), engine.engine.log_probabilities(PARTS), strict=True):
        numpy.testing.assert_allclose(one, other, atol=1e-4)
    texts = lines("en", 4)
    found = zip(torch.translate(texts, beam=3, nbest=3), engine.translate(texts, beam=3, nbest=3), strict=True)
    assert all(told(one) == told(other) for one, other in found)
    for one, other in zip(torch.engine.record(PARTS), engine.engine.record(PARTS), strict=True):
        assert (one.cross is None) == (other.cross is None) == (arch == "rnn")
        if one.cross is not None:
            numpy.testing.assert_allclose(one.cross.weights, other.cross.weights, atol=1e-5)
            numpy.testing.assert_allclose(one.cross.norms, other.cross.norms, atol=1e-4)


def test_what_is_no_rnn_is_refused_by_name(tmp_path):
    source = lively_bundle(tmp_path / "trained")
    with pytest.raises(UsageError, match="arch transformer is not exported to onnx"):
        exported(source, tmp_path / "made", "onnx")


def test_a_device_it_does_not_have_is_refused(models):
    with pytest.raises(UsageError, match="device cuda is not available to ONNX Runtime"):
        OnnxEngine.open(models[1].bundle, "cuda")


def test_ctranslate2_in_the_same_process_is_refused(models, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ctranslate2", object())
    with pytest.raises(ResourceError, match="do not share a process"):
        OnnxEngine.open(models[1].bundle)


def test_a_graph_that_cannot_be_loaded_is_named(models, tmp_path):
    made = exported(models[0].bundle.path, tmp_path / "made", "onnx", told=TOLD)
    (made / "onnx" / "step.onnx").write_bytes(b"no graph")
    bundle = Bundle.open(models[1].bundle.path)
    object.__setattr__(bundle, "path", made)
    with pytest.raises(DataError, match=r"step\.onnx: ONNX Runtime cannot load it: "):
        OnnxEngine.open(bundle)
