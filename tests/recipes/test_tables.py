"""Documents quote what was measured, and nothing else."""

import json

import pytest

from recipes import tables


@pytest.mark.parametrize("path", tables.documents(), ids=lambda path: str(path.relative_to(tables.ROOT)))
def test_every_document_quotes_the_results_as_they_are(path):
    text = path.read_text(encoding="utf-8")
    assert tables.filled(text) == text


def test_a_table_has_a_row_for_each_model_and_its_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "HERE", tmp_path)
    found = {
        "bleu": 36.957,
        "chrf": 60.0,
        "lower_cased": {"bleu": 37.5, "signature": "nrefs:1|case:lc"},
        "signatures": {"bleu": "nrefs:1|case:mixed", "chrf": "nrefs:1|chrF2"},
        "training": {"parameters": 2284032, "minutes": 59.8},
        "date": "2026-01-02",
        "commit": "0123456789abcdef",
        "machine": "a computer",
    }
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/results.json").write_text(json.dumps({"transformer": found}))
    before = "# Toy\n\n<!-- results: toy -->\nold\n<!-- end of results -->\n\nafter\n"
    after = tables.filled(before)
    assert "| `transformer` | 2,284,032 | 60 | 36.96 | 37.50 | 60.00 |" in after
    assert "2026-01-02, commit 0123456, a computer" in after
    assert "old" not in after
    assert after.endswith("<!-- end of results -->\n\nafter\n")
    assert tables.filled(after) == after
