"""The page holds the tables, the chart and the signatures, and explains the words it uses; nothing needs torch."""

import subprocess
import sys

import pytest

from evaluation.test_report import BUCKETS, SYSTEMS
from softgaze.evaluation.page import evaluation_page
from softgaze.evaluation.report import Evaluation, tables


@pytest.fixture(scope="module")
def whole():
    return Evaluation(SYSTEMS, BUCKETS)


def test_everything_is_on_the_page(whole):
    page = evaluation_page(whole, {"model": "runs/<new>"})
    for table in tables(whole):
        assert table.html() in page
    for signature in whole.signatures.values():
        assert signature in page
    assert "runs/&lt;new&gt;" in page
    assert "<svg" in page
    for word in ("bootstrap p", "randomisation p", "entropy", "AER"):
        assert f"<dt>{word}</dt>" in page


def test_what_is_not_there_is_not_explained():
    page = evaluation_page(Evaluation(SYSTEMS[1:]), {})
    assert "<svg" not in page
    assert "<dt>95 % band</dt>" in page
    assert "<dt>AER</dt>" not in page


def test_reports_need_no_torch():
    code = "import softgaze.evaluation.page, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
