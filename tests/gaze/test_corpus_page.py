"""The page of a corpus, as a person uses it: rankings, sorting, searching, opening; many sentences; hostile words."""

import json
import re
from dataclasses import replace

import numpy
import pytest

from softgaze.gaze import Attention
from softgaze.gaze.corpus import RANKINGS, look, survey
from softgaze.gaze.corpus_page import corpus_page

FACTS = {"model": "runs/m", "corpus": "test.en", "beam": 5, "shows": "cross-attention"}
HOSTILE = ["</script><img", "src=x", "onerror=alert(1)>", "&amp;", "😀", "학교에", "مدرسة"]


def weights_of(line, rows=3, columns=4):
    return numpy.random.default_rng(line).dirichlet(numpy.ones(columns), rows)


def make(line, source=("the", "dog", "runs"), output=("개가", "달려요", "달려요"), **changes):
    """A sentence without a fault, unless asked for."""
    attention = Attention.of([*source, "⏎"], output, weights_of(line, len(output), len(source) + 1))
    found = look(line, attention, numpy.ones((len(output) + 1, len(source))), reference="개가 달려요")
    return replace(found, **{"repeated": (), "honesty": 0.5 + line / 10_000, **changes})


def few():
    """Five sentences, each with a fault of its own."""
    return [
        make(1, needed=(1.0, -2.5, 1.0)),
        make(2, repeated=(2,)),
        make(3, honesty=-0.3, source=("a", "cat"), needed=(1.0, 1.0), covered=(1.0, 1.0)),
        make(4, needed=(-0.9, 1.0, 1.0), honesty=0.25),
        make(5, scores={"chrf": 40.0, "bleu": 10.0}),
    ]


def opened(open_page, looks, kept=1000, **options):
    found = survey(looks, kept)
    return open_page(corpus_page(found, FACTS), **options), found


def lines(page):
    return [int(each.replace(",", "")) for each in page.locator("tbody tr[data-line] td:first-child").all_inner_texts()]


def show_all(page):
    page.locator("#all").click()


def test_it_opens_on_the_worst_of_the_first_ranking(open_page):
    page, found = opened(open_page, few())
    first = next(name for name in RANKINGS if found.worst(name))
    assert lines(page) == [each.line for each in found.worst(first)]
    assert page.locator("#rankings [aria-pressed=true]").get_attribute("data-name") == first


@pytest.mark.parametrize("name", ["unsaid", "repetition", "honesty", "chrf"])
def test_every_ranking_is_that_of_the_survey(open_page, name):
    page, found = opened(open_page, few())
    button = page.locator(f"#rankings [data-name={name}]")
    if button.get_attribute("aria-pressed") == "false":
        button.click()
    assert lines(page) == [each.line for each in found.worst(name)]
    assert button.locator("b").inner_text() == str(found.summary()["rankings"][name])
    assert RANKINGS[name].explained in page.locator("#explained").inner_text()
    button.click()  # once more shows all
    assert lines(page) == [1, 2, 3, 4, 5]


def test_headings_sort_both_ways(open_page):
    page, found = opened(open_page, few())
    show_all(page)
    values = {each.line: each.honesty for each in found.kept()}
    heading = page.locator("th[data-name=honesty]")
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert lines(page) == sorted(values, key=values.get)
    page.keyboard.press("Enter")  # the heading keeps the focus
    assert lines(page) == sorted(values, key=values.get, reverse=True)


def test_searching_words_and_line_numbers(open_page):
    page, _ = opened(open_page, few())
    show_all(page)
    page.locator("#search").fill("CAT")
    assert lines(page) == [3]
    page.locator("#search").fill("4")
    assert lines(page) == [4]
    page.locator("#search").fill("nowhere")
    assert lines(page) == []
    assert page.locator("#pager").inner_text() == "nothing found"
    show_all(page)
    assert lines(page) == [1, 2, 3, 4, 5]
    assert page.locator("#search").input_value() == ""


def test_a_sentence_opens_with_its_map_and_closes(open_page):
    looks = few()
    page, _ = opened(open_page, looks)
    show_all(page)
    page.locator("tr[data-line='1'] .open-sentence").focus()
    page.keyboard.press("Enter")
    assert page.locator("tr[data-line='1'] .open-sentence").get_attribute("aria-expanded") == "true"
    page.wait_for_selector(".detail .heat text")
    levels = [float(each) for each in page.locator(".heat text").all_text_contents()]
    assert max(levels) == pytest.approx(weights_of(1).max(), abs=0.011)
    assert page.locator("tr[data-line='1'] .unsaid").all_inner_texts() == ["dog"]
    assert "dog (likelier without, by up to 2.5 nats)" in page.locator(".detail dl").inner_text()
    page.keyboard.press("Enter")
    assert page.locator(".detail").count() == 0


def test_what_is_repeated_and_different_is_marked(open_page):
    page, _ = opened(open_page, few())
    show_all(page)
    row = page.locator("tr[data-line='2']")
    assert row.locator(".repeated").all_inner_texts() == ["달려요"]
    assert row.locator(".different").count() == 1


def test_a_thousand_sentences_are_shown_a_page_at_a_time(open_page):
    looks = [make(line) for line in range(1, 1001)]
    page, found = opened(open_page, looks)
    assert len(corpus_page(found, FACTS).encode()) < 1_000_000
    if page.locator("#all").is_visible():
        show_all(page)
    assert lines(page) == list(range(1, 51))
    page.get_by_role("button", name="Later").click()
    assert lines(page) == list(range(51, 101))
    page.get_by_role("button", name="Earlier").click()
    assert lines(page) == list(range(1, 51))


def test_of_a_long_corpus_the_page_says_what_is_left_out(open_page):
    looks = [make(line, needed=(-line / 10, 1.0, 1.0)) for line in range(1, 41)]
    page, found = opened(open_page, looks, kept=5)
    assert f"Here are the worst {len(found.kept())}; counts are of all." in page.locator("#headline").inner_text()
    assert "40 sentences" in page.locator("#headline").inner_text()


def test_hostile_words_are_only_text(open_page):
    changes = {"source": HOSTILE, "output": HOSTILE, "needed": (-1.0,) * len(HOSTILE)}
    page, _ = opened(open_page, [make(1, **changes)])
    assert page.locator(".source").inner_text() == " ".join(HOSTILE)
    page.locator(".open-sentence").click()
    page.wait_for_selector(".detail .word")
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_telephone(open_page, scheme):
    page, _ = opened(open_page, few(), viewport={"width": 360, "height": 740}, color_scheme=scheme)
    show_all(page)
    page.locator(".open-sentence").first.click()
    page.wait_for_selector(".detail .word")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_distributions_count_every_sentence(open_page):
    page, found = opened(open_page, few())
    page.locator("#distributions summary").click()
    for name, histogram in found.summary()["histograms"].items():
        told = page.locator("#histograms svg").nth(list(found.summary()["histograms"]).index(name))
        assert sum(int(each) for each in re.findall(r": (\d+)", told.get_attribute("aria-label"))) == sum(
            histogram["counts"]
        )


def test_an_empty_survey_is_a_page(open_page):
    page, _ = opened(open_page, [None])
    assert "0 sentences" in page.locator("#headline").inner_text()


def test_the_data_is_json(open_page):
    text = corpus_page(survey(few()), FACTS)
    [data] = re.findall(r'<script type="application/json" id="softgaze-corpus">(.*?)</script>', text, re.DOTALL)
    assert [each["line"] for each in json.loads(data)["looks"]] == [1, 2, 3, 4, 5]
