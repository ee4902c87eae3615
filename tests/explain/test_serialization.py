"""Maps survive JSON, HTML and SVG with all layers and heads, older files load, and histories survive a crash."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maps import random_attention, random_recording
from pictures import scene_attention
from softgaze.errors import DataError
from softgaze.explain import Attention, SelectedMap, View
from softgaze.explain.attention_map import sharpest_layer
from softgaze.explain.render.pages import history_page
from softgaze.explain.serialization import (
    ELEMENT,
    HISTORY_FILE,
    Snapshot,
    read_history,
    script_element,
    svg_element,
    to_json,
)
from softgaze.explain.word_spans import EOS_MARK

SELECTED = SelectedMap(View(layer=1, head=0, rows="reading", measure="norms"), 0.5, "occlusion", 24)


def example():
    return Attention(random_recording(), SELECTED.view, SELECTED)


def hostile():
    markup = ["</script><script>alert(1)</script>", "<!--", "]]>", "&lt;", '"', "\\"]
    words = [*markup, "🐕", "학교", "\u2028", "\ud800", "\x00\x1b", "\ufffe", EOS_MARK]
    return Attention.of(words, ["</metadata>", EOS_MARK], np.full((2, len(words)), 1 / len(words)))


WRITERS = {
    "json": lambda attention: attention.to_json(),
    "html": lambda attention: (
        f"<!doctype html><script>let a = 1</script>{script_element(ELEMENT, to_json(attention))}<p>"
    ),
    "svg": lambda attention: f'<svg xmlns="http://www.w3.org/2000/svg">{svg_element(attention)}<text>x</text></svg>',
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("make", [example, hostile])
def test_everything_survives(tmp_path, write, make):
    attention = make()
    path = tmp_path / "a.file"
    path.write_text(write(attention), encoding="utf-8")
    loaded = Attention.load(path)
    assert (loaded.source, loaded.target, loaded.description) == (
        attention.source,
        attention.target,
        attention.description,
    )
    assert loaded.selected_map == attention.selected_map
    for view in (attention, attention.mean(), attention.rollout(), attention.norms(), attention.subwords()):
        assert np.allclose(Attention(loaded.recording, view.view).weights, view.weights, atol=1e-4)
    assert loaded.recording.kinds == attention.recording.kinds


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_an_image_map_survives_with_grid_photo_and_probabilities(tmp_path, write):
    attention = scene_attention()
    (tmp_path / "a.file").write_text(write(attention), encoding="utf-8")
    loaded = Attention.load(tmp_path / "a.file")
    assert (loaded.grid, loaded.recording.photo) == (attention.grid, attention.recording.photo)
    assert np.allclose(loaded.tiles, attention.tiles, atol=1e-4)
    assert loaded.word_probs == pytest.approx(attention.word_probs, abs=1e-6)


def test_files_without_images_load(tmp_path):
    record = json.loads(example().to_json())
    for name in ("photo", "chances"):
        del record["recording"][name]
    for side in ("source", "target"):
        del record["recording"][side]["grid"]
    (tmp_path / "old.json").write_text(json.dumps(record), encoding="utf-8")
    assert np.allclose(Attention.load(tmp_path / "old.json").weights, example().weights, atol=1e-4)


@pytest.mark.parametrize("change", [{"media": "text/html"}, {"image": "no base 64"}, {"size": [0, 1]}, {"crop": [0]}])
def test_an_invalid_photo_is_rejected(tmp_path, change):
    record = json.loads(scene_attention().to_json())
    record["recording"]["photo"] |= change
    (tmp_path / "bad.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(DataError, match=r"bad\.json: is not a readable"):
        Attention.load(tmp_path / "bad.json")


def test_the_note_survives_and_files_without_one_load(tmp_path):
    attention = replace(example(), recording=replace(random_recording(), note="with “dog” masked"))
    attention.to_json(tmp_path / "new.json")
    assert Attention.load(tmp_path / "new.json").recording.note == "with “dog” masked"
    record = json.loads(attention.to_json())
    del record["recording"]["note"]
    (tmp_path / "old.json").write_text(json.dumps(record), encoding="utf-8")
    assert Attention.load(tmp_path / "old.json").description == example().description


def test_words_and_shown_weights_are_readable():
    record = json.loads(example().to_json())
    assert record["source"] == list(example().source)
    assert np.allclose(record["weights"], example().weights, atol=1e-6)
    assert "selected by occlusion" in record["shows"]


def test_hostile_words_cannot_end_the_script_element():
    page = script_element(ELEMENT, to_json(hostile()))
    assert page.count("<") == 2
    assert re.fullmatch(rf'<script type="application/json" id="{ELEMENT}">[^<]*</script>', page, re.DOTALL)


def test_hostile_words_keep_the_svg_well_formed():
    from xml.etree import ElementTree

    drawing = ElementTree.fromstring(svg_element(hostile()))
    assert json.loads(drawing.text)["target"][0] == "</metadata>"


def test_to_json_writes_a_file_if_given_one(tmp_path):
    path = tmp_path / "a.json"
    text = example().to_json(path)
    assert path.read_text(encoding="utf-8") == text + "\n"
    assert np.allclose(Attention.load(str(path)).weights, example().weights, atol=1e-4)


def test_packed_weights_are_small():
    attention = random_attention(unit="subwords")
    record = json.loads(attention.to_json())
    sizes = [len(part["cross"]["weights"]) for part in record["recording"]["parts"]]
    assert sum(sizes) < 4 * sum(part.cross.weights.size for part in attention.recording.parts)


BROKEN = {
    "no JSON": "<html><body>nothing here</body></html>",
    "a list": "[1, 2]",
    "another file": '{"a": 1}',
    "another format": '{"format": "softgaze-attention 9"}',
    "cut": example().to_json()[:-40],
    "damaged numbers": re.sub(r'"weights":"....', '"weights":"@@', example().to_json()),
    "too few numbers": re.sub(r'("norms":")........', r"\1", example().to_json()),
    "a word too few": example().to_json().replace('"▁the",', ""),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_an_unreadable_file_is_rejected_in_one_line_with_its_path(tmp_path, text):
    path = tmp_path / "broken.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"broken\.json: is not a readable") as error:
        Attention.load(path)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.json: cannot be read: No such file"):
        Attention.load(tmp_path / "nowhere.json")


@pytest.mark.parametrize("page", [history_page([Snapshot(0, 0.0, {}, "a", random_attention())]), "<svg></svg>"])
def test_a_page_without_a_single_map_is_rejected(tmp_path, page):
    (tmp_path / "other.html").write_text(page, encoding="utf-8")
    with pytest.raises(DataError, match="no single map"):
        Attention.load(tmp_path / "other.html")


# --- attention history


def snapshot(step):
    scores = {"loss": 9.0 / (step + 1), "bleu": float(step)} if step else {}
    return Snapshot(step, step / 10, scores, f"개가 \u2028자요 {step}", random_attention(seed=step))


def write(path, snapshots):
    path.write_text("".join(f"{each.to_line()}\n" for each in snapshots), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["", HISTORY_FILE])
def test_every_snapshot_survives_in_order(tmp_path, name):
    snapshots = [snapshot(step) for step in (0, 4, 8)]
    write(tmp_path / HISTORY_FILE, snapshots)
    loaded = read_history(tmp_path / name)
    for one, other in zip(loaded, snapshots, strict=True):
        assert (one.step, one.minutes, one.scores, one.text) == (other.step, other.minutes, other.scores, other.text)
        weights = [each.attention.recording.parts[0].cross.weights for each in (one, other)]
        assert np.allclose(*weights, atol=1e-4)


@pytest.mark.parametrize("selected", [None, SELECTED])
def test_all_snapshots_have_the_same_view(tmp_path, selected):
    snapshots = read_history(write(tmp_path / HISTORY_FILE, [snapshot(step) for step in range(5)]), selected)
    assert {each.attention.view for each in snapshots} == {
        selected.view if selected else sharpest_layer(snapshots[-1].attention.recording)
    }
    assert {each.attention.selected_map for each in snapshots} == {selected}


LINES = [f"{snapshot(step).to_line()}\n".encode() for step in (0, 4)]


@given(size=st.integers(0, len(LINES[1])))
def test_an_incomplete_last_line_is_ignored(tmp_path_factory, size):
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    path.write_bytes(LINES[0] + LINES[1][:size])
    assert [each.step for each in read_history(path)] == ([0, 4] if size == len(LINES[1]) else [0])


def test_an_empty_history(tmp_path):
    assert read_history(write(tmp_path / HISTORY_FILE, [])) == []


@pytest.mark.parametrize("content", [None, "{}\n", "no film\n", '{"step": 1, "attention": 3}\n'])
def test_an_invalid_history_is_rejected_in_one_line(tmp_path, content):
    if content is not None:
        (tmp_path / HISTORY_FILE).write_text(content)
    with pytest.raises(DataError, match=HISTORY_FILE) as caught:
        read_history(tmp_path)
    assert "\n" not in str(caught.value)
