import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.serve.batching import LONGEST, Batcher, Full, Late


@dataclass(frozen=True)
class Echo:
    """Gives back what it got, with its name; remembers batches, and waits where it is told to."""

    name: str = "a"
    batches: list = field(default_factory=list, compare=False)
    gate: threading.Event = field(default_factory=threading.Event, compare=False)

    def run(self, items):
        self.gate.wait(10)
        self.batches.append(list(items))
        if "bad" in items:
            raise ValueError("bad")
        return [f"{self.name}:{item}" for item in items]


def opened(name="a"):
    work = Echo(name)
    work.gate.set()
    return work


@pytest.fixture
def batcher():
    made = []

    def make(threads=1, window=0.0, most=64, room=1000, watcher=None):
        made.append(Batcher(threads, window, most, room, watcher))
        return made[-1]

    yield make
    for each in made:
        each.close()


def submit(batcher, work, items, seconds=30.0):
    return batcher.submit(work, items, [len(str(item)) for item in items], seconds)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.text(max_size=9), max_size=6)), max_size=12))
def test_every_item_gets_its_own_result(requests):
    batcher = Batcher(2, 0.001, 4, 1000)
    works = {name: opened(name) for name in "abc"}
    promised = [(name, items, submit(batcher, works[name], items)) for name, items in requests]
    batcher.close()
    for name, items, promises in promised:
        assert [each.result(0) for each in promises] == [f"{name}:{item}" for item in items]


def blocked(batcher):
    """A batcher whose only thread is at work until the gate opens."""
    work = Echo("block")
    promise = submit(batcher, work, ["first"])[0]
    while not promise.running():
        time.sleep(0.001)
    return work.gate


def test_what_waits_is_done_together_oldest_first_and_works_apart(batcher):
    one = batcher(most=3)
    gate, a, b = blocked(one), opened("a"), opened("b")
    promises = [*submit(one, a, ["1", "22"]), *submit(one, b, ["3"]), *submit(one, a, ["444444", "5"])]
    gate.set()
    assert [each.result(10) for each in promises] == ["a:1", "a:22", "b:3", "a:444444", "a:5"]
    assert a.batches == [["1", "5", "22"], ["444444"]]  # the oldest, and the nearest to it in length
    assert b.batches == [["3"]]


def test_a_window_lets_others_come(batcher):
    one, work = batcher(window=0.5), opened()
    first = submit(one, work, ["1"])[0]
    second = submit(one, work, ["2"])[0]
    assert {first.result(10), second.result(10)} == {"a:1", "a:2"}
    assert work.batches == [["1", "2"]]


def test_a_full_batch_does_not_wait(batcher):
    one, work = batcher(window=60, most=2), opened()
    assert [each.result(10) for each in submit(one, work, ["1", "2"])] == ["a:1", "a:2"]


def test_long_items_fill_a_batch(batcher):
    one = batcher(most=64)
    gate, work = blocked(one), opened()
    promises = one.submit(work, list("abcd"), [LONGEST // 2] * 4, 30)
    gate.set()
    [each.result(10) for each in promises]
    assert work.batches == [["a", "b"], ["c", "d"]]


def test_a_full_queue_takes_all_of_a_request_or_nothing(batcher):
    one = batcher(room=3)
    gate, work = blocked(one), opened()
    kept = submit(one, work, ["1", "2"])
    with pytest.raises(Full):
        submit(one, work, ["3", "4"])
    assert len(one) == 2
    kept += submit(one, work, ["5"])
    gate.set()
    assert [each.result(10) for each in kept] == ["a:1", "a:2", "a:5"]


def test_what_is_late_or_unwanted_is_not_begun(batcher):
    one = batcher()
    gate, work = blocked(one), opened()
    late, gone, good = (
        submit(one, work, ["late"], 0.0)[0],
        submit(one, work, ["gone"])[0],
        submit(one, work, ["good"])[0],
    )
    assert gone.cancel()
    gate.set()
    assert good.result(10) == "a:good"
    with pytest.raises(Late):
        late.result(10)
    assert work.batches == [["good"]]


def test_nobody_pays_for_a_neighbour(batcher):
    one = batcher()
    gate, work = blocked(one), opened()
    promises = submit(one, work, ["1", "bad", "3"])
    gate.set()
    assert promises[0].result(10) == "a:1"
    assert promises[2].result(10) == "a:3"
    with pytest.raises(ValueError, match="bad"):
        promises[1].result(10)


def test_what_was_taken_is_finished_before_the_end_and_nothing_more_is_taken(batcher):
    one = batcher(window=60)
    work = opened()
    promises = submit(one, work, [str(number) for number in range(100)])
    one.close()
    assert [each.result(0) for each in promises] == [f"a:{number}" for number in range(100)]
    with pytest.raises(Full):
        submit(one, work, ["more"])


def test_batches_are_told(batcher):
    told = []

    class Watcher:
        def batched(self, size, waited, took):
            told.append((size, waited >= 0, took >= 0))

    one = batcher(window=60, most=2, watcher=Watcher())
    [each.result(10) for each in submit(one, opened(), ["1", "2"])]
    one.close()
    assert Counter(told) == {(2, True, True): 1}
