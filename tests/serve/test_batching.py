import threading
import time
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgaze.serve.batching import MAX_BATCH_CHARACTERS, Batcher, DeadlineExceeded, QueueFull


@dataclass(frozen=True)
class EchoJob:
    """Returns its items with its name, records the batches, and blocks until its gate is open."""

    name: str = "a"
    batches: list = field(default_factory=list, compare=False)
    gate: threading.Event = field(default_factory=threading.Event, compare=False)

    def run(self, items):
        self.gate.wait(10)
        self.batches.append(list(items))
        if "bad" in items:
            raise ValueError("bad")
        return [f"{self.name}:{item}" for item in items]


def open_job(name="a"):
    job = EchoJob(name)
    job.gate.set()
    return job


@pytest.fixture
def make_batcher():
    batchers = []

    def make(threads=1, window=0.0, max_batch=64, max_queue=1000, on_batch=None):
        batchers.append(Batcher(threads, window, max_batch, max_queue, on_batch))
        return batchers[-1]

    yield make
    for batcher in batchers:
        batcher.close()


def submit(batcher, job, items, timeout=30.0):
    return batcher.submit(job, items, [len(str(item)) for item in items], timeout)


def block(batcher):
    """Keep an idle thread of a batcher busy until the returned gate is opened."""
    job = EchoJob("block")
    [future] = submit(batcher, job, ["first"])
    while not future.running():
        time.sleep(0.001)
    return job.gate


@given(st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.text(max_size=9), max_size=6)), max_size=12))
def test_every_item_gets_its_own_result(requests):
    batcher = Batcher(2, 0.001, 4, 1000)
    jobs = {name: open_job(name) for name in "abc"}
    submitted = [(name, items, submit(batcher, jobs[name], items)) for name, items in requests]
    batcher.close()
    for name, items, futures in submitted:
        assert [future.result(0) for future in futures] == [f"{name}:{item}" for item in items]


def test_batches_hold_the_oldest_item_and_its_nearest_in_length(make_batcher):
    batcher = make_batcher(max_batch=3)
    gate, a, b = block(batcher), open_job("a"), open_job("b")
    futures = [*submit(batcher, a, ["1", "22"]), *submit(batcher, b, ["3"]), *submit(batcher, a, ["444444", "5"])]
    gate.set()
    assert [future.result(10) for future in futures] == ["a:1", "a:22", "b:3", "a:444444", "a:5"]
    assert a.batches == [["1", "5", "22"], ["444444"]]
    assert b.batches == [["3"]]


def test_a_batch_leaves_the_other_threads_their_share(make_batcher):
    batcher, a = make_batcher(threads=2), open_job()
    gates = [block(batcher), block(batcher)]
    futures = submit(batcher, a, range(8))
    for gate in gates:
        gate.set()
    assert [future.result(10) for future in futures] == [f"a:{item}" for item in range(8)]
    assert max(map(len, a.batches)) == 4


def test_items_within_the_window_share_a_batch(make_batcher):
    batcher, job = make_batcher(window=0.5), open_job()
    futures = [*submit(batcher, job, ["1"]), *submit(batcher, job, ["2"])]
    assert [future.result(10) for future in futures] == ["a:1", "a:2"]
    assert job.batches == [["1", "2"]]


def test_a_full_batch_does_not_wait_for_the_window(make_batcher):
    batcher, job = make_batcher(window=60, max_batch=2), open_job()
    assert [future.result(10) for future in submit(batcher, job, ["1", "2"])] == ["a:1", "a:2"]


def test_batches_are_limited_in_characters(make_batcher):
    batcher = make_batcher(max_batch=64)
    gate, job = block(batcher), open_job()
    futures = batcher.submit(job, list("abcd"), [MAX_BATCH_CHARACTERS // 2] * 4, 30)
    gate.set()
    for future in futures:
        future.result(10)
    assert job.batches == [["a", "b"], ["c", "d"]]


def test_a_full_queue_accepts_all_items_of_a_request_or_none(make_batcher):
    batcher = make_batcher(max_queue=3)
    gate, job = block(batcher), open_job()
    futures = submit(batcher, job, ["1", "2"])
    with pytest.raises(QueueFull):
        submit(batcher, job, ["3", "4"])
    assert len(batcher) == 2
    futures += submit(batcher, job, ["5"])
    gate.set()
    assert [future.result(10) for future in futures] == ["a:1", "a:2", "a:5"]


def test_late_and_cancelled_items_are_not_started(make_batcher):
    batcher = make_batcher()
    gate, job = block(batcher), open_job()
    [late] = submit(batcher, job, ["late"], 0.0)
    [cancelled] = submit(batcher, job, ["cancelled"])
    [good] = submit(batcher, job, ["good"])
    assert cancelled.cancel()
    gate.set()
    assert good.result(10) == "a:good"
    with pytest.raises(DeadlineExceeded):
        late.result(10)
    assert job.batches == [["good"]]


def test_a_bad_item_fails_only_itself(make_batcher):
    batcher = make_batcher()
    gate, job = block(batcher), open_job()
    futures = submit(batcher, job, ["1", "bad", "3"])
    gate.set()
    assert futures[0].result(10) == "a:1"
    assert futures[2].result(10) == "a:3"
    with pytest.raises(ValueError, match="bad"):
        futures[1].result(10)


def test_close_finishes_queued_items_and_accepts_no_more(make_batcher):
    batcher, job = make_batcher(window=60), open_job()
    futures = submit(batcher, job, [str(number) for number in range(100)])
    batcher.close()
    assert [future.result(0) for future in futures] == [f"a:{number}" for number in range(100)]
    with pytest.raises(QueueFull):
        submit(batcher, job, ["more"])


def test_on_batch_is_called_for_each_batch(make_batcher):
    calls = []
    batcher = make_batcher(window=60, max_batch=2, on_batch=lambda *call: calls.append(call))
    for future in submit(batcher, open_job(), ["1", "2"]):
        future.result(10)
    batcher.close()
    [(size, waited, seconds)] = calls
    assert size == 2
    assert min(waited, seconds) >= 0
