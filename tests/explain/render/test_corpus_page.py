"""The page of a corpus report: rankings, sorting, search, open sentences; large corpora; hostile words."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from softgaze.explain import Attention
from softgaze.explain.corpus_report import RANKINGS, report_corpus, report_sentence
from softgaze.explain.render.pages import corpus_page

FACTS = {"model": "runs/m", "corpus": "test.en", "beam_size": 5, "shows": "cross-attention"}
HOSTILE = ["</script><img", "src=x", "onerror=alert(1)>", "&amp;", "😀", "학교에", "مدرسة"]


def weights_of(line, rows=3, columns=4):
    return np.random.default_rng(line).dirichlet(np.ones(columns), rows)


def make(line, source=("the", "dog", "runs"), output=("개가", "달려요", "달려요"), **changes):
    """A sentence without problems unless `changes` add some."""
    attention = Attention.of([*source, "⏎"], output, weights_of(line, len(output), len(source) + 1))
    report = report_sentence(line, attention, np.ones((len(output) + 1, len(source))), reference="개가 달려요")
    return replace(report, **{"repeated": (), "faithfulness": 0.5 + line / 10_000, **changes})


def five_sentences():
    """Five sentences with one problem item."""
    return [
        make(1, needed=(1.0, -2.5, 1.0), omitted=(1,)),
        make(2, repeated=(2,)),
        make(3, faithfulness=-0.3, source=("a", "cat"), needed=(1.0, 1.0), covered=(1.0, 1.0)),
        make(4, needed=(-0.9, 1.0, 1.0), omitted=(0,), faithfulness=0.25),
        make(5, scores={"chrf": 40.0, "bleu": 10.0}),
    ]


def open_report(open_page, sentences, kept=1000, **options):
    report = report_corpus(sentences, kept)
    return open_page(corpus_page(report, FACTS), **options), report


def lines(page):
    return [int(item.replace(",", "")) for item in page.locator("tbody tr[data-line] td:first-child").all_inner_texts()]


def show_all(page):
    page.locator("#all").click()


def test_opens_with_the_worst_of_the_first_ranking(open_page):
    page, report = open_report(open_page, five_sentences())
    first = next(name for name in RANKINGS if report.worst(name))
    assert lines(page) == [item.line for item in report.worst(first)]
    assert page.locator("#rankings [aria-pressed=true]").get_attribute("data-name") == first


@pytest.mark.parametrize("name", ["omitted", "repetition", "faithfulness", "chrf"])
def test_rankings_equal_the_report(open_page, name):
    page, report = open_report(open_page, five_sentences())
    button = page.locator(f"#rankings [data-name={name}]")
    if button.get_attribute("aria-pressed") == "false":
        button.click()
    assert lines(page) == [item.line for item in report.worst(name)]
    assert button.locator("b").inner_text() == str(report.summary()["rankings"][name])
    assert RANKINGS[name].explained in page.locator("#explanation").inner_text()
    button.click()  # shows all again
    assert lines(page) == [1, 2, 3, 4, 5]


def test_headings_sort_in_both_directions(open_page):
    page, report = open_report(open_page, five_sentences())
    show_all(page)
    values = {item.line: item.faithfulness for item in report.kept()}
    heading = page.locator("th[data-name=faithfulness]")
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert lines(page) == sorted(values, key=values.get)
    page.keyboard.press("Enter")  # the heading keeps the focus
    assert lines(page) == sorted(values, key=values.get, reverse=True)


def test_search_by_word_and_line_number(open_page):
    page, _ = open_report(open_page, five_sentences())
    show_all(page)
    page.locator("#search").fill("CAT")
    assert lines(page) == [3]
    page.locator("#search").fill("4")
    assert lines(page) == [4]
    page.locator("#search").fill("nowhere")
    assert lines(page) == []
    assert "found" in page.locator("#pager").inner_text()
    show_all(page)
    assert lines(page) == [1, 2, 3, 4, 5]
    assert page.locator("#search").input_value() == ""


def test_a_sentence_opens_with_its_map_and_closes(open_page):
    sentences = five_sentences()
    page, _ = open_report(open_page, sentences)
    show_all(page)
    page.locator("tr[data-line='1'] .open-sentence").focus()
    page.keyboard.press("Enter")
    assert page.locator("tr[data-line='1'] .open-sentence").get_attribute("aria-expanded") == "true"
    page.wait_for_selector(".detail .heat text")
    levels = [float(item) for item in page.locator(".heat text").all_text_contents()]
    assert max(levels) == pytest.approx(weights_of(1).max(), abs=0.011)
    assert page.locator("tr[data-line='1'] .omitted").all_inner_texts() == ["dog"]
    assert re.search("dog.*2.5 nats", page.locator(".detail dl").inner_text())
    page.keyboard.press("Enter")
    assert page.locator(".detail").count() == 0


def test_repeated_and_different_words_are_marked(open_page):
    page, _ = open_report(open_page, five_sentences())
    show_all(page)
    row = page.locator("tr[data-line='2']")
    assert row.locator(".repeated").all_inner_texts() == ["달려요"]
    assert row.locator(".different").count() == 1


def test_a_thousand_sentences_are_paged(open_page):
    sentences = [make(line) for line in range(1, 1001)]
    page, report = open_report(open_page, sentences)
    assert len(corpus_page(report, FACTS).encode()) < 1_000_000
    if page.locator("#all").is_visible():
        show_all(page)
    assert lines(page) == list(range(1, 51))
    page.get_by_role("button", name="Next").click()
    assert lines(page) == list(range(51, 101))
    page.get_by_role("button", name="Previous").click()
    assert lines(page) == list(range(1, 51))


def test_page_of_a_long_corpus_reports_the_limit(open_page):
    sentences = [make(line, needed=(-line / 10, 1.0, 1.0), omitted=(0,)) for line in range(1, 41)]
    page, report = open_report(open_page, sentences, kept=5)
    assert f"worst {len(report.kept())}" in page.locator("#headline").inner_text()
    assert "40 sentences" in page.locator("#headline").inner_text()


def test_hostile_words_are_only_text(open_page):
    changes = {"source": HOSTILE, "output": HOSTILE, "needed": (-1.0,) * len(HOSTILE), "omitted": (0,)}
    page, _ = open_report(open_page, [make(1, **changes)])
    assert page.locator(".source").inner_text() == " ".join(HOSTILE)
    page.locator(".open-sentence").click()
    page.wait_for_selector(".detail .word")
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_a_phone(open_page, scheme):
    page, _ = open_report(open_page, five_sentences(), viewport={"width": 360, "height": 740}, color_scheme=scheme)
    show_all(page)
    page.locator(".open-sentence").first.click()
    page.wait_for_selector(".detail .word")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_histograms_count_every_sentence(open_page):
    page, report = open_report(open_page, five_sentences())
    page.locator("#distributions summary").click()
    for name, histogram in report.summary()["histograms"].items():
        chart = page.locator("#histograms svg").nth(list(report.summary()["histograms"]).index(name))
        assert sum(int(item) for item in re.findall(r": (\d+)", chart.get_attribute("aria-label"))) == sum(
            histogram["counts"]
        )


def test_empty_report(open_page):
    page, _ = open_report(open_page, [None])
    assert "0 sentences" in page.locator("#headline").inner_text()


def test_data_is_json(open_page):
    text = corpus_page(report_corpus(five_sentences()), FACTS)
    [data] = re.findall(r'<script type="application/json" id="softgaze-page">(.*?)</script>', text, re.DOTALL)
    assert [item["line"] for item in json.loads(data)["sentences"]] == [1, 2, 3, 4, 5]
