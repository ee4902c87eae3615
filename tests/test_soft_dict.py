import doctest
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from checks import same
from softgaze import soft_dict
from softgaze.attention import attend
from softgaze.scores import cosine, dot, scaled_dot
from softgaze.soft_dict import SoftDict

AGES = {"computer": 9, "dog": 2, "cat": 3}
CLOSE = {"computer": 0.1, "dog": 0.9, "cat": 0.7}
VECTORS = {
    "computer": torch.tensor([0.1, -0.9, 0.3]),
    "dog": torch.tensor([0.9, 0.2, 0.1]),
    "cat": torch.tensor([0.7, 0.6, -0.2]),
    "puppy": torch.tensor([0.8, 0.4, 0.2]),
}


def puppy_like(query, key):
    return CLOSE[key]


def test_its_own_examples_are_true():
    found = doctest.testmod(soft_dict)
    assert found.attempted >= 4
    assert not found.failed


# --- exact, then any similarity ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGES)
def test_an_exact_look_up_is_a_dictionary(name):
    assert SoftDict(AGES)[name].item() == AGES[name]
    assert SoftDict(AGES).weights(name) == {key: float(key == name) for key in AGES}


def test_a_missing_key_of_the_exact_form_is_a_key_error():
    with pytest.raises(KeyError, match="puppy"):
        SoftDict(AGES)["puppy"]


def test_puppy_is_mostly_dog_and_cat():
    found = SoftDict(AGES, similarity=puppy_like)["puppy"]
    assert found.item() == pytest.approx(2.8235, abs=5e-5)
    assert found.item() == pytest.approx((9 * 0.1 + 2 * 0.9 + 3 * 0.7) / (0.1 + 0.9 + 0.7))


def test_proportional_weights_are_a_softmax_of_log_similarities():
    weights = SoftDict(AGES, similarity=puppy_like).weights("puppy")
    expected = torch.tensor([*CLOSE.values()]).log().softmax(0)
    same(torch.tensor([*weights.values()]), expected, within=1e-6)
    assert sum(weights.values()) == pytest.approx(1)


def test_a_similarity_of_zero_is_a_weight_of_zero():
    weights = SoftDict(AGES, similarity=lambda query, key: 0.0 if key == "cat" else 1.0).weights("puppy")
    assert weights == {"computer": 0.5, "dog": 0.5, "cat": 0.0}


# --- vectors ----------------------------------------------------------------------------------------------------


def test_words_are_looked_up_through_an_embedding_with_cosine_and_softmax():
    table = {name: vector.numpy() for name, vector in VECTORS.items()}
    query = table["puppy"]
    scores = [query @ table[key] / np.linalg.norm(query) / np.linalg.norm(table[key]) for key in AGES]
    weights = np.exp(scores) / np.exp(scores).sum()
    soft = SoftDict(AGES, embed=VECTORS.__getitem__)
    assert soft["puppy"].item() == pytest.approx(weights @ [*AGES.values()], abs=1e-5)
    assert [*soft.weights("puppy").values()] == pytest.approx(weights.tolist(), abs=1e-6)


@pytest.mark.parametrize("score", [cosine, dot, scaled_dot])
def test_a_look_up_is_a_call_of_attend(score):
    names = ["computer", "dog", "cat"]
    keys = torch.stack([VECTORS[name] for name in names])
    expected = attend(VECTORS["puppy"][None], keys, keys, score=score, need_weights=True)
    found = SoftDict(names, embed=VECTORS.__getitem__, score=score).look_up("puppy")
    assert torch.equal(found.context, expected.context)
    assert torch.equal(found.weights, expected.weights)


def test_bare_keys_are_their_own_values():
    embed = VECTORS.__getitem__
    bare, spelled_out = SoftDict(["dog", "cat"], embed=embed), SoftDict({"dog": "dog", "cat": "cat"}, embed=embed)
    assert torch.equal(bare["puppy"], spelled_out["puppy"])
    assert bare["puppy"].shape == (3,)


def test_values_may_be_vectors_and_keys_tensors():
    keys, values = torch.eye(3), torch.arange(6.0).reshape(3, 2)
    exact = SoftDict(zip(keys, values, strict=True))
    assert torch.equal(exact[torch.tensor([0.0, 1.0, 0.0])], values[1])
    assert exact.weights(keys[2]) == {0: 0.0, 1: 0.0, 2: 1.0}


# --- why soft ---------------------------------------------------------------------------------------------------


def as_it_is(vector: Tensor) -> Tensor:
    return vector


def learnable() -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """A query equal to one of the keys, the keys, and their values."""
    keys = [VECTORS[name].clone().requires_grad_() for name in AGES]
    values = [torch.tensor(float(age), requires_grad=True) for age in AGES.values()]
    return VECTORS["dog"].clone().requires_grad_(), keys, values


SOFT = {
    "vectors": {"embed": as_it_is},
    "similarity": {"similarity": lambda query, key: (query @ key).exp()},
}


@pytest.mark.parametrize("form", SOFT.values(), ids=SOFT)
def test_gradients_reach_query_keys_and_values_of_the_soft_form(form):
    _, keys, values = learnable()
    query = VECTORS["puppy"].clone().requires_grad_()  # equal to no key: the cosine of equal vectors has no gradient
    SoftDict(zip(keys, values, strict=True), **form)[query].backward()
    assert all(part.grad is not None and part.grad.any() for part in [query, *keys, *values])


def test_gradients_of_the_exact_form_reach_the_value_found_and_nothing_else():
    query, keys, values = learnable()
    SoftDict(zip(keys, values, strict=True))[query].backward()
    assert all(part.grad is None for part in [query, *keys])
    assert [value.grad.item() for value in values] == [0, 1, 0]


# --- bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        (lambda: SoftDict({}), "a SoftDict needs at least one entry"),
        (lambda: SoftDict(["dog"]), "numbers or vectors of one width; words need `embed`"),
        (lambda: SoftDict({"dog": torch.ones(2), "cat": torch.ones(3)}), "numbers or vectors of one width"),
        *(
            (lambda share=share: SoftDict(AGES, similarity=lambda *_: share)["dog"], "must be finite and not negative")
            for share in (math.nan, math.inf, -0.1)
        ),
        (lambda: SoftDict(AGES, similarity=lambda *_: 1.0, embed=lambda _: torch.ones(2)), "not both"),
    ],
)
def test_mistakes_are_rejected(mistake, sentence):
    with pytest.raises(ValueError, match=sentence):
        mistake()


@pytest.mark.parametrize("as_given", [list, np.array, lambda vector: torch.tensor(vector, dtype=torch.float64)])
def test_any_kind_of_vector_will_do(as_given):
    vectors = {"dog": [1.0, 0.0], "cat": [0.0, 1.0]}
    found = SoftDict({"dog": 2, "cat": 3}, embed=lambda word: as_given(vectors[word]))
    assert float(found["dog"]) == pytest.approx((2 * math.e + 3) / (math.e + 1))


def test_keys_that_are_not_unique_go_by_number():
    assert SoftDict([("dog", 1), ("dog", 2)]).weights("dog") == {0: 0.5, 1: 0.5}


def test_a_word_is_never_a_vector():
    with pytest.raises(KeyError):
        SoftDict({"dog": 2})[torch.ones(2)]
