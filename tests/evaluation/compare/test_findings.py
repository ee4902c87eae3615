"""What is told follows from the numbers: change a number, and the sentence changes."""

import pytest

from softgaze.evaluation.compare.findings import findings, listed


def point(score, low, high, width=1.0):
    return {"low": low, "high": high, "estimate": {"score": score, "low": score - width, "high": score + width}}


def model(name, score, inside, outside=None, arch="rnn", **options):
    ends = [(1, 10), (11, 20), (21, 30)]
    return {
        "name": name,
        "arch": arch,
        "options": options,
        "scores": {"bleu": {"score": score, "low": score - 1, "high": score + 1}},
        "by_length": {"bleu": [point(each, *end) for each, end in zip(inside, ends, strict=False)]},
        "beyond": {"bleu": [point(each, 31 + 10 * place, 40 + 10 * place) for place, each in enumerate(outside)]}
        if outside
        else None,
        "training": {"tokens_per_second": 100 * score},
        "translating": {"tokens_per_second": None},
    }


def told(*models, p=0.01):
    pairs = [
        {"one": one["name"], "other": other["name"], "bleu": {"holm": p}}
        for place, one in enumerate(models)
        for other in models[place + 1 :]
    ]
    return findings({"models": [*models], "differences": pairs})


def test_the_best_is_told_with_what_may_be_luck():
    models = [model("a", 20.0, [20.0]), model("b", 30.0, [30.0]), model("c", 10.0, [10.0])]
    sure, unsure = told(*models)[0], told(*models, p=0.2)[0]
    assert sure == "b has the highest BLEU, 30.0 (29.0–31.0); the difference is more than luck against a and c."
    assert "it may be luck against a (p = 0.200) and c (p = 0.200)" in unsure
    assert "more than luck" not in unsure


def test_models_that_are_equally_good_tie():
    models = [model(name, score, [score]) for name, score in (("a", 50.0), ("b", 50.0), ("c", 10.0))]
    assert told(*models[:2], p=1.0)[0] == "a and b tie for the highest BLEU, 50.0."
    assert told(*models)[0].endswith("tie for the highest BLEU, 50.0; the difference is more than luck against c.")
    pairs = [("a", "b", 1.0), ("a", "c", 0.01), ("b", "c", 0.2)]
    differences = [{"one": one, "other": other, "bleu": {"holm": p}} for one, other, p in pairs]
    assert "it may be luck against c (p = 0.200)" in findings({"models": models, "differences": differences})[0]


def test_length_is_told_only_where_there_are_lengths():
    assert any(
        "BLEU at 1–10 → 21–30 words: a 30.0 → 5.0." in line for line in told(model("a", 20.0, [30.0, 20.0, 5.0]))
    )
    assert told(model("a", 20.0, [20.0])) == []


@pytest.mark.parametrize(
    ("outside", "word"),
    [
        ([10.0, 2.0], "falls at 31–40"),
        ([29.5, 2.0], "falls at 41–50"),  # the first bucket beyond is not all there is to see
        ([40.0, 2.0], "falls at 41–50"),
        ([29.5, 30.0], "no clear change"),
        ([40.0, 41.0], "rises at 31–40"),
        ([29.5, 41.0], "rises at 41–50"),
    ],
)
def test_beyond_the_trained_lengths_the_numbers_decide(outside, word):
    lines = told(model("t", 30.0, [30.0, 30.0, 30.0], outside, arch="transformer", positions="sinusoidal"))
    [beyond] = [line for line in lines if line.startswith("Beyond")]
    assert f"21–30 → 31–40 → 41–50 words: t 30.0 → {outside[0]:.1f} → {outside[1]:.1f} ({word})" in beyond
    assert any("t (sinusoidal positions) falls." in line for line in lines) == word.startswith("falls")


def test_a_transformer_falls_too_only_if_another_model_does():
    own = model("t", 30.0, [30.0, 30.0, 30.0], [29.5, 2.0], arch="transformer", positions="sinusoidal")
    fallen, steady = (model("r", 30.0, [30.0, 30.0, 30.0], [29.5, last]) for last in (2.0, 30.0))
    assert any("t (sinusoidal positions) falls too." in line for line in told(own, fallen))
    assert any("t (sinusoidal positions) falls." in line for line in told(own, steady))


def test_another_model_that_falls_is_no_transformer():
    lines = told(model("r", 30.0, [30.0, 30.0, 30.0], [1.0]))
    assert any("r 30.0 → 1.0 (falls at 31–40)" in line for line in lines)
    assert not any("too" in line for line in lines)


def test_who_has_little_cannot_fall_and_who_has_nothing_is_not_compared():
    lines = told(model("r", 30.0, [30.0, 3.0], [0.1]))
    assert any("r 3.0 → 0.1 (had little to lose)" in line for line in lines)
    lines = told(model("r", 0.2, [0.2, 0.2], [0.1]), model("s", 0.1, [0.1, 0.1], [0.1]))
    assert lines[0].startswith("No model has learnt enough")
    assert not any("highest BLEU," in line or line.startswith("Beyond") for line in lines)


def test_speeds_that_were_measured_are_told():
    lines = told(model("a", 20.0, [20.0]), model("b", 30.0, [30.0]))
    assert lines[-1] == "Training, b is fastest with 3,000 tokens a second, 1.5 times as fast as a."


@pytest.mark.parametrize(
    ("rates", "is_told"), [((100, 96, 20), False), ((100, 94, 20), True), ((100, 100), False), ((100,), False)]
)
def test_who_learns_fastest_is_told_only_where_it_is_clear(rates, is_told):
    models = [model(f"m{place}", 20.0, [20.0]) for place, _ in enumerate(rates)]
    for each, rate in zip(models, rates, strict=True):
        each["training"]["tokens_per_second"] = rate
    assert any(line.startswith("Training, m0 is fastest") for line in told(*models)) == is_told


@pytest.mark.parametrize(
    ("spreads", "is_told"),
    [
        (([95, 105], [60, 90]), True),
        (([85, 105], [60, 90]), False),
        (([95, 105], None), False),
        ((None, None), False),
    ],
)
def test_who_translates_fastest_is_told_only_where_no_pass_says_otherwise(spreads, is_told):
    models = [model("a", 20.0, [20.0]), model("b", 20.0, [20.0])]
    for each, rate, spread in zip(models, (100, 80), spreads, strict=True):
        each["translating"] = {"tokens_per_second": rate, **({"spread": spread} if spread else {})}
    lines = [line for line in told(*models) if line.startswith("Translating")]
    assert lines == (["Translating, a is fastest with 100 tokens a second, 1.2 times as fast as b."] if is_told else [])


def test_names_are_listed():
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
