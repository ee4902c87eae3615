from types import SimpleNamespace

import pytest
import torch

from bundles import lines
from engines.exported import changed, exported, trained_bundle
from softgaze.errors import DivergedError
from softgaze.evaluation.export_parity import (
    TOLERANCE,
    BleuChange,
    ParityReport,
    bleu_change,
    compare_outputs,
    is_near_tie,
    is_same,
    measure_parity,
)
from softgaze.special_tokens import EOS
from softgaze.translation import Translation
from softgaze.translator import load

PAIRS = [(line, line) for line in lines("en", 40)]
SOURCES = len({source for source, _ in PAIRS})  # one line stands there twice, and is written once


@pytest.fixture(scope="module")
def trained():
    return load(trained_bundle(), "cpu")


def stirred(folder, amount):
    """The same model, but for a little noise."""
    import shutil

    def stir(model, tokenizers):
        model.output.weight.data += amount * torch.randn_like(model.output.weight)

    return load(changed(shutil.copytree(trained_bundle(), folder / "stirred"), stir), "cpu")


def test_a_float32_export_passes(trained, tmp_path):
    made = load(exported(trained_bundle(), tmp_path / "made", "ctranslate2"), "cpu", explain_with_torch=False)
    report = measure_parity(trained, made, PAIRS, quantized=False)
    report.check()
    assert report.max_log_prob_difference < TOLERANCE
    assert (report.sentences, report.quality) == (SOURCES, None)
    assert f"0 of {SOURCES} greedy outputs differ" in report.tokens()


def test_a_model_that_differs_is_rejected_with_the_difference(trained, tmp_path):
    report = measure_parity(trained, stirred(tmp_path, 0.02), PAIRS, quantized=False)
    assert report.max_log_prob_difference > TOLERANCE
    with pytest.raises(DivergedError, match=f"{report.max_log_prob_difference:.1g}"):
        report.check()


def test_a_worse_model_is_rejected(trained, tmp_path):
    report = measure_parity(trained, stirred(tmp_path, 2.0), PAIRS, quantized=True)
    assert report.quality.after < report.quality.before - 1
    assert report.same < report.sentences
    with pytest.raises(DivergedError, match=r"worse: BLEU .* on 40 pairs"):
        report.check()


def test_a_model_equals_itself(trained):
    report = measure_parity(trained, trained, PAIRS, quantized=True)
    report.check()
    assert (report.max_log_prob_difference, report.same, report.near) == (0, SOURCES, 0)
    assert report.quality.before == report.quality.after


@pytest.mark.parametrize(
    ("after", "p_value", "kept"),
    [(50.0, 0.5, True), (49.8, 0.5, True), (49.8, 0.01, False), (49.6, 0.5, False), (51.0, 0.01, True)],
)
def test_a_small_loss_is_accepted_unless_it_is_significant(after, p_value, kept):
    bleu_change = BleuChange(50.0, after, p_value, 100)
    assert bleu_change.is_acceptable is kept
    report = ParityReport(1.0, 0, 0, 9, bleu_change)
    if kept:
        report.check()
    else:
        with pytest.raises(DivergedError):
            report.check()


def test_one_worse_sentence_is_no_significant_loss():
    """A resampled set of one sentence is always that sentence, so the bootstrap alone would be sure of anything."""
    pair = ("a", "the big dog sees the small cat")
    found = bleu_change(Scripted("the big dog sees the small cat"), Scripted("the big dog sees the cat"), [pair])
    assert found.after < found.before
    assert found.p_value == 1


class Scripted:
    """A translator that writes one text, whatever it reads."""

    def __init__(self, text):
        self.text = text
        self.bundle = SimpleNamespace(description=SimpleNamespace(target_language="en"))

    def translate(self, sources):
        return [Translation(source, self.text, 0.0, ()) for source in sources]


def test_outputs_may_differ_only_at_a_near_tie(trained):
    [source] = trained.encode(["the dog"], trained.translate("a").options)[0]
    written = trained.translate("the dog", beam_size=1).parts[0]
    another = written._replace(target_ids=(*written.target_ids[:-1], 99))
    assert is_same(written, written)
    assert not is_same(written, another)
    assert not is_near_tie(trained, written, another)
    assert is_near_tie(Tied(trained), written, another)
    assert not is_near_tie(Tied(trained), written, written._replace(finished=False))  # nothing to compare: one is cut
    one, other = (Translation("", "", 0.0, (part,)) for part in (written, another))
    assert [compare_outputs(trained, one, each) for each in (one, other)] == ["same", "different"]
    assert compare_outputs(Tied(trained), one, other) == "near"
    assert compare_outputs(trained, one, Translation("", "", 0.0, ())) == "different"
    assert source.ids[-1] == EOS


class Tied:
    """A translator to whom everything is equally likely."""

    def __init__(self, translator):
        self.engine = self
        self.bundle = translator.bundle

    def log_probs(self, parts):
        return [torch.zeros(len(part.target)).numpy() for part in parts]


def test_pairs_too_long_for_the_model_are_left_out(trained):
    report = measure_parity(
        trained, trained, [(" ".join(["dog"] * 500), "a dog"), ("", ""), *PAIRS[:2]], quantized=False
    )
    assert report.sentences == 4
