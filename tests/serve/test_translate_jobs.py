import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundles import copier, tiny_bundle
from documents.html_checks import check_same_tags
from softgaze.data.tokenizer import normalise
from softgaze.documents.inline import restore_whitespace
from softgaze.search.options import SearchOptions
from softgaze.serve.model_registry import ServedModel
from softgaze.serve.translate_jobs import TranslateHtmlJob, restore_lines, translate_texts, translation_json
from softgaze.translator import load

LINE = st.lists(st.sampled_from(["the", "dog", "cat.", "개"]), max_size=4).map(" ".join)
BREAK = st.sampled_from(["\n", "\r\n", "\n\n", "\n  ", "\t\n"])
TEXT = st.lists(st.tuples(LINE, BREAK), max_size=4).map(lambda pairs: "".join(line + end for line, end in pairs))


@given(texts=st.lists(TEXT, max_size=4))
def test_line_breaks_are_preserved(texts, tmp_path_factory):
    translator = copier(tmp_path_factory.getbasetemp())
    assert [each.text for each in translate_texts(translator, texts, SearchOptions(beam_size=1))] == texts


@given(st.text(alphabet=" \t\nab", max_size=9), st.text(alphabet="xy ", max_size=5))
def test_surrounding_white_space_is_preserved(line, translated):
    expected = line.replace(line.strip(), translated, 1) if line.strip() else line
    assert restore_whitespace(line, translated) == expected


@pytest.fixture(scope="module")
def tiny():
    return load(tiny_bundle())


def test_each_line_is_translated_as_if_alone(tiny):
    lines = ["The dog runs.", "  a small cat", "", "old man"]
    [joined] = translate_texts(tiny, ["\n".join(lines)], SearchOptions(beam_size=3, num_hypotheses=2))
    alone = [tiny.translate(line, beam_size=3, num_hypotheses=2) for line in lines]
    assert [normalise(line) for line in joined.text.split("\n")] == [each.text for each in alone]
    assert joined.text.split("\n")[1].startswith("  ")
    assert joined.log_prob == pytest.approx(sum(each.log_prob for each in alone))
    assert joined.alternatives[0].text.split("\n")[0] == alone[0].alternatives[0].text


def test_alternatives_are_distinct(tiny):
    [best] = translate_texts(tiny, ["The dog runs."], SearchOptions(beam_size=10, num_hypotheses=10))
    texts = [best.text, *(each.text for each in best.alternatives)]
    assert len({*texts}) == len(texts)


def test_attention_covers_the_words_of_all_lines(tiny):
    [best] = translate_texts(tiny, ["The dog\nruns fast."], SearchOptions())
    assert best.attention.recording.source.words == ("The", "dog", "runs", "fast.")


def test_what_if_keeps_the_lines(tiny):
    [before] = translate_texts(tiny, ["The dog\n\n  a small cat runs\n"], SearchOptions())
    after = restore_lines(tiny, before, before.what_if(mask="dog"))
    assert after.text.split("\n")[1:] == before.text.split("\n")[1:]
    assert normalise(after.text) == normalise(before.what_if(mask="dog").text)


def test_json_of_an_empty_text(tiny):
    [best] = translate_texts(tiny, [" \n"], SearchOptions())
    assert best.text == " \n"
    assert translation_json(best)["tokens"] == []


PAGE = (
    "<p>The <b>dog</b> &amp; a <a href='/x?a=1&amp;b=2'>cat</a>.</p><ul><li>run<br>old</li></ul><style>p > b {}</style>"
)


def test_copying_model_returns_the_page(tmp_path):
    model = ServedModel("copy", copier(tmp_path, arch="rnn"))  # no attention: every tag ends a segment
    [(result, others)] = TranslateHtmlJob(model, SearchOptions(beam_size=1)).run([PAGE])
    assert result == PAGE
    assert others == []


def test_translation_and_alternatives_keep_every_tag():
    model = ServedModel("tiny", load(tiny_bundle()))
    [(result, others), (second, _)] = TranslateHtmlJob(model, SearchOptions(beam_size=3, num_hypotheses=3)).run(
        [PAGE, "a &lt; b"]
    )
    for each in (result, *others):
        check_same_tags(PAGE, each)
    assert "<" not in second


def test_each_segment_is_translated_as_if_alone():
    translator = load(tiny_bundle())
    [(result, _)] = TranslateHtmlJob(ServedModel("tiny", translator), SearchOptions()).run(
        ["<p>The dog runs.</p><p>a cat</p>"]
    )
    alone = [html.escape(translator.translate(text).text, quote=False) for text in ("The dog runs.", "a cat")]
    assert result == f"<p>{alone[0]}</p><p>{alone[1]}</p>"
