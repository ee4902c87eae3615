"""ImageProcessor and sounds through the one training loop, to bundles that load, look and refuse like those of text."""

import json

import numpy as np
import pytest

import softgaze
import tones
from albums import pictures, small, sung, write_melodies
from corpora import corpus
from errors import one_line_error
from runs import EventLog
from softgaze.bundle import MANIFEST, Bundle
from softgaze.config import parse_config
from softgaze.data.captions import CaptionCorpus
from softgaze.data.processors import ImageProcessor
from softgaze.errors import DataError, UsageError
from softgaze.training.preprocess import preprocess
from softgaze.training.train import train


@pytest.fixture(scope="module")
def learnt(tmp_path_factory):
    """A run on a dozen pictures, one of them broken."""
    place = tmp_path_factory.mktemp("pictures")
    album, log = pictures(place), EventLog()
    (place / "images" / "003.png").write_bytes(b"no picture at all")
    train(small(), album, None, place / "run", callback=log)
    return place, log


def test_a_broken_picture_is_named_once_and_left_out(learnt):
    place, log = learnt
    assert len([each for each in log.messages if "003.png" in each]) == 1
    facts = json.loads((place / "run" / "encoded" / "facts.json").read_text())
    assert (facts["unreadable"], facts["left_out"] in (0, 2)) == (1, True)
    assert facts["pairs"] + facts["dev_pairs"] == 22
    held_out = {source for source, _ in Bundle.open(place / "run").held_out}
    assert held_out
    assert not any("003.png" in source for source in held_out)


def test_captions_of_one_picture_are_never_on_both_sides_of_the_split(tmp_path):
    album = pictures(tmp_path, count=20, captions=3)
    prepared = preprocess(tmp_path / "encoded", album, None, small().data, 1)
    held_out = {pair.source for pair in prepared.dev_text}
    assert len(held_out) == 2
    assert len(prepared.dev_text) == 6
    kept = {prepared.train[number][0].tobytes() for number in range(len(prepared.train))}
    assert not kept & {prepared.dev[number][0].tobytes() for number in range(len(prepared.dev))}
    stored = sum(part[0].tokens.shape[0] for part in prepared.train.shards)
    assert stored == 18 * 64  # each picture once, not once a caption


def test_a_bundle_says_where_it_looked_in_a_picture(learnt):
    place, _ = learnt
    translator = softgaze.load(place / "run")
    names = [str(place / "images" / f"{number:03d}.png") for number in (0, 1, 2)]
    found = translator.translate(names, max_length=9)
    assert [each.source for each in found] == names
    for each in found:
        assert each.text == translator.translate(each.source, max_length=9).text
        if each.attention is None:
            continue
        assert each.attention.grid == (8, 8)
        assert each.attention.weights.shape[1] == 64
        assert each.attention.tile(0).sum() == pytest.approx(1, abs=1e-5)
    translator.translate(names[0], beam_size=2, max_length=5)
    assert translator.bundle.description.source_language == "image"


def test_what_mattered_and_what_if_are_asked_of_a_picture_like_of_a_text(learnt):
    place, _ = learnt
    found = softgaze.load(place / "run").translate(
        str(place / "images" / "000.png"), prefix="a small red", max_length=5
    )
    words = len(found.text.split())
    assert found.occlusion.shape == (words, 64)
    assert np.isfinite(found.occlusion).all()
    assert found.what_if(mask="1,1", sharpen=2.0).changes
    masked = found.what_if(mask=[*range(32)]).attention
    assert masked.weights[:, :32].max() < 1e-6


def test_a_file_that_is_no_picture_is_one_line(learnt, tmp_path):
    place, _ = learnt
    (tmp_path / "a.png").write_text("hello")
    with pytest.raises(DataError, match=r"a\.png: not an image") as caught:
        softgaze.load(place / "run").translate(str(tmp_path / "a.png"))
    assert "\n" not in str(caught.value)


def test_a_run_goes_on_with_the_pictures_it_began_with(learnt):
    place, _ = learnt
    again = CaptionCorpus.of(place / "images", place / "train.en.csv", ImageProcessor(32, 8), lambda error: None)
    with pytest.raises(UsageError, match="encoded with other settings"):
        train(small(), again, None, place / "run")


def test_a_changed_reader_is_refused_like_any_file_of_a_bundle(learnt, tmp_path):
    import shutil

    place, _ = learnt
    shutil.copytree(place / "run", tmp_path / "copy")
    path = tmp_path / "copy" / "reader.json"
    path.write_text(path.read_text().replace("32", "64"))
    with pytest.raises(DataError, match=r"reader\.json"):
        Bundle.open(tmp_path / "copy")
    manifest = json.loads((place / "run" / MANIFEST).read_text())
    assert "reader.json" in manifest["files"]


def test_text_models_and_pictures_are_told_apart(tmp_path):
    album = pictures(tmp_path, count=3)
    with pytest.raises(UsageError, match="reads text; use --arch captioner"):
        train(parse_config({}), album, None, tmp_path / "run")
    with pytest.raises(UsageError, match="reads images or features; give --images"):
        train(small(), corpus(tmp_path), None, tmp_path / "run")
    assert not (tmp_path / "run").exists()


# --- sound ------------------------------------------------------------------------------------------------------


def test_tones_are_learnt_in_seconds_and_read_from_left_to_right(tmp_path):
    """Nothing but a front end: frames in, text out, with the loop, the search and the maps of text."""
    folder = tmp_path / "sounds"
    albums = [CaptionCorpus.of_features(folder, write_melodies(folder, count, split), print) for split, count in SPLITS]
    train(TONES, *albums, tmp_path / "run")
    melodies = [tones.melody("dev", number) for number in range(SPLITS[1][1])]
    names = [str(folder / f"dev-{number}.npy") for number in range(len(melodies))]
    found = softgaze.load(tmp_path / "run").translate(names, beam_size=1)
    right = [each for each, melody in zip(found, melodies, strict=True) if each.text == sung(melody)]
    assert len(right) > 0.5 * len(found)
    steps = [
        np.diff(each.attention.predicting().weights[:-1] @ np.arange(len(each.attention.source))) for each in right
    ]
    assert np.mean(np.concatenate(steps) > 0) > 0.95  # the middle of the look moves on with every tone


SPLITS = (("train", 1000), ("dev", 40))
TONES = small(
    model={"options": {"width": 64, "encoder": "frames", "encoder_layers": 2, "dropout": 0.0}},
    training={
        "batch_tokens": 1024,
        "learning_rate": 4e-3,
        "warmup": 20,
        "schedule": "cosine",
        "label_smoothing": 0.0,
        "average": 0,
    },
    validation={"every": 400, "sentences": 10},
    budget={"steps": 400},
)


def test_a_vocabulary_of_words_gives_captions_of_known_words_only(tmp_path):
    album = pictures(tmp_path, count=20)
    train(small(data={"min_count": 2}), album, None, tmp_path / "run")
    translator = softgaze.load(tmp_path / "run")
    known = {word for pair in album for word in pair.target.split()}
    names = [str(tmp_path / "images" / f"{number:03d}.png") for number in range(4)]
    for found in translator.translate(names, max_length=9, beam_size=2):
        assert {*found.text.split()} <= known
    scored = translator.score(names[0], "a zzyzx circle")
    assert scored.text == "a zzyzx circle"
    with one_line_error(UsageError, "does not contain zzyzx"):
        translator.translate(names[0], prefix="a zzyzx")
