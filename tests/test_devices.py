import os
import subprocess
import sys
from threading import Thread, get_native_id

import pytest
import torch

from softgaze import devices
from softgaze.devices import behind_others, cores, need_torch, pick_device, side_by_side, threads, using_threads
from softgaze.errors import ResourceError, UsageError


def having(monkeypatch, cuda: int = 0, mps: bool = False):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"), [(0, False, "cpu"), (1, False, "cuda"), (0, True, "mps"), (2, True, "cuda")]
)
def test_auto_takes_cuda_then_mps_then_cpu(monkeypatch, cuda, mps, expected):
    having(monkeypatch, cuda, mps)
    assert pick_device("auto") == torch.device(expected)
    assert pick_device() == torch.device(expected)


def test_a_named_device_is_taken_if_it_is_there(monkeypatch):
    having(monkeypatch, cuda=2)
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device("cuda:1") == torch.device("cuda", 1)


@pytest.mark.parametrize("name", ["cuda:2", "mps", "cpu:1"])
def test_an_absent_device_is_refused_with_what_there_is(monkeypatch, name):
    having(monkeypatch, cuda=2)
    with pytest.raises(UsageError, match=rf"{name} is not available; here there is cpu \(1\), cuda \(2\)"):
        pick_device(name)


@pytest.mark.parametrize("name", ["gpu", "cud", "", "cuda:", "cuda:x", "cuda:-1", "meta", "auto:1"])
def test_an_unknown_device_is_refused(name):
    with pytest.raises(UsageError, match="unknown device"):
        pick_device(name)


def test_a_near_name_is_suggested():
    with pytest.raises(UsageError, match="did you mean cuda"):
        pick_device("cud")


@pytest.mark.parametrize("missing", ["torch", "safetensors"])
def test_a_missing_package_is_one_line_with_the_extra(monkeypatch, missing):
    monkeypatch.setattr(devices, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(ResourceError, match=rf"needs {missing}.*pip install 'softgaze\[train\]'"):
        need_torch()


def test_neither_the_package_nor_the_facade_imports_torch():
    program = "import sys, softgaze, softgaze.translator, softgaze.cli; softgaze.load; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_jobs_side_by_side_give_what_they_give_in_turn(threads):
    seen = set()

    def work(number):
        seen.add(torch.get_num_threads())
        return number * number

    before = torch.get_num_threads()
    with using_threads(threads):
        assert [*side_by_side(work, range(7), torch.device("cpu"))] == [number * number for number in range(7)]
    assert (seen, torch.get_num_threads()) == ({1}, before)


def test_a_job_that_fails_says_so_and_gives_the_threads_back():
    def work(number):
        raise ValueError(f"job {number}")

    with using_threads(2):
        with pytest.raises(ValueError, match="job 0"):
            [*side_by_side(work, range(3), torch.device("cpu"))]
        assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("asked", "given"), [("", None), ("1", 1), ("0", 1), ("100000", None), ("all", None), ("4,2", None)]
)
def test_engines_take_as_many_threads_as_are_allowed(monkeypatch, asked, given):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert threads() == (given or cores())


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority of their own on Linux only")
def test_work_behind_others_steps_back_with_the_threads_it_starts_and_nobody_else_does():
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, get_native_id())

    def own_and_of_a_thread() -> list[int]:
        found = [priority()]
        thread = Thread(target=lambda: found.append(priority()))
        thread.start()
        thread.join()
        return found

    before = priority()
    assert behind_others(own_and_of_a_thread) == [10, 10]
    assert priority() == before


def test_what_fails_behind_others_fails_here():
    with pytest.raises(ZeroDivisionError):
        behind_others(lambda: 1 // 0)
