"""Conclusions follow from the numbers: change a number, and the conclusion changes."""

import pytest

from softgaze.evaluation.compare.conclusions import draw_conclusions


def point(score, low, high):
    return {"low": low, "high": high, "estimate": {"score": score, "low": score - 1.0, "high": score + 1.0}}


def model(name, score, inside, outside=None, arch="rnn", **options):
    ranges = [(1, 10), (11, 20), (21, 30)]
    beyond = [point(value, 31 + 10 * index, 40 + 10 * index) for index, value in enumerate(outside or ())]
    return {
        "name": name,
        "arch": arch,
        "options": options,
        "scores": {"bleu": {"score": score, "low": score - 1, "high": score + 1}},
        "by_length": {"bleu": [point(value, *edges) for value, edges in zip(inside, ranges, strict=False)]},
        "beyond": {"bleu": beyond} if beyond else None,
        "training": {"tokens_per_second": 100 * score},
        "translating": {"tokens_per_second": None},
    }


def conclude(*models, p=0.01, differences=None, **record):
    differences = differences or [
        (one["name"], other["name"], p) for index, one in enumerate(models) for other in models[index + 1 :]
    ]
    pairs = [{"one": one, "other": other, "bleu": {"holm": p}} for one, other, p in differences]
    return draw_conclusions({"models": [*models], "differences": pairs, **record})


def line(lines, start):
    return next((line for line in lines if line.startswith(start)), "")


def test_the_best_model_is_named_with_the_models_it_beats():
    models = [model("a", 20.0, [20.0]), model("b", 30.0, [30.0]), model("c", 10.0, [10.0])]
    sure, unsure = (line(conclude(*models, p=p), "Highest BLEU: b, 30.0 (29.0–31.0)") for p in (0.01, 0.2))
    assert "; significantly better than a, c" in sure
    assert "; not significantly better than a (p = 0.200), c (p = 0.200)" in unsure


def test_equally_good_models_tie_and_the_larger_p_value_counts():
    models = [model(name, score, [score]) for name, score in (("a", 50.0), ("b", 50.0), ("c", 10.0))]
    assert "better" not in line(conclude(*models[:2], p=1.0), "Highest BLEU: a, b")
    differences = [("a", "b", 1.0), ("a", "c", 0.01), ("b", "c", 0.2)]
    assert "not significantly better than c (p = 0.200)" in line(
        conclude(*models, differences=differences), "Highest BLEU: a, b"
    )


def test_length_is_mentioned_only_with_several_buckets():
    assert "a 30.0 → 5.0" in line(conclude(model("a", 20.0, [30.0, 20.0, 5.0])), "BLEU at 1–10 → 21–30 words")
    assert conclude(model("a", 20.0, [20.0])) == []


@pytest.mark.parametrize(
    ("outside", "change"),
    [
        ([10.0, 2.0], "falls at 31–40"),
        ([29.5, 2.0], "falls at 41–50"),  # not only the first bucket counts
        ([40.0, 2.0], "falls at 41–50"),
        ([29.5, 30.0], "no clear change"),
        ([40.0, 41.0], "rises at 31–40"),
        ([29.5, 41.0], "rises at 41–50"),
    ],
)
def test_changes_beyond_the_trained_lengths_follow_from_the_intervals(outside, change):
    lines = conclude(model("t", 30.0, [30.0, 30.0, 30.0], outside, arch="transformer", positions="sinusoidal"))
    scores = f"t 30.0 → {outside[0]:.1f} → {outside[1]:.1f} ({change})"
    assert scores in line(lines, "Beyond the trained lengths, BLEU at 21–30 → 31–40 → 41–50 words")
    is_named = any("t (sinusoidal positions)" in text for text in lines)
    assert is_named == change.startswith("falls")


def test_only_transformers_are_named_as_such():
    lines = conclude(model("r", 30.0, [30.0, 30.0, 30.0], [1.0]))
    assert "(falls at 31–40)" in line(lines, "Beyond")
    assert not any("Transformers" in text for text in lines)


def test_a_low_score_cannot_fall_and_very_low_ones_are_not_compared():
    assert "r 3.0 → 0.1 (too low to fall)" in line(conclude(model("r", 30.0, [30.0, 3.0], [0.1])), "Beyond")
    lines = conclude(model("r", 0.2, [0.2, 0.2], [0.1]), model("s", 0.1, [0.1, 0.1], [0.1]))
    assert "too low to compare" in lines[0]
    assert not line(lines, "Highest BLEU:")
    assert not line(lines, "Beyond")


@pytest.mark.parametrize(
    ("speeds", "is_clear"), [((100, 96, 20), False), ((100, 94, 20), True), ((100, 100), False), ((100,), False)]
)
def test_the_fastest_training_is_named_only_if_clear(speeds, is_clear):
    models = [model(f"m{index}", 20.0, [20.0]) for index, _ in enumerate(speeds)]
    for each, speed in zip(models, speeds, strict=True):
        each["training"]["tokens_per_second"] = speed
    assert bool(line(conclude(*models), "Fastest training: m0, 100 tokens/s, 5.0 times")) == is_clear


@pytest.mark.parametrize(
    ("spreads", "is_clear"),
    [
        (([95, 105], [60, 90]), True),
        (([85, 105], [60, 90]), False),
        (([95, 105], None), False),
        ((None, None), False),
    ],
)
def test_the_fastest_translation_is_named_only_if_no_round_says_otherwise(spreads, is_clear):
    models = [model("a", 20.0, [20.0]), model("b", 20.0, [20.0])]
    for each, speed, spread in zip(models, (100, 80), spreads, strict=True):
        each["translating"] = {"tokens_per_second": speed, **({"spread": spread} if spread else {})}
    assert bool(line(conclude(*models), "Fastest translation: a, 100 tokens/s, 1.2 times")) == is_clear


def test_failed_jobs_and_exceeded_budgets_come_first():
    trained = model("a", 20.0, [20.0])
    trained["training"]["step"] = 12
    lines = conclude(trained, failed=[{"name": "b", "job": "train", "exit_code": 5}], budget={"steps": 8})
    assert lines[0].startswith("b ")
    assert "exit code 5" in lines[0]
    assert lines[1].startswith("a ")
    assert "12 updates" in lines[1]
