"""What was written is read again: the map that is shown and all the others, from JSON, HTML and SVG."""

import json
import re
from dataclasses import replace

import numpy
import pytest

from maps import random_attention, random_recording
from pictures import looking_at_scene
from softgaze.errors import DataError
from softgaze.gaze import Attention, Choice, View
from softgaze.gaze.film import Frame
from softgaze.gaze.film_page import film_page
from softgaze.gaze.stored import ELEMENT, html_element, svg_element
from softgaze.gaze.words import END_MARK

CHOICE = Choice(View(layer=1, head=0, rows="reading", measure="norms"), 0.5, "influence", 24)


def example():
    return Attention(random_recording(), CHOICE.view, CHOICE)


def hostile():
    words = ["</script><script>alert(1)</script>", "<!--", "]]>", "&lt;", '"', "\\", "🐕", "학교", "\u2028", END_MARK]
    return Attention.of(words, ["</metadata>", END_MARK], numpy.full((2, len(words)), 1 / len(words)))


WRITERS = {
    "json": lambda attention: attention.to_json(),
    "html": lambda attention: f"<!doctype html><script>let a = 1</script>{html_element(attention)}<p>",
    "svg": lambda attention: f'<svg xmlns="http://www.w3.org/2000/svg">{svg_element(attention)}<text>x</text></svg>',
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("make", [example, hostile])
def test_everything_comes_back(tmp_path, write, make):
    attention = make()
    path = tmp_path / "a.file"
    path.write_text(write(attention), encoding="utf-8")
    again = Attention.load(path)
    assert (again.source, again.target, again.shows) == (attention.source, attention.target, attention.shows)
    assert again.choice == attention.choice
    for view in (attention, attention.mean(), attention.rollout(), attention.norms(), attention.subwords()):
        assert numpy.allclose(Attention(again.recording, view.view).weights, view.weights, atol=1e-4)
    assert again.recording.kinds == attention.recording.kinds


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_picture_comes_back_with_its_grid_photo_and_probabilities(tmp_path, write):
    attention = looking_at_scene()
    (tmp_path / "a.file").write_text(write(attention), encoding="utf-8")
    again = Attention.load(tmp_path / "a.file")
    assert (again.grid, again.recording.photo) == (attention.grid, attention.recording.photo)
    assert numpy.allclose(again.tiles, attention.tiles, atol=1e-4)
    assert again.probabilities == pytest.approx(attention.probabilities, abs=1e-6)


def test_files_of_before_there_were_pictures_are_read(tmp_path):
    record = json.loads(example().to_json())
    for name in ("photo", "chances"):
        del record["recording"][name]
    for side in ("source", "target"):
        del record["recording"][side]["grid"]
    (tmp_path / "old.json").write_text(json.dumps(record), encoding="utf-8")
    assert numpy.allclose(Attention.load(tmp_path / "old.json").weights, example().weights, atol=1e-4)


@pytest.mark.parametrize("change", [{"media": "text/html"}, {"image": "no base 64"}, {"size": [0, 1]}, {"crop": [0]}])
def test_a_photo_that_is_none_is_refused_by_name(tmp_path, change):
    record = json.loads(looking_at_scene().to_json())
    record["recording"]["photo"] |= change
    (tmp_path / "bad.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(DataError, match=r"bad\.json: holds no attention"):
        Attention.load(tmp_path / "bad.json")


def test_what_was_changed_comes_back_and_older_files_say_nothing(tmp_path):
    attention = replace(example(), recording=replace(random_recording(), note="with “dog” masked"))
    attention.to_json(tmp_path / "new.json")
    assert Attention.load(tmp_path / "new.json").recording.note == "with “dog” masked"
    record = json.loads(attention.to_json())
    del record["recording"]["note"]
    (tmp_path / "old.json").write_text(json.dumps(record), encoding="utf-8")
    assert Attention.load(tmp_path / "old.json").shows == example().shows


def test_a_person_finds_words_and_weights():
    record = json.loads(example().to_json())
    assert record["source"] == list(example().source)
    assert numpy.allclose(record["weights"], example().weights, atol=1e-6)
    assert "chosen by influence" in record["shows"]


def test_a_page_cannot_be_broken_by_words():
    page = html_element(hostile())
    assert page.count("<") == 2
    assert re.fullmatch(rf'<script type="application/json" id="{ELEMENT}">[^<]*</script>', page, re.DOTALL)


def test_a_drawing_with_hostile_words_is_still_xml():
    from xml.etree import ElementTree

    drawing = ElementTree.fromstring(svg_element(hostile()))
    assert json.loads(drawing.text)["target"][0] == "</metadata>"


def test_to_json_writes_a_file_if_given_one(tmp_path):
    path = tmp_path / "a.json"
    text = example().to_json(path)
    assert path.read_text(encoding="utf-8") == text + "\n"
    assert numpy.allclose(Attention.load(str(path)).weights, example().weights, atol=1e-4)


def test_packing_is_finer_than_anybody_sees():
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
def test_what_cannot_be_read_is_one_line_with_the_path(tmp_path, text):
    path = tmp_path / "broken.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"broken\.json: holds no attention") as error:
        Attention.load(path)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.json: cannot be read: No such file"):
        Attention.load(tmp_path / "nowhere.json")


@pytest.mark.parametrize("page", [film_page([Frame(0, 0.0, {}, "a", random_attention())]), "<svg></svg>"])
def test_another_page_is_told_as_such(tmp_path, page):
    (tmp_path / "other.html").write_text(page, encoding="utf-8")
    with pytest.raises(DataError, match="it is another page"):
        Attention.load(tmp_path / "other.html")
