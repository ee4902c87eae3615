import numpy as np
import pytest
import torch
from hypothesis import given
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import checks
from checks import RAGGED, SMALL, batch_of, normal, quick, randomize, same
from softgaze.models.rnn import CELLS, BiRNNLayer
from softgaze.scores import SCORES

RNN, BAHDANAU, LUONG = SMALL["rnn"], SMALL["rnn-bahdanau"], SMALL["rnn-luong"]
WINDOW = {"window_size": 2, "memory_is_a_set": False, "sums_to_one": False}
CASES = (
    {
        "gru": RNN,
        "gru-2-tie-output": RNN.but(layers=2, tie="output"),
        "lstm-tie-none": RNN.but(cell="lstm", tie="none"),
        "lstm-2": RNN.but(cell="lstm", layers=2),
        "bahdanau": BAHDANAU,
        "bahdanau-without-shortcut": BAHDANAU.but(shortcut=False),
        "bahdanau-lstm-2": BAHDANAU.but(cell="lstm", layers=2),
        "bahdanau-dot-local-p": BAHDANAU.but(score="dot", window="local-p", **WINDOW),
        "luong-gru-2": LUONG.but(layers=2),
        "luong-input-feeding": LUONG.but(input_feeding=True),
        "luong-input-feeding-lstm-2": LUONG.but(input_feeding=True, cell="lstm", layers=2),
        "luong-local-m": LUONG.but(window="local-m", **WINDOW),
        "luong-local-p": LUONG.but(window="local-p", **WINDOW),
        "luong-local-p-input-feeding": LUONG.but(window="local-p", input_feeding=True, **WINDOW),
    }
    | {f"luong-{score}": LUONG.but(score=score) for score in SCORES if score != "location"}
    | {"luong-location": LUONG.but(score="location", memory_is_a_set=False)}
)


@pytest.mark.parametrize(("check", "case"), checks.every(CASES))
def test_every_check(check, case):
    check(case)


# --- the encoder, against torch's own ---------------------------------------------------------------------------


def torch_twin(layer: BiRNNLayer, cell: str) -> nn.Module:
    """torch's bidirectional layer with the same parameters."""
    width = layer.ahead.rnn.input_size
    twin = {"gru": nn.GRU, "lstm": nn.LSTM}[cell](width, width // 2, batch_first=True, bidirectional=True).double()
    ahead, back = layer.ahead.rnn.state_dict(), layer.back.rnn.state_dict()
    twin.load_state_dict(ahead | {f"{name}_reverse": value for name, value in back.items()})
    return twin


@pytest.mark.parametrize("cell", CELLS)
@quick
@given(lengths=checks.source_lengths)
def test_a_bidirectional_layer_is_torchs_own_on_packed_sequences(cell, lengths):
    layer = randomize(BiRNNLayer(8, CELLS[cell])).double()
    (values, lengths), table = batch_of(lengths, 1).source, normal(checks.VOCABULARY, 8)
    packed = pack_padded_sequence(table[values], lengths, batch_first=True, enforce_sorted=False)
    expected, last = torch_twin(layer, cell)(packed)
    expected, _ = pad_packed_sequence(expected, batch_first=True)
    last = last if cell == "gru" else last[0]

    outputs, final = layer(table[values], lengths)
    real = (torch.arange(values.shape[1]) < lengths[:, None])[..., None]
    same(outputs * real, expected)
    same(final, torch.cat([last[0], last[1]], -1))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layers", [1, 2])
def test_the_encoder_is_torchs_own_on_sentences_of_one_length(cell, layers):
    model = RNN.but(cell=cell, layers=layers).model
    source = batch_of([4, 4], 1).source
    vectors = model.source_embedding(source.values)
    for layer in model.encoder:
        vectors, _ = torch_twin(layer, cell)(vectors)
    same(model.encode(source).values, vectors)


@pytest.mark.parametrize("case", [BAHDANAU, LUONG])
def test_a_shortcut_puts_the_words_themselves_into_the_memory_and_nothing_else(case):
    model, source = case.but(shortcut=True).model, RAGGED.source
    direct = model.encode(source)
    model.shortcut = False
    plain = model.encode(source)
    same(direct.values, plain.values + model.source_embedding(source.values))
    same(direct.extra[0], plain.extra[0])


@pytest.mark.parametrize("cell", CELLS)
def test_without_attention_every_step_reads_the_same_last_state(cell):
    model = RNN.but(cell=cell, layers=2).model
    memory = model.encode(RAGGED.source)
    scrambled = memory._replace(values=normal(*memory.values.shape))
    same(model.decode(scrambled, RAGGED.target), model.decode(memory, RAGGED.target))


# --- the decoders, against the formulas in NumPy ----------------------------------------------------------------


class Formulas:
    """The parameters of a model as arrays, and the few functions the papers' formulas are made of."""

    def __init__(self, model: nn.Module) -> None:
        self.parameters = {name: value.detach().numpy() for name, value in model.named_parameters()}

    def linear(self, name: str, vector: np.ndarray) -> np.ndarray:
        return self.parameters[f"{name}.weight"] @ vector + self.parameters.get(f"{name}.bias", 0.0)

    def gru(self, vector: np.ndarray, state: np.ndarray) -> np.ndarray:
        of_input, of_state = (
            (self.parameters[f"decoder.rnn.weight_{side}_l0"] @ part + self.parameters[f"decoder.rnn.bias_{side}_l0"])
            for side, part in (("ih", vector), ("hh", state))
        )
        (ri, zi, ni), (rh, zh, nh) = np.split(of_input, 3), np.split(of_state, 3)
        r, z = 1 / (1 + np.exp(-ri - rh)), 1 / (1 + np.exp(-zi - zh))
        return (1 - z) * np.tanh(ni + r * nh) + z * state

    @staticmethod
    def context(scores: list[float], memory: np.ndarray) -> np.ndarray:
        weights = np.exp(scores) / np.exp(scores).sum()
        return weights @ memory


def one_sentence(model):
    """Encoded memory (S, D), the decoder's first state and the target's embeddings, as arrays."""
    batch = batch_of([4], 3)
    memory = model.encode(batch.source)
    start = np.tanh(Formulas(model).linear("bridge", memory.extra[0][0].numpy()))
    return batch, memory.values[0].numpy(), start, model.target_embedding(batch.target)[0].numpy()


@torch.no_grad()
def test_without_attention_is_the_papers_formulas():
    model = RNN.model
    (batch, _, state, words), formulas = one_sentence(model), Formulas(model)
    context, logits = model.encode(batch.source).extra[0][0].numpy(), []
    for word in words:
        state = formulas.gru(np.concatenate([word, context]), state)
        features = np.tanh(formulas.linear("readout", np.concatenate([state, word, context])))
        logits.append(model.output.weight.numpy() @ features)
    same(model(*batch)[0], torch.tensor(np.array(logits)))


@torch.no_grad()
def test_bahdanau_asks_with_the_top_layers_state_of_the_step_before():
    model, asked, said = BAHDANAU.but(layers=2).model, [], []
    with (
        model.score.query_part.register_forward_hook(lambda _, given, __: asked.append(given[0][:, 0, 0])),
        model.decoder.register_forward_hook(lambda _, __, given: said.append(given[0][:, 0])),
    ):
        model(*RAGGED)
    assert len(asked) == len(said) > 1
    for question, before in zip(asked[1:], said, strict=False):
        same(question, before)


@torch.no_grad()
def test_local_m_looks_around_the_place_of_its_own_word():
    hook, reach = checks.Recorder(), 1
    batch = batch_of([4], 7)
    LUONG.but(window="local-m", window_size=reach).model(*batch, hook)
    weights = hook.seen["cross", 0][0][1][0, 0]  # (T, S)
    target, source = (torch.arange(size) for size in weights.shape)
    near = (target[:, None] - source).abs() <= reach
    assert bool((weights[~near] == 0).all())
    same(weights.sum(-1), near.any(-1).to(weights.dtype))  # past the sentence there is nothing to look at


@torch.no_grad()
def test_bahdanau_is_the_papers_formulas():
    model = BAHDANAU.model
    (batch, memory, state, words), formulas = one_sentence(model), Formulas(model)
    logits = []
    for word in words:
        part = formulas.linear("score.query_part", state)
        met = [np.tanh(part + formulas.linear("score.key_part", key)) for key in memory]
        context = formulas.context([formulas.linear("score.vector", each)[0] for each in met], memory)
        state = formulas.gru(np.concatenate([word, context]), state)
        features = np.tanh(formulas.linear("readout", np.concatenate([state, word, context])))
        logits.append(model.output.weight.numpy() @ features)
    same(model(*batch)[0], torch.tensor(np.array(logits)))


@torch.no_grad()
@pytest.mark.parametrize("input_feeding", [False, True])
def test_luong_is_the_papers_formulas(input_feeding):
    model = LUONG.but(input_feeding=input_feeding).model
    (batch, memory, state, words), formulas = one_sentence(model), Formulas(model)
    logits, features = [], np.zeros(8)
    for word in words:
        state = formulas.gru(np.concatenate([word, features]) if input_feeding else word, state)
        context = formulas.context([state @ formulas.linear("score.bilinear", key) for key in memory], memory)
        features = np.tanh(formulas.linear("readout", np.concatenate([state, context])))
        logits.append(model.output.weight.numpy() @ features)
    same(model(*batch)[0], torch.tensor(np.array(logits)))


@pytest.mark.parametrize(("input_feeding", "expected"), [(False, 1), (True, RAGGED.target.shape[1])])
def test_without_input_feeding_the_whole_target_is_one_call(input_feeding, expected):
    model, calls = LUONG.but(input_feeding=input_feeding).make(), []
    with model.decoder.register_forward_hook(lambda *_: calls.append(1)):
        model(*RAGGED)
    assert len(calls) == expected


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="even width, got 7"):
        RNN.but(width=7).make()
