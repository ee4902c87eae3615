"""The tests of captioners on ONNX Runtime, which `test_onnx.py` runs in a process without CTranslate2."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from albums import write_pictures
from commands import run
from engines.exported import TOLD_BY_RNN, exported
from engines.onnx_suite import WITHOUT_TORCH
from engines.suite import told
from pictures import FEATURES, IMAGES, make_captioner, write_scenes
from serving import serving
from softgaze.bundle import Bundle, save_bundle
from softgaze.data.processors import BackboneProcessor, image_processor_for
from softgaze.engines.onnx_graph.feature_encoders import ENCODERS as GRAPHS
from softgaze.errors import UsageError
from softgaze.evaluation.export_parity import measure_parity
from softgaze.explain.scoring import IdPair
from softgaze.models.backbones import Backbone
from softgaze.models.feature_encoders import FEATURE_ENCODERS
from softgaze.special_tokens import EOS
from softgaze.translator import load

VARIANTS = {
    "a CNN and an RNN": (IMAGES, "rnn", "cnn"),
    "patches and a Transformer": (IMAGES, "transformer", "patches"),
    "frames and an RNN": (FEATURES, "rnn", "frames"),
    "frames and a Transformer": (FEATURES, "transformer", "frames"),
}
WRITTEN = [(50, 60, EOS), (31,), (300, 41, 51, 61, 71, 9)]


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
    if reader is IMAGES:
        return write_scenes(folder)
    paths, dice = [folder / f"{number}.npy" for number in range(3)], np.random.default_rng(5)
    for path, size in zip(paths, (9, 1, 14), strict=True):
        np.save(path, dice.normal(size=(size, len(reader))).astype("f4"))
    return paths


@pytest.fixture(scope="module", params=VARIANTS.values(), ids=VARIANTS)
def models(request, tmp_path_factory):
    """The translators of a captioner and of its export, and files to caption."""
    reader, decoder, encoder = request.param
    folder = tmp_path_factory.mktemp("captioner")
    source = stirred(make_captioner(folder / "trained", reader, decoder, encoder, layers=2, encoder_layers=2))
    made = exported(source, folder / "made", "onnx", told=TOLD_BY_RNN)
    return (
        load(source, "cpu", engine="torch"),
        load(made, "cpu"),
        [str(path) for path in written_sources(folder, reader)],
    )


def parts_of(translator, files):
    """Given captions of files."""
    items = translator.bundle.tokenizers.source.encode(files)
    return [IdPair(read, written) for read, written in zip(items, WRITTEN, strict=True)]


def test_every_captioner_is_the_same_there(models):
    """Log-probabilities, what a beam finds, what is drawn, and every look at the source."""
    trained, made, files = models
    parts = parts_of(trained, files)
    for one, other in zip(trained.engine.log_probs(parts), made.engine.log_probs(parts), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    for options in (
        {"beam_size": 1},
        {"beam_size": 3, "num_hypotheses": 3},
        {"temperature": 1.0, "seed": 4, "num_hypotheses": 2},
    ):
        pairs = zip(*(each.translate(files, **options, max_length=9) for each in (trained, made)), strict=True)
        for one, other in pairs:
            assert told(one) == told(other)
            assert one.score == pytest.approx(other.score, abs=2e-4)
    for one, other in zip(trained.engine.record(parts), made.engine.record(parts), strict=True):
        np.testing.assert_allclose(one.cross.weights, other.cross.weights, atol=1e-5)
        np.testing.assert_allclose(one.cross.norms, other.cross.norms, atol=1e-4, rtol=1e-5)


def test_there_are_no_eyes_without_a_graph():
    assert {*FEATURE_ENCODERS.values()} <= {*GRAPHS}


def test_neighbours_change_nothing(models):
    """Frames of other lengths beside it, or none."""
    _, made, files = models
    together = made.translate(files, num_hypotheses=2)
    assert [told(made.translate(file, num_hypotheses=2)) for file in files] == [told(each) for each in together]
    for one, other in zip(together, made.translate(files, num_hypotheses=2, batch_tokens=1), strict=True):
        assert told(one) == told(other)


def test_where_each_word_looked_is_told_without_torch(models):
    trained, made, files = models
    ours, theirs = (each.translate(files[0], max_length=9).attention for each in (trained, made))
    view = made.selected_map.view
    np.testing.assert_allclose(theirs.recording.map(view), ours.recording.map(view), atol=1e-5)
    assert (theirs.grid, theirs.recording.photo) == (ours.grid, ours.recording.photo)
    assert theirs.recording.token_probs == pytest.approx(ours.recording.token_probs, abs=1e-4)


# --- pretrained networks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("frozen", [True, False])
def test_a_pretrained_network_is_part_of_the_graph(tmp_path, frozen):
    """Frozen, it has seen the pictures before the model does; tuned, it is a part of that already."""
    reader = image_processor_for("efficientnet", frozen, None)
    source = make_captioner(tmp_path / "trained", reader, encoder="efficientnet", frozen=frozen)
    files = [str(path) for path in write_scenes(tmp_path / "scenes")]
    trained, made = (
        load(source, "cpu", engine="torch"),
        load(exported(source, tmp_path / "made", "onnx", told=TOLD_BY_RNN), "cpu"),
    )
    assert made.bundle.tokenizers.source.settings() == {"side": 224, "patch": 32}
    ours, theirs = (each.engine.log_probs(parts_of(each, files)) for each in (trained, made))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    measure_parity(trained, made, [(file, "the dog runs.") for file in files], quantized=False).check()
    if frozen:
        with pytest.raises(UsageError, match="--with-weights: the torch weights read features of efficientnet"):
            exported(source, tmp_path / "both", "onnx", told=None, with_weights=True)


def test_a_network_of_hugging_face_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "softgaze.engines.onnx_graph.feature_encoders.backbone", lambda name: Backbone(name, nn.Identity(), None, None)
    )
    source = make_captioner(tmp_path / "trained", BackboneProcessor("models/vit", 32, 8, 16), encoder="models/vit")
    with pytest.raises(UsageError, match="models/vit: the backbone of a directory cannot be exported to onnx"):
        exported(source, tmp_path / "made", "onnx")


# --- the commands -----------------------------------------------------------------------------------------------

CAPTIONS = ("--images", "images", "--captions", "train.en.csv")
COMMANDS = {
    "caption": ("caption", "model", "images/000.png", "images/001.png", "--json"),
    "caption, a page": ("caption", "model", "images/000.png", "-o", "look.html"),
    "evaluate": ("evaluate", "model", *CAPTIONS, "-o", "written.tsv", "--json"),
    "explain": ("explain", "model", "images/000.png", "--json"),
    "info": ("info", "model", "--json"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A captioner, pictures, and its export to `model`."""
    folder = tmp_path_factory.mktemp("commands")
    write_pictures(folder, 6)
    stirred(make_captioner(folder / "trained", decoder="transformer"))
    done = run(folder, "export", "trained", "--to", "onnx", "-o", "model", *CAPTIONS)
    assert done.returncode == 0, done.stderr
    assert "0 of 6 greedy outputs differ" in done.stdout
    return folder


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_an_exported_captioner_runs_without_torch(place, command):
    told = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *command], cwd=place, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    here = run(place, *command).stdout
    if "evaluate" in command:
        assert {**json.loads(told.stdout), "speed": 0} == {**json.loads(here), "speed": 0}
        written = (place / "written.tsv").read_text()
        run(place, "evaluate", "trained", *command[2:])
        assert (place / "written.tsv").read_text() == written
    else:
        assert told.stdout == here


def test_an_exported_captioner_is_served_without_torch(place, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('nobody needs torch here')")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    content = (place / "images" / "000.png").read_bytes()
    with serving(place / "model", PYTHONPATH=path) as server:
        found = server.upload("/v1/caption", ("image", "a.png", content), attention="true", beam_size="1")
        [known] = server.get("/v1/models").json["models"]
    assert found.status == 200, found.body
    [caption] = found.json["captions"]
    assert (
        caption["text"] == load(place / "trained", "cpu").translate(str(place / "images" / "000.png"), beam_size=1).text
    )
    assert caption["attention"]["grid"] == {"rows": 4, "columns": 4, "crop": [0.0, 0.0, 1.0, 1.0]}
    assert (known["engine"], known["kind"], known["what_if"]) == ("onnx", "image", False)


def test_what_was_held_out_in_training_is_what_it_is_proven_on(place, tmp_path):
    """Files that are gone are named and left out; if all are, it is said what to give instead."""
    shutil.copytree(place / "trained", tmp_path / "run")
    (tmp_path / "run" / "encoded").mkdir()
    held_out = tmp_path / "run" / "encoded" / "dev.json"
    there = str(place / "images" / "002.png")
    held_out.write_text(json.dumps([(there, "a dog"), ("gone.png", "a cat"), (there, "a red dog")]))
    done = run(tmp_path, "export", "run", "--to", "onnx", "-o", "made")
    assert (done.returncode, "0 of 1 greedy outputs differ" in done.stdout) == (0, True)
    assert "skipped: gone.png" in done.stderr
    held_out.write_text(json.dumps([("gone.png", "a cat")]))
    done = run(tmp_path, "export", "run", "--to", "onnx", "-o", "other")
    assert (done.returncode, (tmp_path / "other").exists()) == (3, False)
    assert "give others with --images DIR --captions FILE" in done.stderr
    done = run(tmp_path, "export", "run", "--to", "onnx", "-o", "other", "--allow-drift")
    assert (done.returncode, "not verified" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ((), 2, "give some with --images DIR --captions FILE, or --allow-drift"),
        (("--dev", "train.en.csv", "train.en.csv"), 2, "--images DIR --captions FILE"),
        (("--features", "images", "--captions", "train.en.csv"), 2, "--images DIR"),
        (("--images", "images"), 2, "--captions FILE"),
        (("--captions", "train.en.csv"), 2, "--captions needs"),
        (("--images", "nowhere", "--captions", "train.en.csv"), 3, "nowhere"),
        ((*CAPTIONS, "--quantize", "int8"), 2, "--quantize int8 is not supported by onnx"),
    ],
)
def test_what_cannot_prove_a_captioner_is_one_line(place, given, code, said):
    done = run(place, "export", "trained", "--to", "onnx", "-o", "made", *given)
    assert (done.returncode, (place / "made").exists()) == (code, False)
    assert said in done.stderr


def test_an_export_that_drifts_leaves_nothing_behind(place, monkeypatch):
    """A fault in the exporter: the picture is a negative."""
    from softgaze.engines.onnx_graph import feature_encoders

    scale = feature_encoders.scale_pixels
    monkeypatch.setattr(feature_encoders, "scale_pixels", lambda graph, values: scale(graph, graph.op("Neg", values)))
    done = run(place, "export", "trained", "--to", "onnx", "-o", "made", *CAPTIONS)
    assert (done.returncode, (place / "made").exists()) == (5, False)
    assert "log-probabilities differ by up to" in done.stderr
