"""What is printed, stored and drawn of an evaluation are the same numbers, and all sentences are among them."""

import json

import pytest

from evaluation.systems import noisy, sentences
from softgaze.evaluation.buckets import LEAST, make_buckets, source_lengths
from softgaze.evaluation.counts import count_system
from softgaze.evaluation.looks import Glance, Looks
from softgaze.evaluation.report import Evaluation, System, chance, record, tables
from softgaze.evaluation.significance import Difference
from softgaze.gaze.alignment import Counts

REFERENCES = sentences()
BUCKETS = tuple(make_buckets(source_lengths(REFERENCES)))
LOOKS = Looks("the best map", tuple(Glance(0.5, 0.75, Counts(4, 4, 3, 4)) for _ in REFERENCES))
SYSTEMS = (
    System("new", count_system(noisy(REFERENCES, 0.2), REFERENCES), LOOKS),
    System("old", count_system(noisy(REFERENCES, 0.5), REFERENCES)),
)


@pytest.fixture(scope="module")
def whole():
    return Evaluation(SYSTEMS, BUCKETS)


def test_the_record_has_every_number_and_survives_json(whole):
    told = json.loads(json.dumps(record(whole), allow_nan=False))
    assert set(told) == {"bands", "by_length", "against", "attention"}
    assert sum(bucket["sentences"] for bucket in told["by_length"]) == len(REFERENCES)
    bands = told["bands"]["scores"]
    assert bands["new"]["bleu"]["score"] == pytest.approx(SYSTEMS[0].counted.score("bleu"), abs=1e-4)
    (against,) = told["against"]
    apart = bands["new"]["chrf"]["score"] - bands["old"]["chrf"]["score"]
    assert against["difference"]["chrf"]["score"] == pytest.approx(apart, abs=1e-3)
    assert against["difference"]["chrf"]["randomisation_p"] < 0.001
    for bucket, own in zip(told["by_length"], against["by_length"], strict=True):
        scores = bucket["scores"]
        assert own["bleu"]["score"] == pytest.approx(
            scores["new"]["bleu"]["score"] - scores["old"]["bleu"]["score"], abs=1e-3
        )
        assert (own["low"], own["high"]) == (bucket["low"], bucket["high"])


def test_signatures_say_how_it_was_resampled(whole):
    assert all("|bs:1000|ar:10000|seed:12345|" in each for each in record(whole)["bands"]["signatures"].values())
    alone = Evaluation(SYSTEMS[:1]).signatures
    assert all("|bs:1000|seed:12345|" in each and "ar:" not in each for each in alone.values())


def test_only_what_was_asked_for_is_told():
    alone = Evaluation(SYSTEMS[1:])
    assert set(record(alone)) == {"bands"}
    assert len(list(tables(alone))) == 1


def test_attention_is_of_those_who_look(whole):
    told = record(whole)["attention"]
    assert set(told) == {"new"}
    assert (told["new"]["entropy"], told["new"]["coverage"], told["new"]["map"]) == (0.5, 0.75, "the best map")
    assert told["new"]["aer"] == pytest.approx(1 - 7 / 8)
    assert sum(bucket["sentences"] for bucket in told["new"]["by_length"]) == len(REFERENCES)


def test_tables_hold_the_numbers_of_the_record(whole):
    shown = {table.title: table for table in tables(whole)}
    assert [title for title in shown if "minus" in title] == ["BLEU, new minus old", "chrF, new minus old"]
    told = record(whole)
    for row, bucket in zip(shown["chrF by source length"].rows, told["by_length"], strict=True):
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
    [longest] = [edge for edge in range(1, 20) if 0 < sum(length > edge for length in lengths) < LEAST][:1]
    cut = Evaluation(SYSTEMS, tuple(make_buckets(lengths, [longest])))
    shown = {table.title: table for table in tables(cut)}["chrF, new minus old"]
    enough, few = shown.rows[1:]
    assert "*" in enough[1]
    assert ("*" in few[1], few[-2:]) == (False, ["–", "–"])
    assert "fewer than 20 sentences" in shown.note
    (against,) = json.loads(json.dumps(record(cut)))["against"]
    enough, few = (each["chrf"] for each in against["by_length"])
    assert enough["bootstrap_p"] < 0.05
    assert (few["bootstrap_p"], few["randomisation_p"], few["is_tested"]) == (None, None, False)
    assert not Difference(**few).is_significant


def test_where_all_is_tested_nothing_is_said_of_too_few(whole):
    assert not any("fewer than" in table.note for table in tables(whole))


def test_p_values_are_never_shown_as_zero():
    assert (chance(0.0009), chance(0.001), chance(1)) == ("<0.001", "0.001", "1.000")
