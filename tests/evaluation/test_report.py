"""What is printed, stored and drawn of an evaluation are the same numbers, and all sentences are among them."""

import json
import subprocess
import sys

import pytest

from evaluation.systems import noisy, sentences
from softgaze.evaluation.attention_metrics import AttentionMetrics, SentenceAttention
from softgaze.evaluation.by_length import MIN_SENTENCES, make_buckets, source_lengths
from softgaze.evaluation.report import (
    Evaluation,
    System,
    evaluation_page,
    evaluation_record,
    evaluation_tables,
    p_cell,
)
from softgaze.evaluation.significance import Difference, count_ngrams
from softgaze.explain.alignment import AlignmentCounts

REFERENCES = sentences()
BUCKETS = tuple(make_buckets(source_lengths(REFERENCES)))
ATTENTION = AttentionMetrics(
    "the best map", tuple(SentenceAttention(0.5, 0.75, AlignmentCounts(4, 4, 3, 4)) for _ in REFERENCES)
)
SYSTEMS = (
    System("new", count_ngrams(noisy(REFERENCES, 0.2), REFERENCES), ATTENTION),
    System("old", count_ngrams(noisy(REFERENCES, 0.5), REFERENCES)),
)


@pytest.fixture(scope="module")
def whole():
    return Evaluation(SYSTEMS, BUCKETS)


def test_the_record_has_every_number_and_survives_json(whole):
    record = json.loads(json.dumps(evaluation_record(whole), allow_nan=False))
    assert set(record) == {"confidence_intervals", "by_length", "against", "attention"}
    assert sum(bucket["sentences"] for bucket in record["by_length"]) == len(REFERENCES)
    scores = record["confidence_intervals"]["scores"]
    assert scores["new"]["bleu"]["score"] == pytest.approx(SYSTEMS[0].stats.score("bleu"), abs=1e-4)
    (against,) = record["against"]
    apart = scores["new"]["chrf"]["score"] - scores["old"]["chrf"]["score"]
    assert against["difference"]["chrf"]["score"] == pytest.approx(apart, abs=1e-3)
    assert against["difference"]["chrf"]["randomisation_p"] < 0.001
    for bucket, own in zip(record["by_length"], against["by_length"], strict=True):
        new, old = (bucket["scores"][name]["bleu"]["score"] for name in ("new", "old"))
        assert own["bleu"]["score"] == pytest.approx(new - old, abs=1e-3)
        assert (own["low"], own["high"]) == (bucket["low"], bucket["high"])


def test_signatures_name_the_resampling(whole):
    assert all(
        "|bs:1000|ar:10000|seed:12345|" in each
        for each in evaluation_record(whole)["confidence_intervals"]["signatures"].values()
    )
    alone = Evaluation(SYSTEMS[:1]).signatures
    assert all("|bs:1000|seed:12345|" in each and "ar:" not in each for each in alone.values())


def test_only_measured_results_are_in_the_record():
    alone = Evaluation(SYSTEMS[1:])
    assert set(evaluation_record(alone)) == {"confidence_intervals"}
    assert len(list(evaluation_tables(alone))) == 1


def test_only_systems_with_attention_have_metrics_of_it(whole):
    record = evaluation_record(whole)["attention"]
    assert set(record) == {"new"}
    assert (record["new"]["entropy"], record["new"]["coverage"], record["new"]["map"]) == (0.5, 0.75, "the best map")
    assert record["new"]["aer"] == pytest.approx(1 - 7 / 8)
    assert sum(bucket["sentences"] for bucket in record["new"]["by_length"]) == len(REFERENCES)


def test_tables_hold_the_numbers_of_the_record(whole):
    shown = {table.title: table for table in evaluation_tables(whole)}
    assert [title for title in shown if "minus" in title] == ["BLEU, new minus old", "chrF, new minus old"]
    record = evaluation_record(whole)
    for row, bucket in zip(shown["chrF by source length"].rows, record["by_length"], strict=True):
        assert int(row[1]) == bucket["sentences"]
        for cell, name in zip(row[2:], ("new", "old"), strict=True):
            own = bucket["scores"][name]["chrf"]
            assert cell == f"{own['score']:.2f} ({own['low']:.1f}–{own['high']:.1f})"
    first = shown["BLEU, new minus old"].rows[0]
    assert (first[0], first[-2:]) == ("all", ["<0.001", "<0.001"])
    assert first[1].endswith("*")
    assert shown["Attention of new"].rows[0][1:] == ["120", "0.50", "75.0 %", "12.5 %", "100.0 %", "75.0 %"]


def test_a_bucket_of_too_few_sentences_has_no_p_value_and_no_star():
    lengths = source_lengths(REFERENCES)
    [longest] = [edge for edge in range(1, 20) if 0 < sum(length > edge for length in lengths) < MIN_SENTENCES][:1]
    cut = Evaluation(SYSTEMS, tuple(make_buckets(lengths, [longest])))
    shown = {table.title: table for table in evaluation_tables(cut)}["chrF, new minus old"]
    enough, few = shown.rows[1:]
    assert "*" in enough[1]
    assert ("*" in few[1], few[-2:]) == (False, ["–", "–"])
    assert "fewer than 20 sentences" in shown.note
    (against,) = json.loads(json.dumps(evaluation_record(cut)))["against"]
    enough, few = (each["chrf"] for each in against["by_length"])
    assert enough["bootstrap_p"] < 0.05
    assert (few["bootstrap_p"], few["randomisation_p"], few["is_tested"]) == (None, None, False)
    assert not Difference(**few).is_significant


def test_p_values_are_never_shown_as_zero():
    assert (p_cell(0.0009), p_cell(0.001), p_cell(1)) == ("<0.001", "0.001", "1.000")


def test_the_page_has_all_tables_signatures_and_meanings(whole):
    page = evaluation_page(whole, {"model": "runs/<new>"})
    for table in evaluation_tables(whole):
        assert table.html() in page
    for signature in whole.signatures.values():
        assert signature in page
    assert "runs/&lt;new&gt;" in page
    assert "<svg" in page
    for word in ("bootstrap p", "randomisation p", "entropy", "AER"):
        assert f"<dt>{word}</dt>" in page


def test_reports_need_no_torch():
    code = "import softgaze.evaluation.report, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
