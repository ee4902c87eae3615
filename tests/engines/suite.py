"""What every engine must do as torch does it: the same text, whatever is asked. One class; each engine inherits it."""

from itertools import islice

import numpy
import pytest

from bundles import lines
from softgaze.data.tokens import normalise
from softgaze.devices import cores
from softgaze.engines.ctranslate2 import AHEAD
from softgaze.errors import DataError, UsageError
from softgaze.gaze.passages import Spoken
from softgaze.search.settings import Sampling
from softgaze.symbols import END, SPECIAL
from softgaze.translator import Options

LONG = "The dog runs. A small cat sees the old man, the red tree and a dog! Does the man sleep?"  # no part twice: a tie
TEXTS = [*lines("en", 12), "", *lines("ko", 6), " ", LONG, "the"]
PARTS = [
    Spoken((20, 30, 40), (50, 60)),
    Spoken((21,), (31, 41, 51, 61, 71)),
    Spoken((9, 8, 7, 6, 5, 4), (300,)),
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
        whole = engine.translate(texts, beam=2, nbest=2)
        ahead = [*engine.translate_lines(texts, window=window, ahead=True, beam=2, nbest=2)]
        assert [each.source for each in ahead] == texts
        assert [told(each) for each in ahead] == [told(each) for each in whole]

    @pytest.mark.parametrize("text", ["the dog", ""])
    def test_what_is_held_does_not_grow_with_the_lines(self, engine, text):
        read = []
        stream = (read.append(text) or text for _ in range(400))
        found = engine.translate_lines(stream, window=4, ahead=True, beam=1)
        held = [len(read) - written for written, _ in enumerate(found)]
        assert len(held) == len(read) == 400
        assert max(held) <= 4 * (2 + AHEAD * cores())  # lines of windows with the workers, of the one done and the next

    def test_what_cannot_be_read_is_said_after_the_lines_before_it(self, engine):
        def stream():
            yield from TEXTS[:7]
            raise DataError("line 8 is no text")

        found = engine.translate_lines(stream(), window=3, ahead=True, beam=1)
        assert [each.source for each in islice(found, 7)] == TEXTS[:7]
        with pytest.raises(DataError, match="line 8"):
            next(found)

    @pytest.mark.parametrize(
        "options",
        [
            Options(beam=1),
            Options(),
            Options(beam=4, nbest=4),
            Options(beam=3, nbest=2, length_penalty=0.0),
            Options(beam=2, nbest=2, length_penalty=0.6, max_length=4),
            Options(beam=3, prefix="old man"),
            Options(beam=1, prefix="the", max_length=9),
        ],
        ids=str,
    )
    def test_the_same_text_and_scores(self, torch, engine, options):
        ours, theirs = torch.translate(TEXTS, **options), engine.translate(TEXTS, **options)
        assert [each.source for each in theirs] == TEXTS
        assert [told(each) for each in theirs] == [told(each) for each in ours]
        assert [each.text for each in theirs] == [each.text for each in ours]
        for one, other in zip(ours, theirs, strict=True):
            assert scores(other) == pytest.approx(scores(one), abs=2e-4)
            assert other.log_probability == pytest.approx(one.log_probability, abs=2e-3)

    def test_as_many_out_as_in_and_empty_stays_empty(self, engine):
        found = engine.translate([*TEXTS, *TEXTS[::-1]])
        assert [each.source for each in found] == [*TEXTS, *TEXTS[::-1]]
        assert [each.text for each in found[: len(TEXTS)]] == [each.text for each in found[len(TEXTS) :]][::-1]
        assert all((each.text == "") == (not normalise(each.source)) or each.parts for each in found)
        assert engine.translate([]) == []

    def test_neighbours_and_batches_change_nothing(self, engine):
        together = engine.translate(TEXTS, nbest=2)
        for options in (Options(batch_tokens=1), Options(batch_tokens=100)):
            for one, other in zip(together, engine.translate(TEXTS, nbest=2, **options), strict=True):
                assert told(one) == told(other)
                assert scores(one) == pytest.approx(scores(other), abs=2e-4)
        assert told(engine.translate(TEXTS[0], nbest=2)) == told(together[0])

    @pytest.mark.parametrize("text", [TEXTS[0], TEXTS[3], LONG, ""])
    def test_what_is_told_word_by_word_is_the_translation(self, engine, text):
        words = []
        found = engine.translate_aloud(text, words.append)
        plain = engine.translate(text, beam=1)
        assert told(found) == told(plain)
        assert found.text == plain.text == "".join(words)
        assert all(len(word.split()) == 1 for word in words)

    def test_long_text_is_split_as_ever(self, torch, engine):
        found = engine.translate(LONG)
        assert len(found.parts) > 1
        assert all(len(part.source_ids) <= torch.limit + 1 for part in found.parts)
        assert [part.source_ids for part in found.parts] == [part.source_ids for part in torch.translate(LONG).parts]

    def test_what_is_forced_is_obeyed_and_scored_as_torch_would(self, torch, engine):
        for options in (Options(min_length=9, nbest=2), Options(no_repeat=1, nbest=2), Options(no_repeat=2, beam=1)):
            for found in engine.translate(lines("en", 5), **options):
                for each in (found, *found.alternatives):
                    check_obeyed(each.parts, options)
                    parts = [
                        Spoken(part.source_ids[:-1], (*part.target_ids, *[END] * part.finished)) for part in each.parts
                    ]
                    wanted = sum(float(row.sum()) for row in torch.engine.log_probabilities(parts))
                    assert each.log_probability == pytest.approx(wanted, abs=2e-3)

    def test_no_special_token_is_written(self, engine):
        found = engine.translate(TEXTS, beam=2, nbest=2)
        written = {token for each in found for one in told(each) for _, target, _ in one for token in target}
        assert not written & {*SPECIAL}

    def test_given_texts_are_as_likely(self, torch, engine):
        parts = [*PARTS, *(part._replace(target=(*part.target, END)) for part in PARTS), Spoken((5,), ())]
        for one, other, part in zip(
            torch.engine.log_probabilities(parts), engine.engine.log_probabilities(parts), parts, strict=True
        ):
            assert len(other) == len(part.target)
            assert numpy.allclose(one, other, atol=1e-4)

    def test_a_recording_has_a_row_for_each_token_and_its_end(self, engine):
        for part, found in zip(PARTS, engine.engine.record(PARTS), strict=True):
            weights = found.cross.weights
            assert weights.shape[2:] == (len(part.target) + 1, len(part.source) + 1)
            assert numpy.allclose(weights.sum(-1), 1, atol=1e-4)

    def test_attention_influence_and_links_need_nothing_else(self, engine):
        found = engine.translate("the dog sees a cat.")
        assert found.attention is not None
        assert engine.engine.note in found.attention.shows
        assert found.influence.shape == (len(found.attention.recording.target.words), 5)
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
            engine.translate("the dog runs.", sampling=Sampling())


def check_obeyed(parts, options):
    """Lengths and repeats."""
    for part in parts:
        tokens, size = part.target_ids, options.get("no_repeat", 0)
        assert len(tokens) >= options.get("min_length", 0)
        if size:
            grams = [tokens[start : start + size] for start in range(len(tokens) - size + 1)]
            assert len(set(grams)) == len(grams)
