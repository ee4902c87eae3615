"""The tests of ONNX Runtime, which `test_onnx.py` runs in a process without CTranslate2: together they never end."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from bundles import lines
from commands import run
from engines.exported import TOLD_BY_RNN, exported, lively_bundle, trained_bundle
from engines.suite import PARTS, TEXTS, EngineSuite, told
from softgaze.bundle import Bundle
from softgaze.engines.onnx_engine import OnnxEngine
from softgaze.errors import DataError, ResourceError, UsageError
from softgaze.scores import SCORES, WINDOWS
from softgaze.translator import load

RECURRENT = {"feed_forward_width": 24, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "decoder_self": "ssru"}
BIAS = {"output_bias": True, "embedding_norm": True, "norm_eps": 1e-9, "tie": "output", "scale_embeddings": False}
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
    "ssru": ("transformer", RECURRENT),
    "ssru, rotary, swiglu": ("transformer", {**RECURRENT, "positions": "rotary", "feed_forward": "swiglu"}),
    "ssru, post-norm, learned, gelu, bias": (
        "transformer",
        {**RECURRENT, "residual": "post", "positions": "learned", "max_length": 60, "feed_forward": "gelu", **BIAS},
    ),
    "ssru, no positions, silu": ("transformer", {**RECURRENT, "positions": "none", "feed_forward": "silu", **BIAS}),
}


def both(folder, arch, options):
    """The translators of a model and of its export."""
    source = lively_bundle(folder / "trained", arch=arch, options={"width": 16, **options})
    return load(source, "cpu", engine="torch"), load(exported(source, folder / "made", "onnx", told=TOLD_BY_RNN), "cpu")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    source = trained_bundle("rnn-luong")
    made = exported(source, tmp_path_factory.mktemp("models") / "made", "onnx", told=TOLD_BY_RNN)
    return load(source, "cpu", engine="torch"), load(made, "cpu")


class TestOnnx(EngineSuite):
    """With an RNN."""

    def test_what_only_torch_can_do_is_refused_in_one_line(self, engine):
        found = engine.translate("the dog runs.")
        for ask in (lambda: found.what_if(mask="dog"), lambda: found.beam):
            with pytest.raises(UsageError, match="the model it was made from"):
                ask()

    def test_the_same_seed_draws_the_same_text_as_torch(self, torch, engine):
        for sampling in ({"temperature": 1.0, "seed": 1}, {"temperature": 0.7, "top_k": 9, "top_p": 0.8, "seed": 2}):
            ours, theirs = (each.translate(TEXTS, num_hypotheses=3, **sampling) for each in (torch, engine))
            assert [told(each) for each in theirs] == [told(each) for each in ours]


@pytest.mark.parametrize(("arch", "options"), VARIANTS.values(), ids=VARIANTS)
def test_every_recurrent_model_is_the_same_there(tmp_path, arch, options):
    """Log-probabilities, what a beam finds, and all there is to see."""
    torch, engine = both(tmp_path, arch, options)
    for one, other in zip(torch.engine.log_probs(PARTS), engine.engine.log_probs(PARTS), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    texts = lines("en", 4)
    found = zip(
        torch.translate(texts, beam_size=3, num_hypotheses=3),
        engine.translate(texts, beam_size=3, num_hypotheses=3),
        strict=True,
    )
    assert all(told(one) == told(other) for one, other in found)
    for one, other in zip(torch.engine.record(PARTS), engine.engine.record(PARTS), strict=True):
        assert (one.cross is None) == (other.cross is None) == (arch == "rnn")
        if one.cross is not None:
            np.testing.assert_allclose(one.cross.weights, other.cross.weights, atol=1e-5)
            np.testing.assert_allclose(one.cross.norms, other.cross.norms, atol=1e-4)


def test_what_is_no_rnn_is_refused_by_name(tmp_path):
    source = lively_bundle(tmp_path / "trained")
    with pytest.raises(UsageError, match=r"arch transformer cannot be exported to onnx; .* to ctranslate2"):
        exported(source, tmp_path / "made", "onnx")


def test_a_device_it_does_not_have_is_refused(models):
    with pytest.raises(UsageError, match="device cuda is not available to ONNX Runtime"):
        OnnxEngine.open(models[1].bundle, "cuda")


def test_ctranslate2_in_the_same_process_is_refused(models, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", object())
    with pytest.raises(ResourceError, match="cannot share a process"):
        OnnxEngine.open(models[1].bundle)


def test_a_graph_that_cannot_be_loaded_is_named(models, tmp_path):
    made = exported(models[0].bundle.path, tmp_path / "made", "onnx", told=TOLD_BY_RNN)
    (made / "onnx" / "step.onnx").write_bytes(b"no graph")
    bundle = Bundle.open(models[1].bundle.path)
    object.__setattr__(bundle, "path", made)
    with pytest.raises(DataError, match=r"step\.onnx: ONNX Runtime cannot load it: "):
        OnnxEngine.open(bundle)


def test_what_both_graphs_hold_is_written_once(models, tmp_path):
    """The matrix of a joint vocabulary; and the directory may be moved."""
    embedding = models[0].model.source_embedding.weight.detach().numpy().tobytes()
    made = shutil.copytree(models[1].bundle.path, tmp_path / "elsewhere")
    assert sum(path.read_bytes().count(embedding) for path in (made / "onnx").iterdir()) == 1
    assert load(made, "cpu").translate("the dog runs.").text == models[1].translate("the dog runs.").text


# --- the commands

WITHOUT_TORCH = """
import sys

class Missing:
    def find_spec(self, name, *_):
        if name.split(".")[0] in ("torch", "safetensors", "ctranslate2"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from softgaze.cli import main
main()
"""
COMMANDS = {
    "translate": ("translate", "model", "the dog runs.", "--num-hypotheses", "2", "--json"),
    "align": ("align", "model", "test.en", "test.en", "--json"),
    "explain": ("explain", "model", "the dog runs.", "--json"),
    "info": ("info", "model", "--json"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    (folder / "test.en").write_text("".join(f"{line}\n" for line in lines("en", 20)))
    done = run(folder, "export", trained_bundle("rnn-luong"), "--to", "onnx", "-o", "model", "--dev", *["test.en"] * 2)
    assert done.returncode == 0, done.stderr
    assert "0 of 20 greedy outputs differ" in done.stdout
    return folder


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_an_exported_model_runs_without_torch(place, command):
    told = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *command], cwd=place, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert told.stdout == run(place, *command).stdout


def test_a_model_without_attention_is_exported_too(place):
    done = run(place, "export", trained_bundle("rnn"), "--to", "onnx", "-o", "blind", "--dev", *["test.en"] * 2)
    assert done.returncode == 0, done.stderr
    assert run(place, "translate", "blind", "the dog runs.").returncode == 0


def test_rounded_weights_are_refused(place):
    done = run(place, "export", trained_bundle("rnn"), "--to", "onnx", "--quantize", "int8", "-o", "rounded")
    assert done.returncode == 2
    assert "--quantize int8 is not supported by onnx" in done.stderr


# --- converted by `load`

SEARCHES = ({}, {"beam_size": 1}, {"beam_size": 3, "num_hypotheses": 3, "no_repeat_ngram_size": 2}, {"min_length": 7})


@pytest.mark.parametrize(("arch", "options"), [VARIANTS["luong that feeds itself"], VARIANTS["without attention"]])
def test_a_trained_model_is_converted_once_and_writes_what_torch_writes(tmp_path, arch, options):
    path = lively_bundle(tmp_path / "model", arch=arch, options={"width": 16, **options})
    ours, theirs = load(path, "cpu", engine="torch"), load(path, "cpu")
    assert theirs.engine.name == "onnx"
    for search in SEARCHES:
        assert [*map(told, theirs.translate(TEXTS, **search))] == [*map(told, ours.translate(TEXTS, **search))]
    assert (ours.has_attention, ours.max_positions) == (theirs.has_attention, theirs.max_positions)
    [conversion] = (path / ".engines").iterdir()
    before = conversion.stat().st_mtime_ns
    code = "import sys, softgaze; m = softgaze.load(sys.argv[1], 'cpu'); print(m.translate('the dog runs.').text)"
    program = [sys.executable, "-c", f"{code}; assert not {{'torch', 'onnx'}} & set(sys.modules)", str(path)]
    done = subprocess.run(program, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == ours.translate("the dog runs.").text
    assert [each.stat().st_mtime_ns for each in (path / ".engines").iterdir()] == [before]


def test_a_damaged_conversion_is_made_again(tmp_path):
    path = lively_bundle(tmp_path / "model", arch="rnn-luong", options={"width": 16})
    wanted = told(load(path, "cpu").translate(TEXTS[0]))
    [conversion] = (path / ".engines").iterdir()
    for file in sorted(conversion.iterdir()):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        assert load(path, "cpu").engine.name == "onnx"
        assert told(load(path, "cpu").translate(TEXTS[0])) == wanted


def test_a_transformer_runs_on_torch_where_onnx_runtime_is_loaded(tmp_path, models):
    path = lively_bundle(tmp_path / "model")
    assert load(path, "cpu").engine.name == "torch"
    with pytest.raises(UsageError, match="cannot share a process"):
        load(path, "cpu", engine="ctranslate2")
