"""The report on fine-tuning: the scores of `evaluate`, and the sentences whose chrF changed most."""

import json

import pytest

from softgaze.evaluation.before_after import (
    before_after_page,
    before_after_text,
    compare_translations,
    write_before_after,
)
from softgaze.metrics import score, sentence_scores

WORDS = ["um", "cão", "vê", "o", "gato", "e", "a", "casa", "azul", "no", "fim", "da", "rua", "velha"]
PAIRS = [(f"source {n} <b>", " ".join(WORDS[n % 5 : n % 5 + 6])) for n in range(30)]
REFERENCES = [reference for _, reference in PAIRS]
BEFORE = [text.replace("gato", "rato").replace("casa", "mesa") for text in REFERENCES]
AFTER = [text if n % 3 else before for n, (text, before) in enumerate(zip(REFERENCES, BEFORE, strict=True))]
AFTER[4] = "nada"


@pytest.fixture(scope="module")
def result():
    return compare_translations(PAIRS, BEFORE, AFTER, language="pt", facts={"after": "runs/<own>"})


def test_scores_and_tests_are_those_of_an_evaluation(result):
    record = result.to_dict()
    for name, texts in (("before", BEFORE), ("after", AFTER)):
        expected = score(texts, REFERENCES, language="pt", ter=False)
        scores = record["confidence_intervals"]["scores"][name]
        assert scores["bleu"]["score"] == pytest.approx(expected.bleu, abs=1e-3)
        assert scores["chrf"]["score"] == pytest.approx(expected.chrf, abs=1e-3)
    [against] = record["against"]
    assert 0 < against["difference"]["bleu"]["bootstrap_p"] < 0.05


def test_changed_sentences_are_ranked_by_their_gain(result):
    assert {change.line - 1 for change in result.changes} == {n for n in range(30) if BEFORE[n] != AFTER[n]}
    gains = [change.change for change in result.changes]
    assert gains == sorted(gains, reverse=True)
    assert result.losses[0].after == "nada"
    for change in result.changes:
        assert change.chrf_after == sentence_scores(change.after, change.reference)["chrf"]


def test_the_terminal_has_scores_gains_and_losses(result):
    text = before_after_text(result)
    assert text.count("largest gain") == 3
    assert text.count("largest loss") == 1
    assert "nada" in text


def test_the_files_hold_everything_and_escape_it(result, tmp_path):
    paths = write_before_after(tmp_path, result)
    assert json.loads(paths[0].read_text())["changed_sentences"][-1]["after"] == "nada"
    page = paths[1].read_text()
    assert "<b>" not in page
    assert "<own>" not in page
    assert "source 4 &lt;b&gt;" in page


def test_equal_translations_have_no_changes():
    result = compare_translations(PAIRS, BEFORE, BEFORE)
    assert result.changes == ()
    assert result.to_dict()["against"][0]["difference"]["bleu"]["randomisation_p"] == 1
    assert "largest" not in before_after_text(result)
    assert "Largest gain in chrF, 0 sentences" in before_after_page(result)
