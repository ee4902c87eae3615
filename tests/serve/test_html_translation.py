import html

from bundles import copier, tiny_bundle
from documents.html_checks import check_same_tags
from softgaze.search.options import SearchOptions
from softgaze.serve.html_translation import TranslateHtmlJob
from softgaze.serve.model_registry import ServedModel
from softgaze.translator import load

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
