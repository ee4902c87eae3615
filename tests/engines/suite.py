"""What every engine must do as torch does it: the same text, whatever is asked. One class; each engine inherits it."""

from itertools import islice

import numpy as np
import pytest

from bundles import lines
from softgaze.data.tokenizer import normalise
from softgaze.engines.ctranslate2_engine import PREFETCH
from softgaze.errors import DataError, UsageError
from softgaze.explain.scoring import IdPair
from softgaze.runtime import cores
from softgaze.search import SearchOptions
from softgaze.special_tokens import EOS, SPECIAL_TOKENS

LONG = "The dog runs. A small cat sees the old man, the red tree and a dog! Does the man sleep?"  # no part twice: a tie
TEXTS = [*lines("en", 12), "", *lines("ko", 6), " ", LONG, "the"]
PARTS = [
    IdPair((20, 30, 40), (50, 60)),
    IdPair((21,), (31, 41, 51, 61, 71)),
    IdPair((9, 8, 7, 6, 5, 4), (300,)),
]


def told(translation):
    """Everything an engine says of a text, but for numbers."""
    return [
        [(part.source_ids, part.target_ids, part.finished) for part in each.parts]
        for each in (translation, *translation.alternatives)
    ]


def scores(translation):
    return [each.score for each in (translation, *translation.alternatives)]


class EngineSuite:
    """Needs a fixture `models`: the translators of a bundle and of its export."""

    @pytest.fixture
    def torch(self, models):
        return models[0]

    @pytest.fixture
    def engine(self, models):
        return models[1]

    @pytest.mark.parametrize("window", [1, 5, 100])
    def test_reading_ahead_changes_nothing(self, engine, window):
        texts = [*TEXTS, *[""] * 12, *TEXTS]
        whole = engine.translate(texts, beam_size=2, num_hypotheses=2)
        ahead = [*engine.translate_lines(texts, window=window, ahead=True, beam_size=2, num_hypotheses=2)]
        assert [each.source for each in ahead] == texts
        assert [told(each) for each in ahead] == [told(each) for each in whole]

    @pytest.mark.parametrize("text", ["the dog", ""])
    def test_what_is_held_does_not_grow_with_the_lines(self, engine, text):
        read = []
        stream = (read.append(text) or text for _ in range(400))
        found = engine.translate_lines(stream, window=4, ahead=True, beam_size=1)
        held = [len(read) - written for written, _ in enumerate(found)]
        assert len(held) == len(read) == 400
        assert max(held) <= 4 * (2 + PREFETCH * cores())  # windows submitted, done and next

    def test_what_cannot_be_read_is_said_after_the_lines_before_it(self, engine):
        def stream():
            yield from TEXTS[:7]
            raise DataError("line 8 is no text")

        found = engine.translate_lines(stream(), window=3, ahead=True, beam_size=1)
        assert [each.source for each in islice(found, 7)] == TEXTS[:7]
        with pytest.raises(DataError, match="line 8"):
            next(found)

    @pytest.mark.parametrize(
        "options",
        [
            SearchOptions(beam_size=1),
            SearchOptions(),
            SearchOptions(beam_size=4, num_hypotheses=4),
            SearchOptions(beam_size=3, num_hypotheses=2, length_penalty=0.0),
            SearchOptions(beam_size=2, num_hypotheses=2, length_penalty=0.6, max_length=4),
            SearchOptions(beam_size=3, prefix="old man"),
            SearchOptions(beam_size=1, prefix="the", max_length=9),
        ],
        ids=str,
    )
    def test_the_same_text_and_scores(self, torch, engine, options):
        ours, theirs = torch.translate(TEXTS, options), engine.translate(TEXTS, options)
        assert [each.source for each in theirs] == TEXTS
        assert [told(each) for each in theirs] == [told(each) for each in ours]
        assert [each.text for each in theirs] == [each.text for each in ours]
        for one, other in zip(ours, theirs, strict=True):
            assert scores(other) == pytest.approx(scores(one), abs=2e-4)
            assert other.log_prob == pytest.approx(one.log_prob, abs=2e-3)

    def test_as_many_out_as_in_and_empty_stays_empty(self, engine):
        found = engine.translate([*TEXTS, *TEXTS[::-1]])
        assert [each.source for each in found] == [*TEXTS, *TEXTS[::-1]]
        assert [each.text for each in found[: len(TEXTS)]] == [each.text for each in found[len(TEXTS) :]][::-1]
        assert all((each.text == "") == (not normalise(each.source)) or each.parts for each in found)
        assert engine.translate([]) == []

    def test_neighbours_and_batches_change_nothing(self, engine):
        together = engine.translate(TEXTS, num_hypotheses=2)
        for tokens in (1, 100):
            for one, other in zip(
                together, engine.translate(TEXTS, num_hypotheses=2, batch_tokens=tokens), strict=True
            ):
                assert told(one) == told(other)
                assert scores(one) == pytest.approx(scores(other), abs=2e-4)
        assert told(engine.translate(TEXTS[0], num_hypotheses=2)) == told(together[0])

    @pytest.mark.parametrize("text", [TEXTS[0], TEXTS[3], LONG, ""])
    def test_what_is_told_word_by_word_is_the_translation(self, engine, text):
        words = []
        found = engine.translate_stream(text, words.append)
        plain = engine.translate(text, beam_size=1)
        assert told(found) == told(plain)
        assert found.text == plain.text == "".join(words)
        assert all(len(word.split()) == 1 for word in words)

    def test_long_text_is_split_as_ever(self, torch, engine):
        found = engine.translate(LONG)
        assert len(found.parts) > 1
        assert all(len(part.source_ids) <= torch.max_source_length + 1 for part in found.parts)
        assert [part.source_ids for part in found.parts] == [part.source_ids for part in torch.translate(LONG).parts]

    def test_what_is_forced_is_obeyed_and_scored_as_torch_would(self, torch, engine):
        for options in (
            SearchOptions(min_length=9, num_hypotheses=2),
            SearchOptions(no_repeat_ngram_size=1, num_hypotheses=2),
            SearchOptions(no_repeat_ngram_size=2, beam_size=1),
        ):
            for found in engine.translate(lines("en", 5), options):
                for each in (found, *found.alternatives):
                    check_obeyed(each.parts, options)
                    parts = [
                        IdPair(part.source_ids[:-1], (*part.target_ids, *[EOS] * part.finished)) for part in each.parts
                    ]
                    wanted = sum(float(row.sum()) for row in torch.engine.log_probs(parts))
                    assert each.log_prob == pytest.approx(wanted, abs=2e-3)

    def test_no_special_token_is_written(self, engine):
        found = engine.translate(TEXTS, beam_size=2, num_hypotheses=2)
        written = {token for each in found for one in told(each) for _, target, _ in one for token in target}
        assert not written & {*SPECIAL_TOKENS}

    def test_given_texts_are_as_likely(self, torch, engine):
        parts = [*PARTS, *(part._replace(target=(*part.target, EOS)) for part in PARTS), IdPair((5,), ())]
        for one, other, part in zip(torch.engine.log_probs(parts), engine.engine.log_probs(parts), parts, strict=True):
            assert len(other) == len(part.target)
            assert np.allclose(one, other, atol=1e-4)

    def test_a_recording_has_a_row_for_each_token_and_its_end(self, engine):
        for part, found in zip(PARTS, engine.engine.record(PARTS), strict=True):
            weights = found.cross.weights
            assert weights.shape[2:] == (len(part.target) + 1, len(part.source) + 1)
            assert np.allclose(weights.sum(-1), 1, atol=1e-4)

    def test_attention_influence_and_links_need_nothing_else(self, engine):
        found = engine.translate("the dog sees a cat.")
        assert found.attention is not None
        assert engine.engine.note in found.attention.description
        assert found.occlusion.shape == (len(found.attention.recording.target.words), 5)
        assert len(engine.align(["the dog runs.", ""], ["개 달려요.", "개"])) == 2

    def test_it_knows_what_it_is(self, engine):
        assert engine.engine.name == engine.bundle.engine["name"]
        assert engine.engine.precision == engine.bundle.engine["precision"]
        assert engine.device == "cpu"

    def test_what_only_torch_can_do_is_refused_in_one_line(self, engine):
        found = engine.translate("the dog runs.")
        for ask in (lambda: found.what_if(mask="dog"), lambda: found.beam):
            with pytest.raises(UsageError, match="the model it was made from"):
                ask()
        with pytest.raises(UsageError, match="to sample, use the model"):
            engine.translate("the dog runs.", temperature=1.0)


def check_obeyed(parts, options):
    """Lengths and repeats."""
    for part in parts:
        tokens, size = part.target_ids, options.no_repeat_ngram_size
        assert len(tokens) >= options.min_length
        if size:
            grams = [tokens[start : start + size] for start in range(len(tokens) - size + 1)]
            assert len(set(grams)) == len(grams)
