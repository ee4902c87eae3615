"""Tables of how models learn."""

import json

from benchmarks.learning import BUDGETS, STARTS, Validation, budget_table, first_at, level_table, scored, start_table
from benchmarks.training import ROOT
from bundles import tokenizer
from softgaze.bundle import Tokenizers


def course(*scores):
    return [Validation(250 * number, 2.0 * number, 5.0 - number, score) for number, score in enumerate(scores, 1)]


def test_a_level_is_reached_at_the_first_validation_above_it():
    found = course(12, 31, 29, 36)
    assert first_at(found, 30) == "4.0"
    assert first_at(found, 35) == "8.0"
    assert first_at(found, 36.1) == "not reached"
    assert "| ours | 4.0 | 8.0 | 36.0 |" in level_table({"ours": found})


def test_the_page_about_the_warm_start_shows_the_recorded_runs():
    rows = json.loads(STARTS.read_text(encoding="utf-8"))
    assert rows
    assert start_table(rows) in (ROOT / "docs" / "warm-start.md").read_text(encoding="utf-8")


def test_the_page_shows_the_recorded_budgets():
    rows = json.loads(BUDGETS.read_text(encoding="utf-8"))
    assert rows
    assert budget_table(rows) in (ROOT / "docs" / "warm-start.md").read_text(encoding="utf-8")


def test_what_a_peer_said_in_pieces_is_scored_as_text(tmp_path):
    lines = ["ein Haus steht dort.", "der Hund schläft."]
    (tmp_path / "dev.de").write_text("\n".join(lines) + "\n")
    both = Tokenizers(tokenizer(), tokenizer())
    said = [" ".join(both.target.pieces(ids)) for ids in both.target.encode(lines)]
    row = {"seconds": 90, "step": 7, "sentences": said}
    (tmp_path / "validations.jsonl").write_text(json.dumps(row) + "\n")

    [seen] = scored(tmp_path / "validations.jsonl", both.target, tmp_path / "dev.de")
    assert (seen.step, seen.minutes, round(seen.bleu)) == (7, 1.5, 100)
