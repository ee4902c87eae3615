"""Maps keep their meaning from view to view: rows sum to 1, words are whole, predicting is reading one step on."""

from dataclasses import FrozenInstanceError, replace

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maps import SOURCE, TARGET, random_attention, random_recording
from softgaze.gaze import Alignment, Attention, Choice, Recording, View
from softgaze.gaze.attention import mutual, sharpest
from softgaze.gaze.recording import Part, Stack
from softgaze.gaze.words import BEGIN_MARK, END_MARK, Side

views = st.builds(
    View,
    kind=st.sampled_from(["cross", "encoder", "decoder"]),
    layer=st.sampled_from([None, 0, 2]),
    head=st.sampled_from([None, 0, 1]),
    rows=st.sampled_from(["predicting", "reading"]),
    measure=st.sampled_from(["weights", "norms", "rollout"]),
    unit=st.sampled_from(["words", "subwords"]),
)
HAND = Attention.of(["the", "dog", "runs", END_MARK], ["der", "hund", "der", END_MARK], numpy.eye(4)[[0, 1, 0, 3]])


# --- views


@given(views)
def test_rows_sum_to_one_in_every_view(view):
    attention = Attention(random_recording(), view)
    assert attention.weights.shape == (len(attention.target), len(attention.source))
    assert numpy.allclose(attention.weights.sum(axis=1), 1)


@given(views)
def test_words_of_subwords_keep_the_mass_of_every_word(view):
    pieces, words = (Attention(random_recording(), view).__getattribute__(unit)() for unit in ("subwords", "words"))
    for place, label in enumerate(words.column_labels):
        columns = [number for number, piece in enumerate(pieces.column_labels) if piece.places[0] in label.places]
        for row, output in enumerate(words.row_labels):
            rows = [number for number, piece in enumerate(pieces.row_labels) if piece.places[0] in output.places]
            expected = pieces.weights[numpy.ix_(rows, columns)].sum(1).mean()
            assert words.weights[row, place] == pytest.approx(expected)


def test_words_are_those_of_the_texts():
    words = random_attention()
    assert tuple(word for word in words.source if word != END_MARK) == tuple(SOURCE.split())
    assert tuple(word for word in words.target if word != END_MARK) == tuple(TARGET.split())
    assert words.subwords().source[:4] == ("▁the", "▁do", "g", END_MARK)


def test_reading_is_predicting_one_step_later():
    predicting = random_attention(unit="subwords")
    reading = predicting.reading()
    assert reading.target == tuple(piece for piece in predicting.target if piece != END_MARK)
    following = [place + 1 for place, piece in enumerate(predicting.target) if piece != END_MARK]
    assert numpy.allclose(reading.weights, predicting.weights[following])
    assert numpy.allclose(reading.predicting().weights, predicting.weights)


def test_an_encoder_has_one_meaning_of_rows():
    encoder = random_attention().encoder()
    assert encoder.source == encoder.target
    assert numpy.allclose(encoder.reading().weights, encoder.weights)


def test_a_decoder_looks_at_what_it_has_read_and_never_ahead():
    decoder = random_attention(unit="subwords").decoder()
    assert decoder.source[:3] == (BEGIN_MARK, "▁개", "가")
    assert numpy.allclose(numpy.triu(decoder.weights, 1), 0, atol=1e-6)


def test_a_map_without_an_end_has_rows_of_one_meaning():
    with pytest.raises(ValueError, match="only one meaning"):
        _ = Attention.of(["a"], ["x"], [[1.0]]).reading().weights


def test_layers_heads_means_and_measures_are_found_by_their_names():
    attention = random_attention(unit="subwords")
    stack = attention.recording.parts[0].cross
    rows, columns = stack.weights.shape[2:]

    def first(found):
        return found.weights[:rows, :columns]

    assert numpy.allclose(first(attention.layer(2)), stack.weights[2].mean(0))
    assert numpy.allclose(first(attention.layer(2).head(1, 0)), stack.weights[1, 0])
    assert numpy.allclose(first(attention.layer(2).mean()), stack.weights.mean((0, 1)))
    assert numpy.allclose(first(attention.norms().plain()), first(attention))
    assert not numpy.allclose(first(attention.norms()), first(attention))
    assert attention.rollout().layer(1).view.measure == "weights"
    assert attention.norms().layer(1).view.measure == "norms"


@pytest.mark.parametrize("ask", [lambda a: a.layer(3), lambda a: a.head(0, 2), lambda a: HAND.encoder()])
def test_what_is_not_there_is_refused_when_asked_for(ask):
    with pytest.raises(ValueError, match="no "):
        ask(random_attention())


def test_nothing_can_be_changed():
    attention = random_attention()
    with pytest.raises(FrozenInstanceError):
        attention.view = View(layer=1)
    with pytest.raises(ValueError, match="read-only"):
        attention.weights[0, 0] = 1
    before = attention.weights.copy()
    attention.layer(1).norms().subwords().to_numpy()[:] = 0
    assert numpy.array_equal(attention.weights, before)


def test_a_choice_is_named_only_where_it_is_shown():
    choice = Choice(View(layer=1, rows="reading"), 0.75, "influence", 24)
    chosen = Attention(random_recording(), choice.view, choice)
    assert "chosen by influence: 0.75" in chosen.shows
    assert "chosen by influence" in chosen.subwords().shows
    assert "chosen" not in chosen.predicting().shows
    assert "chosen" in chosen.predicting().reading().shows


def test_the_sharpest_layer_is_the_one_that_looks_at_least():
    sharp, flat = numpy.eye(3)[[0, 1, 2]], numpy.full((3, 3), 1 / 3)
    attention = Attention.of("abc", "xyz", numpy.stack([[flat], [sharp], [flat]]))
    assert sharpest(attention.recording) == View(layer=1)


# --- numbers


def test_entropy_is_zero_on_one_thing_and_log_of_all_when_spread():
    attention = Attention.of(["a", "b"], ["x", "y"], [[1.0, 0.0], [0.5, 0.5]])
    assert attention.entropy() == pytest.approx([0, numpy.log(2)])


def test_coverage_counts_the_looks_of_words_and_finds_what_nobody_used():
    assert HAND.coverage().tolist() == [2, 1, 0, 0]


def test_the_sink_is_what_goes_to_the_end():
    assert HAND.sink == pytest.approx(1 / 4)
    assert Attention.of(["a", END_MARK], ["x"], [[0.3, 0.7]]).sink == pytest.approx(0.7)


def test_a_word_tells_where_it_looked_most_first():
    attention = Attention.of(["a", "b", "c", "a"], ["x"], [[0.3, 0.4, 0.05, 0.25]])
    assert list(attention["x"]) == ["a", "b", "c"]
    assert list(attention["x"].values()) == pytest.approx([0.55, 0.4, 0.05])
    assert HAND["hund"]["dog"] == 1
    assert next(iter(HAND[0])) == "the"


def test_a_repeated_or_unknown_word_is_answered_with_what_to_ask():
    with pytest.raises(KeyError, match=r"2 times; give its number, one of \[0, 2\]"):
        HAND["der"]
    with pytest.raises(KeyError, match="did you mean hund"):
        HAND["hunt"]


def test_marks_around_a_word_do_not_count_when_it_is_named():
    attention = Attention.of(["a", "b"], ["쉬어요.", "“가요”", "가요"], [[1, 0], [0, 1], [1, 0]])
    assert attention["쉬어요"] == attention["쉬어요."] == attention[0]
    assert attention["가요"] == attention[2]


def test_a_row_that_is_not_there_is_named():
    with pytest.raises(IndexError, match="the output has rows 0 to 3, and no row 99"):
        HAND[99]
    with pytest.raises(KeyError, match="not as True"):
        HAND[True]
    assert HAND[-1] == HAND[3]


@pytest.mark.parametrize("count", [0, -1])
def test_less_than_one_is_not_the_most(count):
    with pytest.raises(ValueError, match=f"not {count}"):
        HAND.top(count)


def test_subwords_are_found_with_and_without_their_space():
    pieces = random_attention().subwords()
    assert pieces["▁school"] == pieces["school"]


def test_top_gives_the_most_looked_at_of_each_row():
    attention = Attention.of(["a", "b", "c"], ["x"], [[0.2, 0.5, 0.3]])
    assert attention.top(2) == [("x", [("b", 0.5), ("c", pytest.approx(0.3))])]
    assert len(attention.top(9)[0][1]) == 3


def test_comparing_measures_what_moved():
    first = Attention.of(["a", "b"], ["x", "y"], [[1.0, 0.0], [0.5, 0.5]])
    second = Attention.of(["a", "b"], ["x", "y"], [[0.0, 1.0], [0.75, 0.25]])
    found = first.compare(second)
    assert found.rows == pytest.approx((1, 0.25))
    assert (found.distance, found.same_top) == (pytest.approx(0.625), 0.5)
    assert numpy.allclose(found.difference, second.weights - first.weights)
    assert first.compare(first).distance == 0


def test_maps_with_and_without_the_row_of_the_end_can_be_compared():
    attention = random_attention()
    assert attention.compare(attention.reading()).distance > 0
    assert attention.subwords().compare(attention).distance == 0


def test_maps_of_different_sentences_cannot_be_compared():
    with pytest.raises(ValueError, match="same source and output"):
        HAND.compare(random_attention())


# --- alignments


def test_punctuation_attached_to_words_links_nothing():
    """Two last words whose full stops look at each other, and whose letters look elsewhere."""
    source, target = Side.of("go home.", [["▁go", "▁home", "."]]), Side.of("집에 가.", [["▁집에", "▁가", "."]])
    weights = numpy.array([[0, 1, 0, 0], [0.6, 0, 0.4, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=numpy.float32)
    part = Part(Stack(weights[None, None], numpy.ones((1, 1, 4), dtype=numpy.float32)))
    attention = Attention(Recording(source, target, (part,)), View())
    assert attention.weights[1].argmax() == 1  # what is shown is all of the word
    assert numpy.allclose(attention.word_weights(), [[0, 1], [0.6, 0]])
    assert str(attention.alignment()) == "0-1 1-0"


@given(st.integers(0, 1000))
def test_mutual_shares_turn_with_the_map(seed):
    weights = numpy.random.default_rng(seed).dirichlet(numpy.ones(4), 3)
    assert numpy.allclose(mutual(weights).T, mutual(weights.T))
    assert ((mutual(weights) >= 0) & (mutual(weights) <= 1)).all()


def test_what_everybody_looks_at_is_left_to_whoever_looks_at_it_most():
    crowded = Attention.of(
        ["the", "dog", "runs"], ["개가", "그", "달려요"], [[0.5, 0.4, 0.1], [0.9, 0, 0.1], [0.5, 0, 0.5]]
    )
    assert str(crowded.alignment()) == "0-1 1-0 2-2"


def test_links_are_counted_over_words_without_the_end():
    assert str(HAND.alignment()) == "0-0 0-2 1-1"


def test_the_end_never_takes_a_link_but_counts_towards_a_threshold():
    attention = Attention.of(["a", "b", END_MARK], ["x", "y"], [[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    assert str(attention.alignment()) == "0-1 1-0"
    assert str(attention.alignment(threshold=0.3)) == "0-1 1-1"


def test_a_higher_threshold_never_adds_a_link():
    attention = random_attention()
    low, high = attention.alignment(threshold=0.1), attention.alignment(threshold=0.3)
    assert high.links <= low.links


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_a_sentence_that_looks_at_itself_has_no_links(kind):
    with pytest.raises(ValueError, match=f"links are between source and output, and the self-attention of the {kind}"):
        random_attention(kind=kind).alignment()


@given(views.filter(lambda view: view.kind == "cross"))
def test_links_do_not_depend_on_words_or_subwords_being_shown(view):
    attention = Attention(random_recording(), view)
    assert attention.words().alignment() == attention.subwords().alignment()


def test_a_word_that_looked_nowhere_has_no_link():
    assert Attention.of(["a"], ["x", "y"], [[0.0], [1.0]]).alignment() == Alignment(frozenset({(0, 1)}))


@pytest.mark.parametrize("threshold", [0, -1, 1.5])
def test_impossible_thresholds_are_refused(threshold):
    with pytest.raises(ValueError, match="threshold"):
        HAND.alignment(threshold)


def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="do not fit"):
        Attention.of(["a"], ["x"], numpy.ones((2, 2)))


@pytest.mark.parametrize("wrong", [numpy.nan, numpy.inf, -0.1])
def test_what_is_no_weight_is_refused(wrong):
    with pytest.raises(ValueError, match="numbers from 0 up"):
        Attention.of(["a", "b"], ["x"], [[wrong, 1.0]])


def test_it_prints_as_a_heat_map():
    assert str(HAND).splitlines()[0].split() == list(HAND.source)
    assert "3 × 3" in repr(Attention.of("abc", "xyz", numpy.eye(3)))


# --- over a picture ---------------------------------------------------------------------------------------------


def test_columns_that_lie_on_a_grid_are_its_cells_row_by_row():
    weights = numpy.arange(24).reshape(2, 12) / 276
    attention = Attention.of(None, ["a", "dog"], weights, grid=(3, 4))
    assert attention.grid == (3, 4)
    assert attention.source[:5] == ("1,1", "1,2", "1,3", "1,4", "2,1")
    assert numpy.allclose(attention.tile("dog"), weights[1].reshape(3, 4))
    assert numpy.allclose(attention.tiles, weights.reshape(2, 3, 4))
    assert attention["dog"]["3,4"] == pytest.approx(23 / 276)


def test_what_looks_at_words_has_no_grid():
    attention = Attention.of(["a"], ["b"], [[1.0]])
    assert attention.grid is None
    with pytest.raises(ValueError, match="lie on no grid"):
        attention.tile("b")
    with pytest.raises(ValueError, match="lie on no grid"):
        attention.plot(raw=True)


@pytest.mark.parametrize(("source", "grid"), [(None, None), (["a"] * 4, (2, 2))])
def test_a_source_is_words_or_a_grid(source, grid):
    with pytest.raises(ValueError, match="give one of them"):
        Attention.of(source, ["b"], numpy.ones((1, 4)), grid=grid)


def test_a_grid_of_another_size_is_refused():
    with pytest.raises(ValueError, match="do not fit"):
        Attention.of(None, ["b"], numpy.ones((1, 5)), grid=(2, 2))
    with pytest.raises(ValueError, match="a grid of 2×3 does not have 2 cells"):
        Side.plain(["a", "b"], (2, 3))


def test_the_probability_of_a_word_is_that_of_all_its_pieces():
    recording = replace(random_recording(), chances=(0.5, 0.5, 0.9, 0.8, 1.0, 0.7, 0.6))
    attention = Attention(recording, View())
    assert attention.probabilities == pytest.approx((0.25, 0.72, 1.0, 0.7, 0.6))
    assert attention.reading().probabilities == pytest.approx((0.25, 0.72, 0.7))
    assert attention.subwords().probabilities == recording.chances
    assert attention.encoder().probabilities == ()
    assert random_attention().probabilities == ()
    with pytest.raises(ValueError, match="2 probabilities are not those of 7 outputs"):
        replace(recording, chances=(0.5, 0.5))
