import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from checks import normal, same_tree
from softgaze.kv_cache import SPARE, BufferedKVCache, KVCache
from softgaze.models.base import select_rows

ROWS = 3


def nothing() -> KVCache:
    """What is remembered of no token, in a batch of three."""
    return KVCache(torch.empty(ROWS, 2, 0, 4), torch.empty(ROWS, 2, 0, 4))


def token(number: int, rows: int = ROWS, size: int = 1) -> KVCache:
    """Keys and values of one token, or more: other ones for each number."""
    return KVCache(*(normal(rows, 2, size, 4, seed=2 * number + side).float() for side in (0, 1)))


def joined(one: KVCache, other: KVCache) -> KVCache:
    """As it is meant: everything copied."""
    return KVCache(*(torch.cat(pair, -2) for pair in zip(one, other, strict=True)))


def read(count: int) -> KVCache:
    """So many tokens, one after the other."""
    own = nothing()
    for number in range(count):
        own = own.append(token(number))
    return own


# Go on from any state there is, as often as one likes: read a token, or choose rows.
moves = st.tuples(st.integers(0, 99), st.none() | st.lists(st.integers(0, ROWS - 1), min_size=ROWS, max_size=ROWS))


@given(st.lists(moves, max_size=3 * SPARE))
@torch.inference_mode()
def test_every_state_stays_what_it_was_whatever_goes_on_from_it(story):
    states, plain = [nothing()], [nothing()]
    for number, (start, rows) in enumerate(story):
        start %= len(states)
        if rows is None:
            states.append(states[start].append(token(number)))
            plain.append(joined(plain[start], token(number)))
        else:
            states.append(select_rows(states[start], torch.tensor(rows)))
            plain.append(KVCache(*(part[rows] for part in plain[start])))
    same_tree([tuple(each) for each in states], [tuple(each) for each in plain])


@torch.inference_mode()
def test_nothing_is_copied_while_there_is_room():
    own = read(1)
    memory = own.keys.data_ptr()
    for number in range(1, SPARE):
        own = own.append(token(number))
        assert own.keys.data_ptr() == memory
    assert own.append(token(SPARE)).keys.data_ptr() != memory


@torch.inference_mode()
def test_rows_that_move_are_copied_with_their_room():
    moved = select_rows(read(2), torch.tensor([[2, 0, 0]]))
    longer = moved.append(token(9))
    assert isinstance(longer, BufferedKVCache)
    assert longer.keys.data_ptr() == moved.keys.data_ptr()


@torch.inference_mode()
def test_several_tokens_at_once_take_no_room():
    assert not isinstance(nothing().append(token(1, size=4)), BufferedKVCache)
    same_tree(tuple(read(2).append(token(5, size=4))), tuple(joined(read(2), token(5, size=4))))


@torch.inference_mode()
@pytest.mark.parametrize("own", [nothing(), read(2)], ids=["plain", "growing"])
def test_other_rows_cannot_be_appended(own):
    with pytest.raises(ValueError, match="cannot append keys"):
        own.append(token(1, rows=2))


@torch.inference_mode()
def test_one_that_was_rebuilt_of_its_tensors_is_like_any_other():
    own = read(2)
    rebuilt = type(own)(*own)
    same_tree(tuple(rebuilt.append(token(5))), tuple(joined(own, token(5))))
    same_tree(tuple(select_rows(rebuilt, torch.tensor([2, 0]))), tuple(part[[2, 0]] for part in own))


def test_gradients_reach_what_was_appended():
    first, second = (KVCache(*(part.requires_grad_() for part in token(number))) for number in (1, 2))
    nothing().append(first).append(second).keys.sum().backward()
    assert first.keys.grad is not None
    assert second.keys.grad is not None


def test_a_search_may_be_gone_on_with_outside_of_it():
    with torch.inference_mode():
        own = read(2)
    same_tree(tuple(own.append(token(5))), tuple(joined(own, token(5))))
