import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundles import copier, tiny_bundle
from softgaze.data.tokens import normalise
from softgaze.search.settings import Search
from softgaze.serve.texts import framed, relined, told, translate_texts
from softgaze.translator import load

LINE = st.lists(st.sampled_from(["the", "dog", "cat.", "개"]), max_size=4).map(" ".join)
BREAK = st.sampled_from(["\n", "\r\n", "\n\n", "\n  ", "\t\n"])
TEXT = st.lists(st.tuples(LINE, BREAK), max_size=4).map(lambda pairs: "".join(line + end for line, end in pairs))


@given(texts=st.lists(TEXT, max_size=4))
def test_lines_stay_lines(texts, tmp_path_factory):
    translator = copier(tmp_path_factory.getbasetemp())
    assert [each.text for each in translate_texts(translator, texts, Search(beam=1))] == texts


@given(st.text(alphabet=" \t\nab", max_size=9), st.text(alphabet="xy ", max_size=5))
def test_white_space_around_a_text_stays(line, text):
    found = framed(line, text)
    assert found == (line.replace(line.strip(), text, 1) if line.strip() else line)


@pytest.fixture(scope="module")
def tiny():
    return load(tiny_bundle())


def test_each_line_is_translated_as_it_would_be_alone(tiny):
    lines = ["The dog runs.", "  a small cat", "", "old man"]
    [found] = translate_texts(tiny, ["\n".join(lines)], Search(beam=3, nbest=2))
    alone = [tiny.translate(line, beam=3, nbest=2) for line in lines]
    assert [normalise(line) for line in found.text.split("\n")] == [each.text for each in alone]
    assert found.text.split("\n")[1].startswith("  ")
    assert found.log_probability == pytest.approx(sum(each.log_probability for each in alone))
    assert found.alternatives[0].text.split("\n")[0] == alone[0].alternatives[0].text


def test_no_two_alternatives_are_alike(tiny):
    [found] = translate_texts(tiny, ["The dog runs."], Search(beam=10, nbest=10))
    texts = [found.text, *(each.text for each in found.alternatives)]
    assert len({*texts}) == len(texts)


def test_attention_counts_the_words_of_all_lines(tiny):
    [found] = translate_texts(tiny, ["The dog\nruns fast."], Search())
    assert found.attention.recording.source.words == ("The", "dog", "runs", "fast.")


def test_what_if_keeps_the_lines(tiny):
    [before] = translate_texts(tiny, ["The dog\n\n  a small cat runs\n"], Search())
    after = relined(before, before.what_if(mask="dog"))
    assert after.text.split("\n")[1:] == before.text.split("\n")[1:]
    assert normalise(after.text) == normalise(before.what_if(mask="dog").text)


def test_what_is_told_of_an_empty_text(tiny):
    [found] = translate_texts(tiny, [" \n"], Search())
    assert found.text == " \n"
    assert told(found)["tokens"] == []
