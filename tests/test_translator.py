import json
from dataclasses import replace
from itertools import islice, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import softgaze
from bundles import SMALL, copier, lines, make_bundle, tiny_bundle, tokenizer
from softgaze.bundle import ATTENTION, add_facts
from softgaze.data.tokenizer import normalise
from softgaze.errors import DataError, UsageError
from softgaze.explain import SelectedMap, View
from softgaze.explain.word_spans import EOS_MARK
from softgaze.runtime import using_threads
from softgaze.special_tokens import EOS
from softgaze.translation import TranslatedPart, Translation, best_combinations
from softgaze.translator import _CONTROL_CHARACTERS, SearchOptions, load

quick = settings(max_examples=40, deadline=None)
LONG = "The dog runs. A small cat sees the old man, the red tree and a dog! Does the man sleep? " * 3


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return copier(tmp_path_factory.mktemp("copy"))


@pytest.fixture(scope="module")
def model():
    return load(tiny_bundle(), device="cpu")


def printable(text: str) -> str:
    return normalise(text.translate(_CONTROL_CHARACTERS))


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
    assert tokenizer().add_eos([7, 8]) == (7, 8, EOS)
    assert tokenizer().strip_eos((7, 8, EOS)) == (7, 8)
    [part] = copy.translate("the dog").parts
    assert part.source_ids == (*tokenizer().encode(["the dog"])[0], EOS)


@pytest.mark.parametrize("text", ["", " ", "\t\n\r", "\u2028\u3000", "\x85"])
def test_empty_text_stays_empty_without_a_model_call(copy, text):
    copy.model.batches.clear()
    found = copy.translate(text, num_hypotheses=3)
    assert (found.text, found.score, found.parts, found.alternatives, found.finished) == ("", 0.0, (), (), True)
    assert found.source == text
    assert copy.model.batches == []


def test_alternatives_are_fewer_by_one_and_worse(model):
    found = model.translate("the dog runs.", beam_size=4, num_hypotheses=4, max_length=6)
    scores = [found.score, *(each.score for each in found.alternatives)]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)
    assert len({each.parts for each in (found, *found.alternatives)}) == 4
    assert all(each.alternatives == () and each.source == found.source for each in found.alternatives)


def test_score_is_log_probability_over_length_with_end_counted(model):
    for penalty in (0.0, 0.6, 1.0):
        found = model.translate("the dog", max_length=5, length_penalty=penalty)
        length = sum(len(part.target_ids) + part.finished for part in found.parts)
        assert found.score == pytest.approx(found.log_prob / length**penalty)


def test_a_translation_cut_at_its_maximum_length_says_so(copy):
    assert not copy.translate("the dog runs.", max_length=2).finished
    assert copy.translate("the dog runs.", max_length=9).finished


def test_lengths_prefix_and_repeats_are_obeyed(model):
    assert len(model.translate("a cat", max_length=3).parts[0].target_ids) <= 3
    assert len(model.translate("a cat", min_length=7).parts[0].target_ids) >= 7
    assert model.translate("a cat", prefix="the dog", max_length=6).text.startswith("the dog")
    tokens = model.translate("a cat", no_repeat_ngram_size=1, max_length=10).parts[0].target_ids
    assert len(set(tokens)) == len(tokens)


def test_the_prefix_begins_the_text_once_however_it_is_split(copy):
    found = copy.translate(LONG, prefix="old man")
    assert len(found.parts) > 1
    assert found.text.startswith("old man")
    prefix = tuple(tokenizer().encode(["old man"])[0])
    starts = [part.target_ids[: len(prefix)] == prefix for part in found.parts]
    assert starts == [True] + [False] * (len(starts) - 1)


def test_control_characters_never_reach_the_text(copy):
    newline = tuple(tokenizer().sentencepiece.piece_to_id(f"<0x{byte:02X}>") for byte in (0x41, 0x0A, 0x1B, 0x00, 0x42))
    assert copy.decode(newline) == "A B"


# --- many texts


def test_a_list_comes_back_in_order(copy):
    texts = [*lines("en", 30), "", *lines("ko", 30), " ", LONG]
    found = copy.translate(texts, beam_size=1)
    assert [each.source for each in found] == texts
    assert [each.text for each in found] == [normalise(text) for text in texts]
    assert copy.translate([]) == []


def test_neighbours_and_batches_change_nothing(model):
    texts = [*lines("en", 9), "", "the cat"]
    options = SearchOptions(beam_size=2, num_hypotheses=2, max_length=5)
    together = model.translate(texts, options)
    small = model.translate(texts, options, batch_tokens=1)
    alone = [model.translate(text, options) for text in texts]
    for one, other, third in zip(together, small, alone, strict=True):
        assert one.text == other.text == third.text
        assert [each.text for each in one.alternatives] == [each.text for each in third.alternatives]
        assert one.score == pytest.approx(third.score, abs=1e-4)


@pytest.mark.parametrize(("budget", "beam"), [(40, 1), (40, 4), (1, 3), (1000, 2)])
def test_batches_keep_the_token_budget(copy, budget, beam):
    copy.model.batches.clear()
    copy.translate(lines("en", 40), beam_size=beam, batch_tokens=budget)
    assert sum(rows for rows, _ in copy.model.batches) == 40
    assert all(rows == 1 or rows * longest * beam <= budget for rows, longest in copy.model.batches)
    with using_threads(1):  # else batches are begun side by side
        copy.model.batches.clear()
        copy.translate(lines("en", 40), beam_size=beam, batch_tokens=budget)
    longest = [length for _, length in copy.model.batches]
    assert longest == sorted(longest, reverse=True)


def test_a_stream_is_read_a_window_at_a_time(copy):
    read = []

    def endless():
        while True:
            read.append(len(read))
            yield f"the dog {len(read)}" if len(read) % 3 else ""

    stream = copy.translate_lines(endless(), window=10, beam_size=1)
    found = list(islice(stream, 25))
    assert len(read) == 30
    assert [each.text for each in found] == [f"the dog {n}" if n % 3 else "" for n in range(1, 26)]


def test_progress_counts_every_line_once(copy):
    told = []
    texts = [*lines("en", 10), "", LONG, "\t"]
    assert len(list(copy.translate_lines(texts, window=4, progress=told.append, beam_size=1))) == len(texts)
    assert sum(told) == len(texts)


# --- sampling


def test_samples_follow_from_the_seed_alone(model):
    def draw(texts, seed):
        drawn = model.translate(texts, temperature=2.0, seed=seed, num_hypotheses=3, max_length=8)
        return [[each.tokens for each in (found, *found.alternatives)] for found in drawn]

    first = draw(["the dog", "a cat"], 1)
    assert first == draw(["the dog", "a cat"], 1)
    assert first[1:] == draw(["a cat"], 1)
    assert first != draw(["the dog", "a cat"], 2)
    assert all(len(set(drawn)) == 3 for drawn in first)


def test_top_k_of_one_is_greedy(model):
    greedy = model.translate("the dog", beam_size=1, max_length=6)
    assert model.translate("the dog", temperature=1.0, top_k=1, seed=5, max_length=6).tokens == greedy.tokens


def test_samples_of_a_split_text_are_joined_draw_by_draw(copy):
    found = copy.translate(LONG, temperature=1.0, top_k=1, num_hypotheses=2)
    assert found.text == found.alternatives[0].text == normalise(LONG)
    assert copy.translate("", temperature=1.0, num_hypotheses=2).text == ""


# --- long text


def test_long_text_is_split_and_joined_and_nothing_is_lost(copy):
    found = copy.translate(LONG)
    assert found.text == normalise(LONG)
    assert len(found.parts) > 3
    assert all(len(part.source_ids) <= copy.max_source_length + 1 for part in found.parts)
    assert found.log_prob == pytest.approx(sum(part.log_prob for part in found.parts))


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
    found = translator.translate(text, beam_size=1).text
    assert "".join(found.split()) == "".join(wanted.split())
    if len(translator.translate(text, beam_size=1).parts) == 1:
        assert found == wanted


def test_unspaced_languages_are_joined_without_spaces(tmp_path):
    text = "これは長い文です。" * 4
    assert copier(tmp_path, target_language="ja").translate(text, beam_size=1).text == text
    assert " " in copier(tmp_path, target_language="de").translate(text, beam_size=1).text


def test_alternatives_of_a_split_text_are_the_best_of_all_combinations(model):
    text = "the dog runs. " * 6 + "A cat sees the old man. " * 2
    found = model.translate(text, beam_size=3, num_hypotheses=3, max_length=4)
    assert len(found.parts) > 1
    scores = [found.score, *(each.score for each in found.alternatives)]
    assert scores == sorted(scores, reverse=True)
    assert len({each.parts for each in (found, *found.alternatives)}) == 3
    changed = [sum(map(lambda a, b: a != b, found.parts, each.parts)) for each in found.alternatives]
    assert changed[0] == 1  # the second best differs from the best in one part only


@given(st.lists(st.lists(st.integers(-20, -1), min_size=3, max_size=3), min_size=1, max_size=4))
def test_combinations_are_the_best_there_are(log_probs):
    parts = [[TranslatedPart((3,), (9,), (), (), float(each), True) for each in row] for row in log_probs]
    found = best_combinations(parts, SearchOptions(num_hypotheses=3, length_penalty=0.0))
    everything = sorted((sum(chosen) for chosen in product(*log_probs)), reverse=True)
    assert [sum(part.log_prob for part in chosen) for chosen in found] == everything[:3]


# --- limits of a model with learned positions


@pytest.mark.parametrize(("arch", "options"), [("transformer", {"positions": "learned"}), ("conv", {})])
def test_a_model_with_few_places_never_runs_out_of_them(tmp_path, arch, options):
    shape = SMALL if arch == "transformer" else {"width": 16, "encoder_layers": 1, "decoder_layers": 1}
    path = make_bundle(tmp_path, arch=arch, options={**shape, **options, "max_length": 14}, max_length=200)
    translator = load(path, "cpu")
    assert translator.max_source_length == 13
    found = translator.translate([LONG, "the dog"], beam_size=2)
    assert all(len(part.target_ids) <= 14 for each in found for part in each.parts)
    assert translator.translate("the dog", beam_size=1, min_length=14, max_length=99).text


@pytest.mark.parametrize(("arch", "limit"), [("transformer", None), ("conv", 1024), ("rnn-luong", None)])
def test_only_learned_positions_are_a_limit(tmp_path, arch, limit):
    options = SMALL if arch == "transformer" else {"width": 16}
    assert load(make_bundle(tmp_path, arch=arch, options=options), "cpu").max_positions == limit


# --- what cannot work


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 0},
        {"num_hypotheses": 0},
        {"beam_size": 2, "num_hypotheses": 3},
        {"batch_tokens": 0},
        {"max_length": 0},
        {"min_length": -1},
        {"min_length": 5, "max_length": 2},
        {"no_repeat_ngram_size": -1},
        {"length_penalty": float("nan")},
        {"temperature": 0},
        {"temperature": 1.0, "top_p": 0},
        {"temperature": 1.0, "top_k": -1},
    ],
)
def test_options_that_cannot_work_are_usage_errors(copy, options):
    with pytest.raises(UsageError):
        copy.translate("the dog", **options)


def test_an_unknown_option_is_refused(copy):
    with pytest.raises(TypeError, match="bem"):
        copy.translate("the dog", bem=3)


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
    record = json.loads(json.dumps(copy.translate("the dog", num_hypotheses=2).to_dict()))
    assert record["source"] == "the dog"
    assert record["text"] == "the dog"
    assert len(record["alternatives"]) == 1
    assert set(record["alternatives"][0]) == {"text", "score", "log_prob", "finished", "tokens"}


# --- looking once more


def looked(found):
    """Everything a translation says, but not where it looked."""
    return [(each.text, each.score, each.tokens, each.parts) for each in (found, *found.alternatives)]


@pytest.mark.parametrize(
    "options", [{"beam_size": 4, "num_hypotheses": 4}, {"num_hypotheses": 3, "temperature": 1.0, "seed": 3}]
)
def test_asking_for_attention_changes_nothing(model, options):
    asked, plain = (model.translate("the small dog sees a cat.", **options) for _ in range(2))
    for each in (asked, *asked.alternatives):
        assert each.attention is each.attention
    assert looked(asked) == looked(plain)
    assert asked == plain
    assert looked(model.translate("the small dog sees a cat.", **options)) == looked(plain)


def test_every_hypothesis_of_a_beam_has_a_map_of_its_own(model):
    found = model.translate("the small dog sees a cat.", beam_size=4, num_hypotheses=4)
    maps = [each.attention for each in (found, *found.alternatives)]
    for each, attention in zip((found, *found.alternatives), maps, strict=True):
        assert attention.subwords().target == (*each.tokens, EOS_MARK)
        assert attention.source == ("the", "small", "dog", "sees", "a", "cat.", EOS_MARK)
        assert np.allclose(attention.weights.sum(axis=1), 1, atol=1e-5)
    assert len({each.weights.tobytes() for each in maps}) == len(maps)


def test_a_split_text_has_one_map_of_all_its_parts(model):
    found = model.translate(LONG)
    attention = found.attention
    assert len(found.parts) > 1
    assert [word for word in attention.source if word != EOS_MARK] == LONG.split()
    assert attention.source.count(EOS_MARK) == attention.target.count(EOS_MARK) == len(found.parts)


def test_what_nobody_looked_at_has_no_map(model, copy):
    assert model.translate("").attention is None
    assert copy.translate("the dog").attention is None
    with pytest.raises(UsageError, match="no attention"):
        copy.translate("the dog").faithfulness()


def test_a_translation_that_knows_no_model_says_so(model):
    alone = replace(model.translate("the dog"), translator=None)
    with pytest.raises(UsageError, match=r"Translator\.explain"):
        _ = alone.attention
    assert model.explain(alone).attention is not None


def test_a_notebook_shows_both_texts_and_the_map(model, copy):
    found = model.translate("the small dog")
    shown = found._repr_mimebundle_(include=None, exclude=None)
    assert shown["text/plain"] == f"the small dog\n{found.text}\n\n{found.attention}"
    assert set(shown) == {"text/plain", "image/svg+xml", "text/html"}
    for silent in (copy.translate("the dog"), model.translate(""), replace(found, translator=None)):
        assert silent._repr_mimebundle_() == {"text/plain": repr(silent)}


def test_honesty_is_a_correlation_and_influence_has_a_number_for_every_pair_of_words(model):
    found = model.translate("the small dog sees a cat.")
    assert found.occlusion.shape == (len(found.text.split()), 6)
    assert -1 <= found.faithfulness() <= 1


def test_the_map_that_was_stored_is_the_one_that_is_shown(tmp_path):
    path = make_bundle(tmp_path / "model")
    assert load(path, "cpu").selected_map is None
    assert "chosen" not in load(path, "cpu").translate("the dog").attention.description
    choice = SelectedMap(View(layer=0, head=1, rows="reading"), 0.5, "a test", 3)
    add_facts(path, {ATTENTION: choice.to_dict()})
    attention = load(path, "cpu").translate("the dog").attention
    assert attention.view == choice.view
    assert "selected by a test: 0.50 on 3 sentences" in attention.description


def test_given_pairs_are_aligned_in_either_direction(model):
    texts = ["the dog runs.", "", "a cat sees a man."]
    one = model.align(texts, texts)
    assert [bool(len(each)) for each in one] == [True, False, True]
    both = model.align(texts, texts, reverse=model, method="intersection")
    assert all(each.links == each.inverted().links for each in both)
    with pytest.raises(ValueError, match="zip"):
        model.align(texts, texts[:1])


# --- given text


def test_a_given_translation_is_as_likely_as_when_the_model_wrote_it(model):
    texts = [each for each in model.translate(lines("en", 20), beam_size=2) if each.finished and each.text]
    for found in texts:
        again = model.score(found.source, found.text)
        if again.parts[0].target_ids == found.parts[0].target_ids:  # a model may write what a tokenizer would not
            assert again.score == pytest.approx(found.score, abs=1e-4)
            assert again.log_prob == pytest.approx(found.log_prob, abs=1e-3)
            assert np.allclose(again.attention.weights, found.attention.weights, atol=1e-5)
    given_one = model.score("the dog", "개  달려요.")
    assert (given_one.text, given_one.finished, given_one.score < 0) == ("개 달려요.", True, True)
    assert given_one.attention.target == ("개", "달려요.", EOS_MARK)


@pytest.mark.parametrize(("source", "text"), [("", "개"), ("the dog", " "), ("", "")])
def test_nothing_given_looked_at_nothing(model, source, text):
    assert model.score(source, text).attention is None


@pytest.mark.parametrize(
    ("source", "target", "name"), [("the dog " * 9, "개", "source"), ("the dog", "개 " * 9, "target")]
)
def test_a_given_pair_beyond_the_last_learned_place_is_named(tmp_path, source, target, name):
    limited = load(make_bundle(tmp_path / "model", options={**SMALL, "positions": "learned", "max_length": 8}), "cpu")
    for ask in (limited.score, lambda one, other: limited.align([one], [other])):
        with pytest.raises(DataError, match=rf"^the {name} .* subwords, and the model has positions for 7"):
            ask(source, target)
    [longest] = [text for text in ("개 " * count for count in range(1, 9)) if len(tokenizer().encode([text])[0]) == 7]
    assert limited.score("the dog", longest).occlusion.shape[1] == 2
