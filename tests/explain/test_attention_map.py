"""Attention maps: every view keeps its sums, words are sums of tokens, reading is predicting shifted by one step."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maps import SOURCE, TARGET, random_attention, random_recording
from softgaze.explain import Alignment, Attention, Recording, SelectedMap, View
from softgaze.explain.attention_map import row_column_normalize, sharpest_layer
from softgaze.explain.recording import BY_GUIDING, AttentionStack, PartAttention
from softgaze.explain.word_spans import BOS_MARK, EOS_MARK, TokenizedText

views = st.builds(
    View,
    kind=st.sampled_from(["cross", "encoder", "decoder"]),
    layer=st.sampled_from([None, 0, 2]),
    head=st.sampled_from([None, 0, 1]),
    rows=st.sampled_from(["predicting", "reading"]),
    measure=st.sampled_from(["weights", "norms", "rollout"]),
    unit=st.sampled_from(["words", "subwords"]),
)
HAND = Attention.of(["the", "dog", "runs", EOS_MARK], ["der", "hund", "der", EOS_MARK], np.eye(4)[[0, 1, 0, 3]])


# --- views


@given(views)
def test_rows_sum_to_one_in_every_view(view):
    attention = Attention(random_recording(), view)
    assert attention.weights.shape == (len(attention.target), len(attention.source))
    assert np.allclose(attention.weights.sum(axis=1), 1)


@given(views)
def test_words_of_subwords_keep_the_mass_of_every_word(view):
    tokens, words = (Attention(random_recording(), view).__getattribute__(unit)() for unit in ("subwords", "words"))
    for column, label in enumerate(words.column_labels):
        columns = [index for index, token in enumerate(tokens.column_labels) if token.positions[0] in label.positions]
        for row, output in enumerate(words.row_labels):
            rows = [index for index, token in enumerate(tokens.row_labels) if token.positions[0] in output.positions]
            expected = tokens.weights[np.ix_(rows, columns)].sum(1).mean()
            assert words.weights[row, column] == pytest.approx(expected)


def test_words_are_those_of_the_texts():
    words = random_attention()
    assert tuple(word for word in words.source if word != EOS_MARK) == tuple(SOURCE.split())
    assert tuple(word for word in words.target if word != EOS_MARK) == tuple(TARGET.split())
    assert words.subwords().source[:4] == ("▁the", "▁do", "g", EOS_MARK)


def test_reading_is_predicting_one_step_later():
    predicting = random_attention(unit="subwords")
    reading = predicting.reading()
    assert reading.target == tuple(token for token in predicting.target if token != EOS_MARK)
    following = [row + 1 for row, token in enumerate(predicting.target) if token != EOS_MARK]
    assert np.allclose(reading.weights, predicting.weights[following])
    assert np.allclose(reading.predicting().weights, predicting.weights)


def test_encoder_rows_are_not_shifted():
    encoder = random_attention().encoder()
    assert encoder.source == encoder.target
    assert np.allclose(encoder.reading().weights, encoder.weights)


def test_decoder_self_attention_is_causal():
    decoder = random_attention(unit="subwords").decoder()
    assert decoder.source[:3] == (BOS_MARK, "▁개", "가")
    assert np.allclose(np.triu(decoder.weights, 1), 0, atol=1e-6)


def test_views_select_layers_heads_and_measures():
    attention = random_attention(unit="subwords")
    stack = attention.recording.parts[0].cross
    rows, columns = stack.weights.shape[2:]

    def first(attention):
        return attention.weights[:rows, :columns]

    assert np.allclose(first(attention.layer(2)), stack.weights[2].mean(0))
    assert np.allclose(first(attention.layer(2).head(1, 0)), stack.weights[1, 0])
    assert np.allclose(first(attention.layer(2).mean()), stack.weights.mean((0, 1)))
    assert np.allclose(first(attention.norms().plain()), first(attention))
    assert not np.allclose(first(attention.norms()), first(attention))
    assert attention.rollout().layer(1).view.measure == "weights"
    assert attention.norms().layer(1).view.measure == "norms"


def test_a_map_is_immutable():
    attention = random_attention()
    with pytest.raises(FrozenInstanceError):
        attention.view = View(layer=1)
    with pytest.raises(ValueError, match="read-only"):
        attention.weights[0, 0] = 1
    before = attention.weights.copy()
    attention.layer(1).norms().subwords().to_numpy()[:] = 0
    assert np.array_equal(attention.weights, before)


def test_a_selection_is_described_only_when_shown():
    selected = SelectedMap(View(layer=1, rows="reading"), 0.75, "occlusion", 24)
    shown = Attention(random_recording(), selected.view, selected)
    assert "selected by occlusion: 0.75" in shown.description
    assert "selected by occlusion" in shown.subwords().description
    assert "selected" not in shown.predicting().description
    assert "selected" in shown.predicting().reading().description


def test_the_sharpest_layer_has_the_lowest_entropy():
    sharp, flat = np.eye(3)[[0, 1, 2]], np.full((3, 3), 1 / 3)
    attention = Attention.of("abc", "xyz", np.stack([[flat], [sharp], [flat]]))
    assert sharpest_layer(attention.recording) == View(layer=1)


# --- numbers


def test_entropy_is_zero_for_one_column_and_log_n_for_all():
    attention = Attention.of(["a", "b"], ["x", "y"], [[1.0, 0.0], [0.5, 0.5]])
    assert attention.entropy() == pytest.approx([0, np.log(2)])


def test_coverage_sums_the_rows_of_words():
    assert HAND.coverage().tolist() == [2, 1, 0, 0]


def test_the_sink_is_the_share_on_eos():
    assert HAND.sink == pytest.approx(1 / 4)
    assert Attention.of(["a", EOS_MARK], ["x"], [[0.3, 0.7]]).sink == pytest.approx(0.7)


def test_the_weights_of_a_word_are_sorted_and_repeated_words_summed():
    attention = Attention.of(["a", "b", "c", "a"], ["x"], [[0.3, 0.4, 0.05, 0.25]])
    assert list(attention["x"]) == ["a", "b", "c"]
    assert list(attention["x"].values()) == pytest.approx([0.55, 0.4, 0.05])
    assert HAND["hund"]["dog"] == 1
    assert next(iter(HAND[0])) == "the"
    assert HAND[-1] == HAND[3]


def test_edge_punctuation_is_ignored_in_lookups():
    attention = Attention.of(["a", "b"], ["쉬어요.", "“가요”", "가요"], [[1, 0], [0, 1], [1, 0]])
    assert attention["쉬어요"] == attention["쉬어요."] == attention[0]
    assert attention["가요"] == attention[2]


def test_subwords_are_found_with_and_without_their_word_start():
    tokens = random_attention().subwords()
    assert tokens["▁school"] == tokens["school"]


def test_top_returns_the_largest_weights_of_each_row():
    attention = Attention.of(["a", "b", "c"], ["x"], [[0.2, 0.5, 0.3]])
    assert attention.top(2) == [("x", [("b", 0.5), ("c", pytest.approx(0.3))])]
    assert len(attention.top(9)[0][1]) == 3


def test_comparison_is_total_variation_distance():
    first = Attention.of(["a", "b"], ["x", "y"], [[1.0, 0.0], [0.5, 0.5]])
    second = Attention.of(["a", "b"], ["x", "y"], [[0.0, 1.0], [0.75, 0.25]])
    comparison = first.compare(second)
    assert comparison.rows == pytest.approx((1, 0.25))
    assert (comparison.distance, comparison.same_top) == (pytest.approx(0.625), 0.5)
    assert np.allclose(comparison.difference, second.weights - first.weights)
    assert first.compare(first).distance == 0


def test_maps_with_and_without_eos_can_be_compared():
    attention = random_attention()
    assert attention.compare(attention.reading()).distance > 0
    assert attention.subwords().compare(attention).distance == 0


# --- alignments


def test_attached_punctuation_is_not_aligned():
    """The full stops of the last words attend to each other, their letters do not."""
    source, target = (
        TokenizedText.of("go home.", [["▁go", "▁home", "."]]),
        TokenizedText.of("집에 가.", [["▁집에", "▁가", "."]]),
    )
    weights = np.array([[0, 1, 0, 0], [0.6, 0, 0.4, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=np.float32)
    part = PartAttention(AttentionStack(weights[None, None], np.ones((1, 1, 4), dtype=np.float32)))
    attention = Attention(Recording(source, target, (part,)), View())
    assert attention.weights[1].argmax() == 1  # the shown weights include the punctuation
    assert np.allclose(attention.word_weights(), [[0, 1], [0.6, 0]])
    assert str(attention.alignment()) == "0-1 1-0"


@given(st.integers(0, 1000))
def test_row_column_normalization_commutes_with_transposition(seed):
    weights = np.random.default_rng(seed).dirichlet(np.ones(4), 3)
    assert np.allclose(row_column_normalize(weights).T, row_column_normalize(weights.T))
    assert ((row_column_normalize(weights) >= 0) & (row_column_normalize(weights) <= 1)).all()


def test_a_source_word_attended_by_all_is_linked_to_its_largest_share():
    crowded = Attention.of(
        ["the", "dog", "runs"], ["개가", "그", "달려요"], [[0.5, 0.4, 0.1], [0.9, 0, 0.1], [0.5, 0, 0.5]]
    )
    assert str(crowded.alignment()) == "0-1 1-0 2-2"


def test_links_count_words_without_eos():
    assert str(HAND.alignment()) == "0-0 0-2 1-1"


def test_eos_is_never_linked_but_counts_towards_a_threshold():
    attention = Attention.of(["a", "b", EOS_MARK], ["x", "y"], [[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    assert str(attention.alignment()) == "0-1 1-0"
    assert str(attention.alignment(threshold=0.3)) == "0-1 1-1"


def test_a_higher_threshold_never_adds_a_link():
    attention = random_attention()
    low, high = attention.alignment(threshold=0.1), attention.alignment(threshold=0.3)
    assert high.links <= low.links


@given(views.filter(lambda view: view.kind == "cross"))
def test_links_do_not_depend_on_words_or_subwords_being_shown(view):
    attention = Attention(random_recording(), view)
    assert attention.words().alignment() == attention.subwords().alignment()


def test_a_row_of_zeros_has_no_link():
    assert Attention.of(["a"], ["x", "y"], [[0.0], [1.0]]).alignment() == Alignment(frozenset({(0, 1)}))


def test_a_word_of_a_guided_map_that_attends_to_eos_most_has_no_link():
    weights = [[0.6, 0.1, 0.3], [0.25, 0.35, 0.4], [0.0, 0.5, 0.5], [0.2, 0.2, 0.6]]
    plain = Attention.of(["the", "dog", EOS_MARK], ["der", "also", "hund", EOS_MARK], weights)
    guided = replace(plain, selected_map=SelectedMap(plain.view, 0.9, BY_GUIDING, 1))
    assert plain.alignment().links == {(0, 0), (1, 1), (1, 2)}
    assert guided.alignment().links == {(0, 0), (1, 2)}
    assert guided.alignment(0.3).links == plain.alignment(0.3).links
    other = replace(guided, selected_map=SelectedMap(replace(plain.view, layer=0), 0.9, BY_GUIDING, 1))
    assert other.alignment() == plain.alignment()


# --- over a picture ---------------------------------------------------------------------------------------------


def test_columns_that_lie_on_a_grid_are_its_cells_row_by_row():
    weights = np.arange(24).reshape(2, 12) / 276
    attention = Attention.of(None, ["a", "dog"], weights, grid=(3, 4))
    assert attention.grid == (3, 4)
    assert HAND.grid is None
    assert attention.source[:5] == ("1,1", "1,2", "1,3", "1,4", "2,1")
    assert np.allclose(attention.tile("dog"), weights[1].reshape(3, 4))
    assert np.allclose(attention.tiles, weights.reshape(2, 3, 4))
    assert attention["dog"]["3,4"] == pytest.approx(23 / 276)


def test_the_probability_of_a_word_is_the_product_of_its_tokens():
    recording = replace(random_recording(), token_probs=(0.5, 0.5, 0.9, 0.8, 1.0, 0.7, 0.6))
    attention = Attention(recording, View())
    assert attention.word_probs == pytest.approx((0.25, 0.72, 1.0, 0.7, 0.6))
    assert attention.reading().word_probs == pytest.approx((0.25, 0.72, 0.7))
    assert attention.subwords().word_probs == recording.token_probs
    assert attention.encoder().word_probs == ()
    assert random_attention().word_probs == ()


# --- invalid calls


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random_attention().layer(3), ValueError, "no layer 3"),
        (lambda: random_attention().head(0, 2), ValueError, "no head 2"),
        (lambda: HAND.encoder(), ValueError, "no self-attention of the encoder"),
        (lambda: Attention.of(["a"], ["x"], [[1.0]]).reading().weights, ValueError, "no EOS row"),
        (lambda: HAND["der"], KeyError, r"2 times.*one of \[0, 2\]"),
        (lambda: HAND["hunt"], KeyError, "did you mean hund"),
        (lambda: HAND[99], IndexError, r"row 99 .*rows 0 to 3"),
        (lambda: HAND[True], KeyError, "got True"),
        (lambda: HAND.top(0), ValueError, "got 0"),
        (lambda: HAND.compare(random_attention()), ValueError, "same source and the same output"),
        (lambda: random_attention(kind="encoder").alignment(), ValueError, "self-attention of the encoder"),
        (lambda: HAND.alignment(0), ValueError, "threshold"),
        (lambda: HAND.alignment(1.5), ValueError, "threshold"),
        (lambda: Attention.of(["a"], ["x"], np.ones((2, 2))), ValueError, "expected cross weights"),
        (lambda: Attention.of(["a", "b"], ["x"], [[np.nan, 1.0]]), ValueError, "finite and not negative"),
        (lambda: Attention.of(["a", "b"], ["x"], [[np.inf, 1.0]]), ValueError, "finite and not negative"),
        (lambda: Attention.of(["a", "b"], ["x"], [[-0.1, 1.0]]), ValueError, "finite and not negative"),
        (lambda: Attention.of(None, ["b"], np.ones((1, 4))), ValueError, "either the source words or a grid"),
        (lambda: Attention.of("abcd", ["b"], np.ones((1, 4)), grid=(2, 2)), ValueError, "source words or a grid"),
        (lambda: Attention.of(None, ["b"], np.ones((1, 5)), grid=(2, 2)), ValueError, "expected cross weights"),
        (lambda: TokenizedText.from_words(["a", "b"], (2, 3)), ValueError, "2×3 does not have 2 cells"),
        (lambda: HAND.tile("hund"), ValueError, "no image grid"),
        (lambda: HAND.plot(raw=True), ValueError, "needs a map over an image grid"),
        (lambda: replace(random_recording(), token_probs=(0.5, 0.5)), ValueError, "7 token probabilities.*got 2"),
    ],
)
def test_invalid_calls_are_rejected(call, error, message):
    with pytest.raises(error, match=message):
        call()
