from types import SimpleNamespace

import pytest
import torch

from bundles import lines
from engines.exported import changed, exported, trained_bundle
from softgaze.errors import DivergedError
from softgaze.evaluation.proof import NEAR, Proof, Quality, likeness, near, prove, quality, same
from softgaze.symbols import END
from softgaze.translator import Translation, load

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


def test_an_export_in_full_precision_is_proven(trained, tmp_path):
    made = load(exported(trained_bundle(), tmp_path / "made", "ctranslate2"), "cpu", full=False)
    proof = prove(trained, made, PAIRS, rounded=False)
    proof.check()
    assert proof.log_probability < NEAR
    assert (proof.sentences, proof.quality) == (SOURCES, None)
    assert f"0 of {SOURCES} greedy outputs are others" in proof.tokens()


def test_a_model_that_drifted_is_found_and_it_is_said_by_how_much(trained, tmp_path):
    proof = prove(trained, stirred(tmp_path, 0.02), PAIRS, rounded=False)
    assert proof.log_probability > NEAR
    with pytest.raises(
        DivergedError, match=f"not the same: log-probabilities differ by up to {proof.log_probability:.1g}"
    ):
        proof.check()


def test_a_model_that_is_worse_is_found(trained, tmp_path):
    proof = prove(trained, stirred(tmp_path, 2.0), PAIRS, rounded=True)
    assert proof.quality.after < proof.quality.before - 1
    assert proof.same < proof.sentences
    with pytest.raises(DivergedError, match=r"is worse: BLEU .* after .* on 40 pairs"):
        proof.check()


def test_a_model_equals_itself(trained):
    proof = prove(trained, trained, PAIRS, rounded=True)
    proof.check()
    assert (proof.log_probability, proof.same, proof.near) == (0, SOURCES, 0)
    assert proof.quality.before == proof.quality.after


@pytest.mark.parametrize(
    ("after", "p_value", "kept"),
    [(50.0, 0.5, True), (49.8, 0.5, True), (49.8, 0.01, False), (49.6, 0.5, False), (51.0, 0.01, True)],
)
def test_a_little_worse_is_allowed_unless_it_is_certain(after, p_value, kept):
    quality = Quality(50.0, after, p_value, 100)
    assert quality.is_kept is kept
    proof = Proof(1.0, 0, 0, 9, quality)
    if kept:
        proof.check()
    else:
        with pytest.raises(DivergedError):
            proof.check()


def test_one_sentence_that_got_worse_is_no_certain_loss():
    """A resampled set of one sentence is always that sentence, so the bootstrap alone would be sure of anything."""
    pair = ("a", "the big dog sees the small cat")
    found = quality(Scripted("the big dog sees the small cat"), Scripted("the big dog sees the cat"), [pair])
    assert found.after < found.before
    assert found.p_value == 1


class Scripted:
    """A translator that writes one text, whatever it reads."""

    def __init__(self, text):
        self.text = text
        self.bundle = SimpleNamespace(description=SimpleNamespace(target_language="en"))

    def translate(self, sources):
        return [Translation(source, self.text, 0.0, ()) for source in sources]


def test_texts_may_part_only_where_two_tokens_were_all_but_equally_likely(trained):
    [source] = trained.readings(["the dog"], trained.translate("a").search)[0]
    written = trained.translate("the dog", beam=1).parts[0]
    another = written._replace(target_ids=(*written.target_ids[:-1], 99))
    assert same(written, written)
    assert not same(written, another)
    assert not near(trained, written, another)
    assert near(Tied(trained), written, another)
    assert not near(Tied(trained), written, written._replace(finished=False))  # nothing to compare: one is cut
    one, other = (Translation("", "", 0.0, (part,)) for part in (written, another))
    assert [likeness(trained, one, each) for each in (one, other)] == ["same", "other"]
    assert likeness(Tied(trained), one, other) == "near"
    assert likeness(trained, one, Translation("", "", 0.0, ())) == "other"
    assert source.ids[-1] == END


class Tied:
    """A translator to whom everything is equally likely."""

    def __init__(self, translator):
        self.engine = self
        self.bundle = translator.bundle

    def log_probabilities(self, parts):
        return [torch.zeros(len(part.target)).numpy() for part in parts]


def test_pairs_too_long_for_the_model_are_left_out(trained):
    proof = prove(trained, trained, [(" ".join(["dog"] * 500), "a dog"), ("", ""), *PAIRS[:2]], rounded=False)
    assert proof.sentences == 4
