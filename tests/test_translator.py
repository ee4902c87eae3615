import json
from dataclasses import fields, replace
from itertools import islice, product

import numpy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import softgaze
from bundles import SMALL, copier, describe, lines, make_bundle, tiny_bundle, tokenizer
from softgaze.bundle import ATTENTION, add_facts
from softgaze.data.tokens import normalise
from softgaze.devices import using_threads
from softgaze.engines.torch import position_limit
from softgaze.errors import DataError, UsageError
from softgaze.gaze import Choice, View
from softgaze.gaze.words import END_MARK
from softgaze.symbols import END
from softgaze.translator import (
    CONTROLS,
    Options,
    Part,
    Sampling,
    Search,
    Translation,
    best_combinations,
    halves,
    load,
    sentences,
    split_text,
)

quick = settings(max_examples=40, deadline=None)
LONG = "The dog runs. A small cat sees the old man, the red tree and a dog! Does the man sleep? " * 3


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return copier(tmp_path_factory.mktemp("copy"))


@pytest.fixture(scope="module")
def model():
    return load(tiny_bundle(), device="cpu")


def printable(text: str) -> str:
    return normalise(text.translate(CONTROLS))


# --- one text


def test_a_text_is_translated(copy):
    found = copy.translate("the  dog\truns.")
    assert isinstance(found, Translation)
    assert (found.text, str(found), found.source) == ("the dog runs.", "the dog runs.", "the  dog\truns.")
    assert found.score == pytest.approx(0, abs=1e-3)
    assert found.finished
    assert found.tokens == tuple(tokenizer().pieces(found.parts[0].target_ids))
    assert found.source_tokens == (*found.tokens, "</s>")


def test_sources_end_with_end_exactly_as_in_training(copy):
    assert tokenizer().closed([7, 8]) == (7, 8, END)
    assert tokenizer().opened((7, 8, END)) == (7, 8)
    [part] = copy.translate("the dog").parts
    assert part.source_ids == (*tokenizer().encode(["the dog"])[0], END)


@pytest.mark.parametrize("text", ["", " ", "\t\n\r", "\u2028\u3000", "\x85"])
def test_empty_text_stays_empty_without_a_model_call(copy, text):
    copy.model.batches.clear()
    found = copy.translate(text, nbest=3)
    assert (found.text, found.score, found.parts, found.alternatives, found.finished) == ("", 0.0, (), (), True)
    assert found.source == text
    assert copy.model.batches == []


def test_alternatives_are_fewer_by_one_and_worse(model):
    found = model.translate("the dog runs.", beam=4, nbest=4, max_length=6)
    scores = [found.score, *(each.score for each in found.alternatives)]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)
    assert len({each.parts for each in (found, *found.alternatives)}) == 4
    assert all(each.alternatives == () and each.source == found.source for each in found.alternatives)


def test_score_is_log_probability_over_length_with_end_counted(model):
    for penalty in (0.0, 0.6, 1.0):
        found = model.translate("the dog", max_length=5, length_penalty=penalty)
        length = sum(len(part.target_ids) + part.finished for part in found.parts)
        assert found.score == pytest.approx(found.log_probability / length**penalty)


def test_a_translation_cut_at_its_maximum_length_says_so(copy):
    assert not copy.translate("the dog runs.", max_length=2).finished
    assert copy.translate("the dog runs.", max_length=9).finished


def test_lengths_prefix_and_repeats_are_obeyed(model):
    assert len(model.translate("a cat", max_length=3).parts[0].target_ids) <= 3
    assert len(model.translate("a cat", min_length=7).parts[0].target_ids) >= 7
    assert model.translate("a cat", prefix="the dog", max_length=6).text.startswith("the dog")
    tokens = model.translate("a cat", no_repeat=1, max_length=10).parts[0].target_ids
    assert len(set(tokens)) == len(tokens)


def test_the_prefix_begins_the_text_once_however_it_is_split(copy):
    found = copy.translate(LONG, prefix="old man")
    assert len(found.parts) > 1
    assert found.text.startswith("old man")
    prefix = tuple(tokenizer().encode(["old man"])[0])
    starts = [part.target_ids[: len(prefix)] == prefix for part in found.parts]
    assert starts == [True] + [False] * (len(starts) - 1)


def test_control_characters_never_reach_the_text(copy):
    newline = tuple(tokenizer().pieces_of.piece_to_id(f"<0x{byte:02X}>") for byte in (0x41, 0x0A, 0x1B, 0x00, 0x42))
    assert copy.written(newline) == "A B"


# --- many texts


def test_a_list_comes_back_in_order(copy):
    texts = [*lines("en", 30), "", *lines("ko", 30), " ", LONG]
    found = copy.translate(texts, beam=1)
    assert [each.source for each in found] == texts
    assert [each.text for each in found] == [normalise(text) for text in texts]
    assert copy.translate([]) == []


def test_neighbours_and_batches_change_nothing(model):
    texts = [*lines("en", 9), "", "the cat"]
    options = Options(beam=2, nbest=2, max_length=5)
    together = model.translate(texts, **options)
    small = model.translate(texts, batch_tokens=1, **options)
    alone = [model.translate(text, **options) for text in texts]
    for one, other, third in zip(together, small, alone, strict=True):
        assert one.text == other.text == third.text
        assert [each.text for each in one.alternatives] == [each.text for each in third.alternatives]
        assert one.score == pytest.approx(third.score, abs=1e-4)


@pytest.mark.parametrize(("budget", "beam"), [(40, 1), (40, 4), (1, 3), (1000, 2)])
def test_batches_keep_the_token_budget(copy, budget, beam):
    copy.model.batches.clear()
    copy.translate(lines("en", 40), beam=beam, batch_tokens=budget)
    assert sum(rows for rows, _ in copy.model.batches) == 40
    assert all(rows == 1 or rows * longest * beam <= budget for rows, longest in copy.model.batches)
    with using_threads(1):  # else batches are begun side by side
        copy.model.batches.clear()
        copy.translate(lines("en", 40), beam=beam, batch_tokens=budget)
    longest = [length for _, length in copy.model.batches]
    assert longest == sorted(longest, reverse=True)


def test_a_stream_is_read_a_window_at_a_time(copy):
    read = []

    def endless():
        while True:
            read.append(len(read))
            yield f"the dog {len(read)}" if len(read) % 3 else ""

    stream = copy.translate_lines(endless(), window=10, beam=1)
    found = list(islice(stream, 25))
    assert len(read) == 30
    assert [each.text for each in found] == [f"the dog {n}" if n % 3 else "" for n in range(1, 26)]


def test_progress_counts_every_line_once(copy):
    told = []
    texts = [*lines("en", 10), "", LONG, "\t"]
    assert len(list(copy.translate_lines(texts, window=4, progress=told.append, beam=1))) == len(texts)
    assert sum(told) == len(texts)


# --- sampling


def test_samples_follow_from_the_seed_alone(model):
    def draw(texts, seed):
        drawn = model.translate(texts, sampling=Sampling(temperature=2.0, seed=seed), nbest=3, max_length=8)
        return [[each.tokens for each in (found, *found.alternatives)] for found in drawn]

    first = draw(["the dog", "a cat"], 1)
    assert first == draw(["the dog", "a cat"], 1)
    assert first[1:] == draw(["a cat"], 1)
    assert first != draw(["the dog", "a cat"], 2)
    assert all(len(set(drawn)) == 3 for drawn in first)


def test_top_k_of_one_is_greedy(model):
    greedy = model.translate("the dog", beam=1, max_length=6)
    assert model.translate("the dog", sampling=Sampling(top_k=1, seed=5), max_length=6).tokens == greedy.tokens


def test_samples_of_a_split_text_are_joined_draw_by_draw(copy):
    found = copy.translate(LONG, sampling=Sampling(top_k=1), nbest=2)
    assert found.text == found.alternatives[0].text == normalise(LONG)
    assert copy.translate("", sampling=Sampling(), nbest=2).text == ""


# --- long text


def test_long_text_is_split_and_joined_and_nothing_is_lost(copy):
    found = copy.translate(LONG)
    assert found.text == normalise(LONG)
    assert len(found.parts) > 3
    assert all(len(part.source_ids) <= copy.limit + 1 for part in found.parts)
    assert found.log_probability == pytest.approx(sum(part.log_probability for part in found.parts))


@quick
@given(st.text(max_size=150))
@example("한국어 문장이에요! " * 9)
@example("가" * 80)
@example("これは長い文です。" * 9)
@example("a," * 60)
@example("👨‍👩‍👧" * 20)
@example("e\u0301\u0323" * 50)
def test_the_copy_of_any_text_has_every_character_in_order(text):
    translator = copier("nowhere")
    wanted = printable(text.replace("\u2581", " "))
    found = translator.translate(text, beam=1).text
    assert "".join(found.split()) == "".join(wanted.split())
    if len(translator.translate(text, beam=1).parts) == 1:
        assert found == wanted


@quick
@given(st.text(max_size=200), st.integers(5, 30))
def test_parts_fit_unless_they_are_one_character(text, limit):
    parts = split_text(text, tokenizer(), limit)
    assert "".join("".join(parts).split()) == "".join(normalise(text).split())
    assert all(len(part) == 1 or len(ids) <= limit for part, ids in zip(parts, tokenizer().encode(parts), strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One here. Two! Three? Four", ["One here.", "Two!", "Three?", "Four"]),
        ('He said "Yes." Then he left.', ['He said "Yes."', "Then he left."]),
        ("Mr. Kim met Dr. Lee in the U.S. today. Fine.", ["Mr. Kim met Dr. Lee in the U.S. today.", "Fine."]),
        ("It costs 3.50 dollars. Cheap.", ["It costs 3.50 dollars.", "Cheap."]),
        ("On the 3. May it rained.", ["On the 3. May it rained."]),
        ("Well... perhaps. And e.g. this one.", ["Well... perhaps.", "And e.g. this one."]),
        ("집에 가요. 밥을 먹어요! 네", ["집에 가요.", "밥을 먹어요!", "네"]),
        ("これは本です。あれは？「はい。」そう", ["これは本です。", "あれは？", "「はい。」", "そう"]),
        ("no end", ["no end"]),
        ("", []),
    ],
)
def test_sentences(text, expected):
    assert sentences(text) == expected


def test_a_long_sentence_is_cut_at_its_commas_then_at_its_spaces():
    clauses = halves("the dog runs slowly, a cat sleeps", tokenizer(), 12)
    assert clauses == ["the dog runs slowly,", "a cat sleeps"]
    words = halves("the dog runs a cat sleeps", tokenizer(), 4)
    assert words == ["the dog runs", "a cat sleeps"]


def test_a_cut_never_tears_a_character_apart():
    for part in halves("e\u0301\u0323" * 40, tokenizer(), 12):
        assert part[0] == "e"
    for part in halves("👨‍👩‍👧" * 20, tokenizer(), 30):
        assert part[0] == "👨"


def test_unspaced_languages_are_joined_without_spaces(tmp_path):
    text = "これは長い文です。" * 4
    assert copier(tmp_path, target_language="ja").translate(text, beam=1).text == text
    assert " " in copier(tmp_path, target_language="de").translate(text, beam=1).text


def test_alternatives_of_a_split_text_are_the_best_of_all_combinations(model):
    text = "the dog runs. " * 6 + "A cat sees the old man. " * 2
    found = model.translate(text, beam=3, nbest=3, max_length=4)
    assert len(found.parts) > 1
    scores = [found.score, *(each.score for each in found.alternatives)]
    assert scores == sorted(scores, reverse=True)
    assert len({each.parts for each in (found, *found.alternatives)}) == 3
    changed = [sum(map(lambda a, b: a != b, found.parts, each.parts)) for each in found.alternatives]
    assert changed[0] == 1  # the second best differs from the best in one part only


@given(st.lists(st.lists(st.integers(-20, -1), min_size=3, max_size=3), min_size=1, max_size=4))
def test_combinations_are_the_best_there_are(log_probabilities):
    parts = [[Part((3,), (9,), (), (), float(each), True) for each in row] for row in log_probabilities]
    found = best_combinations(parts, Search(nbest=3, length_penalty=0.0))
    everything = sorted((sum(chosen) for chosen in product(*log_probabilities)), reverse=True)
    assert [sum(part.log_probability for part in chosen) for chosen in found] == everything[:3]


# --- limits of a model with learned positions


@pytest.mark.parametrize(("arch", "options"), [("transformer", {"positions": "learned"}), ("conv", {})])
def test_a_model_with_few_places_never_runs_out_of_them(tmp_path, arch, options):
    shape = SMALL if arch == "transformer" else {"width": 16, "encoder_layers": 1, "decoder_layers": 1}
    path = make_bundle(tmp_path, arch=arch, options={**shape, **options, "max_length": 14}, max_length=200)
    translator = load(path, "cpu")
    assert translator.limit == 13
    found = translator.translate([LONG, "the dog"], beam=2)
    assert all(len(part.target_ids) <= 14 for each in found for part in each.parts)
    assert translator.translate("the dog", beam=1, min_length=14, max_length=99).text


def test_only_learned_positions_are_a_limit():
    assert position_limit(describe()) is None
    assert position_limit(describe(arch="conv", options={})) == 1024
    assert position_limit(describe(arch="rnn-luong", options={})) is None


# --- what cannot work


@pytest.mark.parametrize(
    "options",
    [
        {"beam": 0},
        {"nbest": 0},
        {"beam": 2, "nbest": 3},
        {"batch_tokens": 0},
        {"max_length": 0},
        {"min_length": -1},
        {"min_length": 5, "max_length": 2},
        {"no_repeat": -1},
        {"length_penalty": float("nan")},
        {"sampling": Sampling(temperature=0)},
        {"sampling": Sampling(top_p=0)},
        {"sampling": Sampling(top_k=-1)},
    ],
)
def test_options_that_cannot_work_are_usage_errors(copy, options):
    with pytest.raises(UsageError):
        copy.translate("the dog", **options)


def test_an_unknown_option_is_refused(copy):
    with pytest.raises(TypeError, match="bem"):
        copy.translate("the dog", bem=3)


def test_the_keywords_are_the_fields_of_search():
    assert list(Options.__annotations__) == [each.name for each in fields(Search)]


def test_load_refuses_what_is_no_model_and_no_device(tmp_path):
    with pytest.raises(DataError, match="no such model directory"):
        load(tmp_path / "nothing")
    with pytest.raises(UsageError, match="unknown device"):
        load(tiny_bundle(), device="gpu")


def test_load_is_public_and_takes_a_string():
    translator = softgaze.load(str(tiny_bundle()), device="cpu")
    assert isinstance(translator, softgaze.Translator)
    assert isinstance(translator.translate("the dog", max_length=2), softgaze.Translation)
    assert not translator.model.training


def test_to_dict_is_json(copy):
    record = json.loads(json.dumps(copy.translate("the dog", nbest=2).to_dict()))
    assert record["source"] == "the dog"
    assert record["text"] == "the dog"
    assert len(record["alternatives"]) == 1
    assert set(record["alternatives"][0]) == {"text", "score", "log_probability", "finished", "tokens"}


# --- looking once more


def looked(found):
    """Everything a translation says, but not where it looked."""
    return [(each.text, each.score, each.tokens, each.parts) for each in (found, *found.alternatives)]


@pytest.mark.parametrize("options", [{"beam": 4, "nbest": 4}, {"nbest": 3, "sampling": Sampling(seed=3)}])
def test_asking_for_attention_changes_nothing(model, options):
    asked, plain = (model.translate("the small dog sees a cat.", **options) for _ in range(2))
    for each in (asked, *asked.alternatives):
        assert each.attention is each.attention
    assert looked(asked) == looked(plain)
    assert asked == plain
    assert looked(model.translate("the small dog sees a cat.", **options)) == looked(plain)


def test_every_hypothesis_of_a_beam_has_a_map_of_its_own(model):
    found = model.translate("the small dog sees a cat.", beam=4, nbest=4)
    maps = [each.attention for each in (found, *found.alternatives)]
    for each, attention in zip((found, *found.alternatives), maps, strict=True):
        assert attention.subwords().target == (*each.tokens, END_MARK)
        assert attention.source == ("the", "small", "dog", "sees", "a", "cat.", END_MARK)
        assert numpy.allclose(attention.weights.sum(axis=1), 1, atol=1e-5)
    assert len({each.weights.tobytes() for each in maps}) == len(maps)


def test_a_split_text_has_one_map_of_all_its_parts(model):
    found = model.translate(LONG)
    attention = found.attention
    assert len(found.parts) > 1
    assert [word for word in attention.source if word != END_MARK] == LONG.split()
    assert attention.source.count(END_MARK) == attention.target.count(END_MARK) == len(found.parts)


def test_what_nobody_looked_at_has_no_map(model, copy):
    assert model.translate("").attention is None
    assert copy.translate("the dog").attention is None
    with pytest.raises(UsageError, match="no attention to be honest"):
        copy.translate("the dog").honesty()


def test_a_translation_that_knows_no_model_says_so(model):
    alone = replace(model.translate("the dog"), translator=None)
    with pytest.raises(UsageError, match=r"Translator\.attention"):
        _ = alone.attention
    assert model.attention(alone) is not None


def test_a_notebook_shows_both_texts_and_the_map(model, copy):
    found = model.translate("the small dog")
    shown = found._repr_mimebundle_(include=None, exclude=None)
    assert shown["text/plain"] == f"the small dog\n{found.text}\n\n{found.attention}"
    assert set(shown) == {"text/plain", "image/svg+xml", "text/html"}
    for silent in (copy.translate("the dog"), model.translate(""), replace(found, translator=None)):
        assert silent._repr_mimebundle_() == {"text/plain": repr(silent)}


def test_honesty_is_a_correlation_and_influence_has_a_number_for_every_pair_of_words(model):
    found = model.translate("the small dog sees a cat.")
    assert found.influence.shape == (len(found.text.split()), 6)
    assert -1 <= found.honesty() <= 1


def test_the_map_that_was_stored_is_the_one_that_is_shown(tmp_path):
    path = make_bundle(tmp_path / "model")
    assert load(path, "cpu").choice is None
    assert "chosen" not in load(path, "cpu").translate("the dog").attention.shows
    choice = Choice(View(layer=0, head=1, rows="reading"), 0.5, "a test", 3)
    add_facts(path, {ATTENTION: choice.to_dict()})
    attention = load(path, "cpu").translate("the dog").attention
    assert attention.view == choice.view
    assert "chosen by a test: 0.50 on 3 sentences" in attention.shows


def test_given_pairs_are_aligned_in_either_direction(model):
    texts = ["the dog runs.", "", "a cat sees a man."]
    one = model.align(texts, texts)
    assert [bool(len(each)) for each in one] == [True, False, True]
    both = model.align(texts, texts, reverse=model, method="intersection")
    assert all(each.links == each.turned().links for each in both)
    with pytest.raises(ValueError, match="zip"):
        model.align(texts, texts[:1])


# --- given text


def test_a_given_translation_is_as_likely_as_when_the_model_wrote_it(model):
    texts = [each for each in model.translate(lines("en", 20), beam=2) if each.finished and each.text]
    for found in texts:
        again = model.given(found.source, found.text)
        if again.parts[0].target_ids == found.parts[0].target_ids:  # a model may write what a tokenizer would not
            assert again.score == pytest.approx(found.score, abs=1e-4)
            assert again.log_probability == pytest.approx(found.log_probability, abs=1e-3)
            assert numpy.allclose(again.attention.weights, found.attention.weights, atol=1e-5)
    given_one = model.given("the dog", "개  달려요.")
    assert (given_one.text, given_one.finished, given_one.score < 0) == ("개 달려요.", True, True)
    assert given_one.attention.target == ("개", "달려요.", END_MARK)


@pytest.mark.parametrize(("source", "text"), [("", "개"), ("the dog", " "), ("", "")])
def test_nothing_given_looked_at_nothing(model, source, text):
    assert model.given(source, text).attention is None


@pytest.mark.parametrize(
    ("source", "target", "name"), [("the dog " * 9, "개", "source"), ("the dog", "개 " * 9, "target")]
)
def test_a_given_pair_beyond_the_last_learned_place_is_named(tmp_path, source, target, name):
    limited = load(make_bundle(tmp_path / "model", options={**SMALL, "positions": "learned", "max_length": 8}), "cpu")
    for ask in (limited.given, lambda one, other: limited.align([one], [other])):
        with pytest.raises(DataError, match=rf"^the {name} .* subwords, and the model has places for 7"):
            ask(source, target)
    [longest] = [text for text in ("개 " * count for count in range(1, 9)) if len(tokenizer().encode([text])[0]) == 7]
    assert limited.given("the dog", longest).influence.shape[1] == 2
