import subprocess
import sys

import numpy
import pytest

from bundles import copier, make_bundle
from softgaze.gaze.answers import answers, questions
from softgaze.translator import load

TEXT = "the small dog sees the cat."
OPTIONS = {"beam": 2, "max_length": 6}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    options = {"width": 16, "feed_forward_width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 2}
    return load(make_bundle(tmp_path_factory.mktemp("answers") / "model", options=options), "cpu").translate(
        TEXT, **OPTIONS
    )


@pytest.fixture(scope="module")
def found(out):
    return answers(out)


def test_every_word_head_and_sharpness_is_asked_about(out, found):
    layer = out.attention.view.layer
    assert [(each.kind, each.question, each.source_word) for each in found] == [
        *(("mask", f"without “{word.strip('.')}”", number) for number, word in enumerate(TEXT.split())),
        *(("ablate", f"without head {head} of layer {layer}", None) for head in range(2)),
        ("sharpen", "with weights sharper (×2)", None),
        ("sharpen", "with weights flatter (×0.5)", None),
    ]


def test_an_answer_is_the_what_if_of_its_question(out, found):
    for each in found[: len(TEXT.split())]:
        new = out.what_if(mask=each.source_word)
        assert (each.text, each.diff) == (new.text, new.diff().pieces)
        assert (each.score, each.before) == pytest.approx((new.score, out.score), abs=1e-5)
        assert each.attention.shows == new.attention.shows
        assert numpy.allclose(each.attention.weights, new.attention.weights, atol=1e-5)


@pytest.mark.parametrize("most", [0, 3, 5, 8])
def test_there_are_never_more_than_wanted(out, most):
    assert len(answers(out, most=most)) == most


VIEWS = [({"layer": 0, "head": None}, [0]), ({"layer": 1, "head": 1}, [1]), ({"layer": None, "head": None}, [0, 1])]


@pytest.mark.parametrize(("view", "layers"), [*VIEWS, ({"kind": "encoder", "layer": 0, "head": None}, [0, 1])])
def test_the_heads_are_those_of_the_map_that_is_shown(out, view, layers):
    shown = out.attention.seen(**view)
    found = answers(out, shown)
    heads = [each.question for each in found if each.kind == "ablate"]
    assert heads == [f"without head {head} of layer {layer}" for layer in layers for head in range(2)]
    assert {each.attention.view for each in found} == {shown.view}


@pytest.mark.parametrize("most", range(12))
def test_where_there_is_little_room_words_and_heads_share_it(out, most):
    kinds = [each.kind for each in questions(out.attention.seen(layer=None, head=None), most)]
    assert len(kinds) == most
    assert abs(kinds.count("mask") - kinds.count("ablate")) <= 1 or kinds.count("ablate") == 4


def test_nothing_is_answered_of_what_never_looked(out, tmp_path):
    assert answers(out.translator.translate("")) == []
    assert answers(copier(tmp_path).translate("the dog")) == []


def test_reading_answers_needs_no_torch():
    code = "import sys, softgaze.gaze.answers; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
