import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundles import SMALL
from engines.exported import OPTIONS, TOLD, changed, exported, lively_bundle, trained_bundle
from engines.suite import PARTS, EngineSuite, told
from softgaze.bundle import Bundle
from softgaze.engines.ctranslate2_engine import PREFETCH, CTranslate2Engine, _prefetch, pick_ctranslate2_device
from softgaze.engines.export_ctranslate2 import MAX_QUANTIZED, QUANTIZATIONS, head_order, quantize_rows
from softgaze.errors import ResourceError, UsageError
from softgaze.runtime import has_vnni
from softgaze.search import SearchOptions
from softgaze.translator import load

VARIANTS = {
    "sinusoidal": {},
    "rotary": {"positions": "rotary"},
    "learned": {"positions": "learned", "max_length": 40},
    "no positions": {"positions": "none"},
    "post-norm": {"residual": "post"},
    "rms": {"norm": "rms"},
    "rms, post-norm": {"norm": "rms", "residual": "post"},
    "gelu": {"feed_forward": "gelu"},
    "swiglu": {"feed_forward": "swiglu"},
    "two key heads": {"key_heads": 2},
    "one key head, rotary": {"key_heads": 1, "positions": "rotary"},
    "all tied": {"tie": "all"},
    "output tied": {"tie": "output"},
    "as imported": {
        "positions": "frozen",
        "max_length": 40,
        "feed_forward": "silu",
        "embedding_norm": True,
        "scale_embeddings": False,
        "output_bias": True,
        "norm_eps": 1e-3,
        "residual": "post",
    },
    "everything else": {
        "key_heads": 2,
        "norm": "rms",
        "feed_forward": "swiglu",
        "positions": "rotary",
        "tie": "none",
        "residual": "post",
        "encoder_layers": 3,
        "decoder_layers": 2,
    },
}


def both(folder, precision="float32", **options):
    """The translators of a model and of its export."""
    source = lively_bundle(folder / "trained", options={**OPTIONS, **options})
    return load(source, "cpu", engine="torch"), load(exported(source, folder / "made", "ctranslate2", precision), "cpu")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    source = trained_bundle()
    made = exported(source, tmp_path_factory.mktemp("models") / "made", "ctranslate2")
    return load(source, "cpu", engine="torch"), load(made, "cpu")


class TestCTranslate2(EngineSuite):
    """With a Transformer."""


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_every_transformer_is_the_same_there(tmp_path, options):
    """Log-probabilities, greedy text and the one attention map, which is not of the first head."""
    torch, engine = both(tmp_path, **options)
    for one, other in zip(torch.engine.log_probs(PARTS), engine.engine.log_probs(PARTS), strict=True):
        assert np.allclose(one, other, atol=1e-4)
    texts = ["the dog runs.", "a small cat sees the old man", "개"]
    found = zip(torch.translate(texts, beam_size=1), engine.translate(texts, beam_size=1), strict=True)
    assert all(told(one) == told(other) for one, other in found)
    for one, other in zip(torch.engine.record(PARTS), engine.engine.record(PARTS), strict=True):
        assert np.allclose(one.cross.weights[TOLD.view.layer, TOLD.view.head], other.cross.weights, atol=1e-4)


@pytest.mark.parametrize("precision", ["int8", "int8_float32"])
def test_rounded_weights_are_near_and_the_model_stays_as_it_was(tmp_path, precision):
    """With weights of 127 steps, sums of products overflow on processors without VNNI: it would be 0.9."""
    source = trained_bundle()
    model = Bundle.open(source).model()
    before = [each.clone() for each in model.parameters()]
    made = exported(source, tmp_path / "made", "ctranslate2", precision)
    assert all((one == other).all() for one, other in zip(before, model.parameters(), strict=True))
    torch, engine = load(source, "cpu", engine="torch"), load(made, "cpu")
    assert engine.engine.precision == precision
    differences = [
        np.abs(one - other).max()
        for one, other in zip(torch.engine.log_probs(PARTS), engine.engine.log_probs(PARTS), strict=True)
    ]
    assert 0 < max(differences) < 0.3
    assert (made / "ctranslate2" / "model.bin").stat().st_size < (source / "model.safetensors").stat().st_size


def test_each_attempt_at_int8_is_loaded_and_near(tmp_path):
    source = trained_bundle()
    reference = load(source, "cpu", engine="torch").engine.log_probs(PARTS)
    attempts = [each for each in range(len(QUANTIZATIONS)) if has_vnni() or not QUANTIZATIONS[each].needs_vnni]
    sizes = []
    for attempt in attempts:
        made = exported(source, tmp_path / str(attempt), "ctranslate2", "int8", attempt=attempt)
        found = load(made, "cpu").engine.log_probs(PARTS)
        assert 0 < max(np.abs(one - other).max() for one, other in zip(reference, found, strict=True)) < 0.3
        sizes.append((made / "ctranslate2" / "model.bin").stat().st_size)
    assert sizes[0] < sizes[1]  # whose embeddings are stored apart from the output layer


def test_an_export_that_would_overflow_is_not_loaded(tmp_path, monkeypatch):
    made = exported(trained_bundle(), tmp_path / "made", "ctranslate2", "int8", attempt=len(QUANTIZATIONS) - 1)
    monkeypatch.setattr("softgaze.engines.ctranslate2_engine.has_vnni", lambda: False)
    with pytest.raises(ResourceError, match="VNNI"):
        load(made, "cpu")


@given(seed=st.integers(0, 2**32), size=st.sampled_from([1e-30, 1.0, 1e30]), rows=st.integers(1, 4))
def test_a_weight_is_rounded_to_the_nearest_of_steps_whose_products_fit(seed, size, rows):
    matrix = (np.random.default_rng(seed).normal(size=(rows, 5)) * size).astype(np.float32)
    matrix[0] = 0
    rounded, scales = quantize_rows(matrix)
    assert rounded.dtype == np.int8
    assert not rounded[0].any()
    assert (abs(rounded[1:]).max(1, initial=0) == MAX_QUANTIZED).all()  # and a row uses all of them
    assert 2 * 255 * MAX_QUANTIZED < 2**15
    assert (abs(rounded / scales[:, None] - matrix) <= 0.501 / scales[:, None]).all()


def test_nothing_is_cut_silently(tmp_path):
    """CTranslate2 by itself reads 1,024 tokens and writes 256."""
    source = lively_bundle(tmp_path / "trained", options={**SMALL, "positions": "rotary"}, max_length=2000)
    torch, engine = (
        load(source, "cpu", engine="torch"),
        load(exported(source, tmp_path / "made", "ctranslate2", told=None), "cpu"),
    )
    text = " ".join(["the dog sees a cat"] * 250)
    [part] = engine.translate(text, beam_size=1, min_length=400, max_length=400).parts
    assert len(part.source_ids) > 1024
    assert len(part.target_ids) >= 399
    assert told(engine.translate(text, beam_size=1, max_length=300)) == told(
        torch.translate(text, beam_size=1, max_length=300)
    )


def test_without_a_choice_the_mean_of_the_heads_is_told(tmp_path):
    source = lively_bundle(tmp_path / "trained", options=SMALL)
    engine = load(exported(source, tmp_path / "made", "ctranslate2", told=None), "cpu")
    torch = load(source, "cpu", engine="torch")
    for one, other in zip(torch.engine.record(PARTS), engine.engine.record(PARTS), strict=True):
        assert np.allclose(one.cross.weights[0].mean(0), other.cross.weights[0, 0], atol=1e-4)
    assert "mean of all heads" in engine.engine.note


def test_texts_longer_than_the_table_of_places_are_cut_there(tmp_path):
    torch, engine = both(tmp_path, positions="learned", max_length=12)
    assert engine.max_positions == torch.max_positions == 12
    assert engine.max_source_length == torch.max_source_length
    text = "the dog sees a cat and the man sees a dog"
    for min_length in (0, 30):
        one, other = (each.translate(text, beam_size=1, min_length=min_length) for each in (torch, engine))
        assert told(one) == told(other)


@pytest.mark.parametrize(("heads", "key_heads"), [(4, 4), (4, 2), (4, 1), (1, 1), (6, 3)])
def test_a_head_is_moved_to_the_front_with_those_that_share_its_keys(heads, key_heads):
    size = heads // key_heads
    for first in range(heads):
        order, groups = head_order(heads, key_heads, first)
        assert order[0] == first
        assert sorted(order) == [*range(heads)]
        assert [head // size for head in order[::size]] == groups
        assert all(head // size == groups[place // size] for place, head in enumerate(order))


def test_special_tokens_that_a_model_likes_are_never_written(tmp_path):
    source = lively_bundle(tmp_path / "trained", options={**OPTIONS, "tie": "none"})

    def praise(model, tokenizers):
        model.output.weight.data[[0, 1, 2]] *= 9.0  # often likelier than anything

    changed(source, praise)
    torch, engine = load(source, "cpu", engine="torch"), load(exported(source, tmp_path / "made", "ctranslate2"), "cpu")
    texts = ["the dog runs.", "a small cat sees the old man", "개"]
    found = engine.translate(texts, beam_size=3, num_hypotheses=3)
    assert all(token > 3 for each in found for one in told(each) for _, target, _ in one for token in target)
    for one, other in zip(torch.translate(texts, beam_size=1), engine.translate(texts, beam_size=1), strict=True):
        assert told(one) == told(other)
        assert other.score == pytest.approx(one.score, abs=1e-3)
    raw = engine.engine.translator.translate_batch(
        [engine.bundle.tokenizers.source.pieces(found[0].parts[0].source_ids)], beam_size=1, max_decoding_length=9
    )
    assert {*raw[0].hypotheses[0]} & {"<pad>", "<unk>", "<s>"}  # else nothing was tested


@given(things=st.lists(st.integers(), max_size=12), count=st.integers(0, 5))
def test_a_few_are_always_ahead(things, count):
    made = []
    given_out = []
    for each in _prefetch(map(lambda one: made.append(one) or one, things), count):  # noqa: C417  made one by one
        given_out.append(each)
        assert len(made) == min(len(given_out) + count, len(things))
    assert given_out == things


def test_who_stops_listening_waits_for_few_batches(models, monkeypatch):
    begun = []
    submit = CTranslate2Engine._submit
    monkeypatch.setattr(CTranslate2Engine, "_submit", lambda *given, **more: begun.append(0) or submit(*given, **more))
    next(models[1].translate_lines(["the dog"] * 100, window=2, ahead=True, beam_size=1))
    assert len(begun) <= 2 + PREFETCH * models[1].engine.translator.num_translators


def test_devices_have_our_names():
    assert (pick_ctranslate2_device("auto", 0), pick_ctranslate2_device("auto", 1)) == ("cpu", "cuda")
    assert pick_ctranslate2_device("cuda:1", 2) == "cuda:1"
    for name, gpus in (("mps", 0), ("cuda", 0), ("cuda:1", 1), ("cpu:1", 0), ("tpu", 4), ("cuda:x", 1)):
        with pytest.raises(UsageError, match="is not available to CTranslate2"):
            pick_ctranslate2_device(name, gpus)


def test_interventions_are_rejected(models):
    engine = models[1].engine
    [[source]] = models[1].encode(["the dog"], SearchOptions())
    with pytest.raises(UsageError, match="need the torch engine"):
        list(engine.search([[source._replace(interventions=("any",))]], SearchOptions()))
    for score in (engine.record, engine.log_probs):
        with pytest.raises(UsageError, match="need the torch engine"):
            score([PARTS[0]._replace(interventions=("any",))])
