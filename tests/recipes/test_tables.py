"""Documents quote what was measured, and nothing else."""

import json

import pytest

from recipes import tables

FOUND = {
    "bleu": 36.957,
    "chrf": 60.0,
    "lower_cased": {"bleu": 37.5, "signature": "nrefs:1|case:lc"},
    "signatures": {"bleu": "nrefs:1|case:mixed", "chrf": "nrefs:1|chrF2"},
    "training": {"parameters": 2284032, "minutes": 59.8},
    "date": "2026-01-02",
    "commit": "0123456789abcdef",
    "machine": "a computer",
}
DOCUMENT = "# Toy\n\n<!-- {0}: toy -->\nold\n<!-- end of {0} -->\n\nafter\n"


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A recipe whose results a test writes down."""
    monkeypatch.setattr(tables, "HERE", tmp_path)
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/recipe.yaml").write_text("models: [rnn, transformer]\n")
    return lambda results: (tmp_path / "toy/results.json").write_text(json.dumps(results))


def filled(kind, name="page.md"):
    """Fill a document with one marker; filling it again changes nothing."""
    path = tables.ROOT / name
    text = tables.filled(DOCUMENT.format(kind), path)
    assert "\nold\n" not in text
    assert text.endswith(f"<!-- end of {kind} -->\n\nafter\n")
    assert tables.filled(text, path) == text
    return text


@pytest.mark.parametrize("path", tables.documents(), ids=lambda path: str(path.relative_to(tables.ROOT)))
def test_every_document_quotes_the_results_as_they_are(path):
    text = path.read_text(encoding="utf-8")
    assert tables.filled(text, path) == text


@pytest.mark.parametrize("recipe", tables.recipes())
def test_every_picture_shows_the_results_as_they_are(recipe):
    path = tables.picture_path(recipe)
    assert (path.read_text(encoding="utf-8") if path.exists() else None) == tables.picture(recipe)


def test_a_table_has_a_row_for_each_model_and_its_figures(toy):
    toy({"transformer": FOUND, "rnn": {**FOUND, "bleu": 30.0, "commit": None}})
    after = filled("results")
    assert "| `transformer` | 2,284,032 | 60 | 36.96 | 37.50 | 60.00 |" in after
    assert after.index("| `rnn` | 2,284,032 | 60 | 30.00") < after.index("| `transformer`")  # as the recipe has them
    assert "2026-01-02, commit 0123456, a computer" in after
    assert "on dev" not in after


def test_a_table_shows_whether_a_model_has_converged(toy):
    course = [[step, 3.0, bleu] for step, bleu in ((100, 9.0), (200, 20.0), (300, 25.04), (400, 26.0))]
    toy({"transformer": {**FOUND, "course": course}, "rnn": FOUND})
    after = filled("results")
    assert "| 60.00 | 20.0, 25.0, 26.0 |" in after
    assert "| 60.00 | – |" in after


def test_bleu_of_words_cut_another_way_has_a_column_where_it_was_counted(toy):
    words = {"name": "moses", "bleu": 37.25, "signature": "nrefs:1|tok:none, sacremoses"}
    toy({"transformer": {**FOUND, "words": words}, "rnn": FOUND})
    after = filled("results")
    assert "| chrF | BLEU, lower-cased, words by moses |" in after
    assert "| `transformer` | 2,284,032 | 60 | 36.96 | 37.50 | 60.00 | 37.25 |" in after
    assert "| `rnn` | 2,284,032 | 60 | 36.96 | 37.50 | 60.00 | – |" in after
    assert "`nrefs:1|tok:none, sacremoses`" in after
    assert "moses 단어" in filled("results", "README.ko.md")


@pytest.mark.parametrize("what", ["results", "lengths", "differences"])
def test_what_was_not_measured_is_said_to_be_missing(what, toy):
    assert "Not measured yet." in filled(what)
    assert "아직 측정하지 않았어요." in filled(what, "docs/guide/ko/page.md")
    if what != "results":
        toy({"transformer": FOUND})
        assert "Not measured yet." in filled(what)
        assert tables.picture("toy") is None


def found_by_length(name, score, *against):
    """Two buckets of one model, with how it differs from others."""
    estimate = {"score": score, "low": score - 1, "high": score + 1}
    both = {"bleu": estimate, "chrf": estimate}
    other = {"score": 5.0, "low": 4.0, "high": 6.0, "bootstrap_p": 0.001, "randomisation_p": 0.0002}
    luck = {**other, "randomisation_p": 0.06}
    buckets = [
        {"low": 4, "high": 10, "sentences": 600, "median_length": 8, "scores": {name: both}},
        {"low": 11, "high": 11, "sentences": 400, "median_length": 11, "scores": {name: both}},
    ]
    difference = {"difference": {"bleu": other, "chrf": luck}, "by_length": [{"bleu": other}, {"bleu": luck}]}
    return {
        "confidence_intervals": {"signatures": {"bleu": "bs:1000"}, "scores": {name: both}},
        "by_length": buckets,
        "against": [{"name": each, **difference} for each in against],
    }


@pytest.fixture
def measured(toy):
    """Two models, the second against the first."""
    rnn, other = found_by_length("rnn", 30.0), found_by_length("transformer", 35.0, "rnn")
    del rnn["against"]
    toy({"rnn": {**FOUND, "lengths": rnn}, "transformer": {**FOUND, "lengths": other}})


def test_lengths_are_a_picture_and_a_table_that_marks_what_is_no_luck(measured):
    after = filled("lengths")
    assert "(docs/pictures/toy-by-length.svg)" in after
    assert "| 4–10 | 600 | 30.00 | 35.00 (**+5.00**) |" in after
    assert "| 11 | 400 | 30.00 | 35.00 (+5.00) |" in after
    assert "| all | 1,000 | 30.00 | 35.00 (**+5.00**) |" in after
    assert "more than `rnn`" in after
    assert "`bs:1000`" in after
    drawn = tables.picture("toy")
    assert all(f"{name}, 4–10 words: {score}" in drawn for name, score in (("rnn", "30.0"), ("transformer", "35.0")))


def test_without_the_baseline_s_own_lengths_nothing_is_compared(toy):
    toy({"rnn": FOUND, "transformer": {**FOUND, "lengths": found_by_length("transformer", 35.0, "rnn")}})
    assert all("Not measured yet." in filled(kind) for kind in ("lengths", "differences"))


def test_a_korean_document_has_the_same_figures_in_korean(measured):
    after = filled("lengths", "docs/guide/ko/page.md")
    assert "(../../pictures/toy-by-length.svg)" in after
    assert "| 전체 | 1,000 | 30.00 | 35.00 (**+5.00**) |" in after
    assert "`rnn`과의 차이" in after
    assert "| `transformer` | 2,284,032 | 60 |" in filled("results", "README.ko.md")


def test_what_is_below_zero_has_a_minus_sign_and_names_keep_their_hyphens():
    assert tables.rows(["", "more"], [["`rnn-2`", "-5.11 (**-4.97**)"]]).endswith("| `rnn-2` | −5.11 (**−4.97**) |\n")


def test_differences_have_both_p_values(measured):
    after = filled("differences")
    assert "| `transformer` − `rnn` | BLEU | +5.00 | +4.00 to +6.00 | 0.001 | <0.001 |" in after
    assert "| `transformer` − `rnn` | chrF | +5.00 | +4.00 to +6.00 | 0.001 | 0.060 |" in after
