import inspect

import pytest
import torch

from checks import SMALL, TEXT, VOCABULARY
from errors import one_line_error
from softgaze.errors import UsageError
from softgaze.models import MODELS, Seq2Seq, build_model, model_options


@pytest.mark.parametrize("arch", MODELS)
def test_every_size_of_every_arch_can_be_built(arch):
    counts = []
    for size in ("tiny", "small", "base", "big"):
        with torch.device("meta"):
            model = build_model(arch, size, source_vocabulary=768, target_vocabulary=768)
        assert isinstance(model, Seq2Seq)
        counts.append(sum(parameter.numel() for parameter in model.parameters()))
    assert counts == sorted(set(counts))


@pytest.mark.parametrize("arch", TEXT)
def test_two_vocabularies_give_logits_over_the_targets_own(arch):
    case = SMALL[arch].but(tie="none")
    model = build_model(case.arch, source_vocabulary=7, target_vocabulary=9, **case.options)
    assert model.output.out_features == model.target_embedding.num_embeddings == 9
    assert model.source_embedding.num_embeddings == 7


def test_the_tiny_transformer_has_the_numbers_promised():
    model = build_model("transformer", source_vocabulary=VOCABULARY)
    layer = model.encoder[0]
    assert (len(model.encoder), len(model.decoder), layer.attention.heads) == (4, 4, 4)
    assert layer.feed_forward.inner.weight.shape == (256, 128)


@pytest.mark.parametrize(
    ("arch", "chosen", "sentence"),
    [
        ("transfomer", {}, "unknown arch 'transfomer'; did you mean transformer"),
        ("xyzzy", {}, "unknown arch 'xyzzy'; known: rnn, rnn-bahdanau, rnn-luong, conv, transformer"),
        ("conv", {"size": "tinny"}, "unknown size of conv 'tinny'; did you mean tiny"),
        ("transformer", {"head": 2}, "transformer has no option 'head'; did you mean heads"),
        ("rnn-bahdanau", {"input_feeding": True}, "rnn-bahdanau has no option 'input_feeding'"),
        ("rnn-luong", {"score": "adaptive"}, "unknown score 'adaptive'; did you mean additive"),
        ("rnn-luong", {"window": "local"}, "unknown window 'local'; did you mean local-p or local-m"),
        ("rnn", {"cell": "gruu"}, "unknown cell 'gruu'; did you mean gru"),
        ("transformer", {"positions": "rotery"}, "unknown positions 'rotery'; did you mean rotary"),
        ("transformer", {"norm": "layers"}, "unknown norm 'layers'; did you mean layer"),
        ("transformer", {"residual": "prost"}, "unknown residual 'prost'; did you mean post"),
        ("transformer", {"feed_forward": "geglu"}, "unknown feed_forward 'geglu'; did you mean"),
        ("conv", {"tie": "al"}, "unknown tie 'al'; did you mean all"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(arch, chosen, sentence):
    with one_line_error(UsageError, sentence) as caught:
        build_model(arch, source_vocabulary=VOCABULARY, **chosen)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("arch", TEXT)
def test_tying_two_vocabularies_is_refused_with_a_way_out(arch):
    with pytest.raises(ValueError, match="got 5 source and 6 target tokens; use tie 'output' or 'none'"):
        build_model(arch, source_vocabulary=5, target_vocabulary=6)


@pytest.mark.parametrize("arch", MODELS)
def test_options_are_every_keyword_the_model_takes(arch):
    model = MODELS[arch]
    known = model_options(model)
    assert {"width", "dropout"} <= known.keys()
    assert known.keys() >= {name for size in model.sizes.values() for name in size}
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in known.values())
    defaults = {each.name: each.default for each in known.values() if each.default is not each.empty}
    build_model(arch, source_vocabulary=model.min_source_size, **defaults)


def test_options_of_a_subclass_come_with_its_own_defaults():
    assert model_options(MODELS["rnn-bahdanau"])["score"].default == "additive"
    assert model_options(MODELS["rnn-luong"])["score"].default == "general"
    assert "score" not in model_options(MODELS["rnn"])


@pytest.mark.parametrize("option", ["width", "heads", "key_heads", "decoder_layers", "max_length"])
@pytest.mark.parametrize("value", [0, -1, "many", 1.5, True])
def test_sizes_and_counts_are_whole_numbers_from_one(option, value):
    with one_line_error(UsageError, f"option {option} of transformer"):
        build_model("transformer", source_vocabulary=20, **{option: value})


@pytest.mark.parametrize("count", [-3, 0, 4, 2.5, "a"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_vocabulary_holds_more_than_its_special_tokens(side, count):
    given = {"source_vocabulary": 20, "target_vocabulary": 20, f"{side}_vocabulary": count}
    with pytest.raises(UsageError, match=f"the {side} vocabulary needs more than the 4 special tokens"):
        build_model("rnn-luong", **given, width=8)


@pytest.mark.parametrize("value", [1.5, -0.1, 1.0, float("nan")])
@pytest.mark.parametrize("arch", MODELS)
def test_dropout_is_a_share(arch, value):
    with one_line_error(UsageError, f"option dropout of {arch} must be at least 0 and below 1"):
        build_model(arch, source_vocabulary=20, dropout=value)
    build_model("rnn-luong", source_vocabulary=20, width=8, dropout=0)


@pytest.mark.parametrize("name", [None, 3])
def test_names_are_words(name):
    with pytest.raises(UsageError, match="unknown arch"):
        build_model(name, source_vocabulary=20)
    with pytest.raises(UsageError, match="unknown size"):
        build_model("rnn", name, source_vocabulary=20)
