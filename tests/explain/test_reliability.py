"""Reliability of a map on one sentence: its fit, where it is stated, and the warning."""

from dataclasses import asdict, replace
from xml.etree import ElementTree

import numpy as np
import pytest

from bundles import SMALL, lines, make_bundle
from softgaze.bundle import ATTENTION, add_facts
from softgaze.explain import Alignment, Attention, SelectedMap, View
from softgaze.explain.confidence import Calibration
from softgaze.explain.map_selection import concatenate
from softgaze.explain.reliability import (
    FEATURES,
    ReliabilityCalibration,
    calibrate_reliability,
    label_links,
    misspell,
    substitute_words,
)
from softgaze.explain.serialization import from_record, to_record
from softgaze.search.options import Hypothesis, SearchOptions
from softgaze.serve.explain_jobs import attention_json
from softgaze.translator import load

VIEW = View(layer=0)


def model_with(path, share):
    """A model whose links are right with a fixed probability, whatever the sentence."""
    bias = float(np.log(share / (1 - share)))
    make_bundle(path, options=SMALL)
    function = Calibration((bias, *[0.0] * FEATURES), 1, 1)
    add_facts(path, {ATTENTION: SelectedMap(VIEW, 0.9, "test", 5).to_dict()})
    add_facts(path, ReliabilityCalibration(VIEW, function).to_facts())
    return load(path, "cpu", engine="torch")


class RandomAligner:
    """Confirms the links of a model's map with a fixed probability."""

    def __init__(self, translator, share):
        self.translator, self.share, self.random = translator, share, np.random.default_rng(0)

    def align(self, pairs):
        found = self.translator.aligner().align(pairs)
        return [
            Alignment(
                frozenset(
                    (s if self.random.random() < self.share else (s + 1) % len(source.split()), t) for s, t in own.links
                )
            )
            for (source, _), own in zip(pairs, found, strict=True)
        ]


@pytest.mark.parametrize(("share", "is_low"), [(0.9, False), (0.3, True)])
def test_every_output_states_the_reliability_of_this_sentence(tmp_path, share, is_low):
    attention = model_with(tmp_path / "model", share).translate("the old dog sees a tree.").attention
    assert attention.reliability.value == pytest.approx(share, abs=1e-3)
    assert len(attention.reliability.links) == len(attention.recording.target.words)
    assert attention.reliability.is_low == is_low
    text = f"about {share:.0%} of the links"
    figure, page = attention.plot().svg, attention.to_html()
    for shown in (attention.description, str(attention), figure, page):
        assert text in " ".join(shown.split())
        assert ("do not rely on this map" in " ".join(shown.split())) == is_low
    assert attention_json(attention)["reliability"]["is_low"] == is_low
    attention.to_json(tmp_path / "map.json")
    assert Attention.load(tmp_path / "map.json").reliability == attention.reliability


@pytest.mark.parametrize(("share", "is_low"), [(0.9, False), (0.3, True)])
@pytest.mark.parametrize("method", ["gradient", "gradient-norm", "contribution", "occlusion"])
def test_an_attribution_states_the_reliability_of_the_attention_map(tmp_path, method, share, is_low):
    """Attributions may be shown instead of attention, so they warn of unfamiliar sentences, too."""
    shown = model_with(tmp_path / "model", share).translate("the old dog sees a tree.").attribution(method).map()
    for text in (shown.description, str(shown), shown.plot().svg):
        assert f"about {share:.0%} of the links of the selected attention map" in " ".join(text.split())
        assert ("do not rely on maps of this sentence" in " ".join(text.split())) == is_low
    shown.to_json(tmp_path / "map.json")
    assert Attention.load(tmp_path / "map.json").description == shown.description


@pytest.mark.parametrize("share", [0.9, 0.3])
def test_another_map_states_the_reliability_of_the_selected_one(tmp_path, share):
    attention = model_with(tmp_path / "model", share).translate("the old dog sees a tree.").attention
    for other in (attention.norms(), attention.decoder(), attention.subwords().norms()):
        assert f"about {share:.0%} of the links of the selected attention map" in other.description
        assert other.description.startswith("do not rely on maps of this sentence") == (share < 0.6)


def test_a_low_reliability_is_a_line_of_its_own_in_a_figure(tmp_path):
    attention = model_with(tmp_path / "model", 0.3).translate("the old dog sees a tree.").attention
    lines = ElementTree.fromstring(attention.plot().svg).iter("{http://www.w3.org/2000/svg}text")
    [warning] = [line for line in lines if (line.text or "").startswith("do not rely on this map")]
    assert warning.get("font-weight") == "600"


def test_without_a_fit_or_after_a_change_the_reliability_is_not_measured(tmp_path):
    translation = model_with(tmp_path / "model", 0.9).translate("the old dog sees a tree.")
    assert translation.what_if(mask="dog").attention.reliability is None
    calibration = ReliabilityCalibration(replace(VIEW, measure="norms"), Calibration((0.0,) * (FEATURES + 1), 1, 1))
    add_facts(tmp_path / "model", calibration.to_facts())
    attention = load(tmp_path / "model", "cpu", engine="torch").translate("the dog sees.").attention
    assert attention.reliability is None
    assert "reliability not measured" in attention.description


@pytest.mark.filterwarnings("error")
def test_a_word_without_a_link_does_not_count(tmp_path, monkeypatch):
    translator = model_with(tmp_path / "model", 0.9)
    sentence = "the old dog sees a tree."
    every = translator.translate(sentence).attention.alignment().links
    monkeypatch.setattr(Attention, "alignment", lambda self: Alignment(frozenset({min(every)})))
    attention = translator.translate(sentence).attention
    assert len(attention.reliability.links) > 1
    assert [value is not None for value in attention.reliability.links].count(True) == 1
    assert attention.reliability.value == pytest.approx(0.9, abs=1e-3)
    assert from_record(to_record(attention)).reliability == attention.reliability


class FixedAligner:
    """Gives the links of a sentence pair fixed scores."""

    threshold = 0.1

    def __init__(self, score):
        self.score = score

    def scores(self, pairs):
        return [np.full((len(target.split()), len(source.split())), self.score) for source, target in pairs]


@pytest.mark.parametrize(("score", "expected"), [(1.0, 0.99), (0.5, 0.82), (0.0, 0.27)])
def test_the_word_aligner_of_a_bundle_confirms_links(tmp_path, score, expected):
    translator = model_with(tmp_path / "model", 0.9)
    translator.__dict__["statistical_aligner"] = FixedAligner(score)
    assert translator.translate("the old dog sees a tree.").attention.reliability.value == pytest.approx(
        expected, abs=1e-3
    )


def test_words_that_the_aligner_splits_in_another_way_keep_the_probability_of_the_fit(tmp_path, monkeypatch):
    translator = model_with(tmp_path / "model", 0.9)
    translator.__dict__["statistical_aligner"] = FixedAligner(1.0)
    monkeypatch.setattr(FixedAligner, "scores", lambda self, pairs: [np.zeros((0, 0))])
    found = translator.translate("the old dog sees a tree.").attention.reliability
    assert found.value == pytest.approx(0.9, abs=1e-3)


def test_an_empty_output_has_no_reliability(tmp_path):
    translator, options = model_with(tmp_path / "model", 0.3), SearchOptions(beam_size=1)
    [[source]] = translator.encode(["the dog sees."], options)
    part = translator.part(source.ids, Hypothesis((), 0.0, 0.0, finished=True))
    attention = translator.join("the dog sees.", (part,), options).attention
    assert attention.recording.target.words == ()
    assert attention.reliability is None


@pytest.mark.parametrize("share", [0.8, 0.4])
def test_a_fit_states_the_share_of_links_that_the_aligner_confirms(tmp_path, share, monkeypatch):
    for name, none in (("CONCATENATED", ()), ("MISSPELLED", ()), ("SUBSTITUTED", 0.0)):  # other links in other texts
        monkeypatch.setattr(f"softgaze.explain.reliability.{name}", none)
    translator = model_with(tmp_path / "model", 0.5)
    pairs = [*zip(lines("en", 160), lines("ko", 160), strict=True)]
    fitted = calibrate_reliability(translator, RandomAligner(translator, share), pairs)
    labelled = label_links(translator, pairs, [frozenset()] * len(pairs))
    assert fitted.function.probs(labelled.features).mean() == pytest.approx(share, abs=0.06)
    assert fitted.view == VIEW
    assert ReliabilityCalibration.of_facts(fitted.to_facts()) == fitted
    assert asdict(fitted.view) == fitted.to_facts()["reliability"]["view"]


def test_concatenated_pairs_keep_their_links():
    pairs = [(f"a{n} b{n}", f"c{n}") for n in range(6)]
    links = [frozenset({(1, 0)})] * 6
    texts, joined = concatenate(pairs, links, 2, 10)
    assert len(texts) == 3
    for (source, target), own in zip(texts, joined, strict=True):
        linked = {(source.split()[s][1:], target.split()[t][1:]) for s, t in own}
        assert linked == {(word[1:], word[1:]) for word in target.split()}
        assert all(source.split()[s].startswith("b") for s, _ in own)


def test_misspelled_words_keep_their_letters():
    text = "several extraordinary sentences"
    changed = misspell(text, 1.0, np.random.default_rng(1))
    assert changed != text
    assert [sorted(word) for word in changed.split()] == [sorted(word) for word in text.split()]
    assert misspell(text, 0.0, np.random.default_rng(1)) == text


def test_substituted_words_are_linked_pairs_and_other_words_stay():
    pairs = [("a b c", "x y z"), ("d e f", "u v"), ("", "")]
    links = [frozenset({(0, 0), (1, 1), (1, 2)}), frozenset({(0, 0), (2, 1)}), frozenset()]
    known = {("a", "x"), ("d", "u"), ("f", "v")}
    changed = substitute_words(pairs, links)
    (source, target), (other_source, other_target), empty = [[side.split() for side in pair] for pair in changed]
    assert (source[1:], target[1:], other_source[1], empty) == (["b", "c"], ["y", "z"], "e", [[], []])
    assert {(source[0], target[0]), (other_source[0], other_target[0]), (other_source[2], other_target[1])} <= known
    assert changed == substitute_words(pairs, links)
    assert substitute_words(pairs, [frozenset()] * 3) == pairs
