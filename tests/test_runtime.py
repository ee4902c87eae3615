import os
import platform
import subprocess
import sys
from threading import Thread, get_native_id

import pytest
import torch

from softgaze import runtime
from softgaze.errors import ResourceError, UsageError
from softgaze.runtime import (
    cores,
    cpu_flags,
    need_torch,
    parallel_map,
    pick_device,
    run_low_priority,
    threads,
    using_threads,
)


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
    with pytest.raises(UsageError, match=rf"{name} is not available; available: cpu \(1\), cuda \(2\)"):
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
    monkeypatch.setattr(runtime, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(ResourceError, match=rf"{missing} is not installed.*pip install 'softgaze\[train\]'"):
        need_torch()


def test_neither_the_package_nor_the_facade_imports_torch():
    program = "import sys, softgaze, softgaze.translator, softgaze.cli; softgaze.load; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_parallel_jobs_give_the_results_of_sequential_ones(monkeypatch, threads):
    seen = set()

    def work(number):
        seen.add(torch.get_num_threads())
        return number * number

    monkeypatch.setattr(runtime, "_tuned", True)
    before = torch.get_num_threads()
    with using_threads(threads):
        assert [*parallel_map(work, range(7), torch.device("cpu"))] == [number * number for number in range(7)]
    assert (seen, torch.get_num_threads()) == ({1}, before)


def test_without_tuning_jobs_run_in_the_calling_thread_with_all_threads():
    seen = set()
    before = torch.get_num_threads()
    jobs = parallel_map(lambda _: seen.add((get_native_id(), torch.get_num_threads())), range(3), torch.device("cpu"))
    assert len([*jobs]) == 3
    assert seen == {(get_native_id(), before)}


@pytest.mark.parametrize(("tuned", "is_small", "expected"), [(True, True, 1), (True, False, 2), (False, True, 2)])
def test_a_small_job_alone_has_one_thread_in_a_tuned_process(monkeypatch, tuned, is_small, expected):
    monkeypatch.setattr(runtime, "_tuned", tuned)
    with using_threads(2):
        jobs = parallel_map(lambda _: torch.get_num_threads(), [None], torch.device("cpu"), is_small=is_small)
        assert ([*jobs], torch.get_num_threads()) == ([expected], 2)


def test_a_failing_job_raises_and_restores_the_threads(monkeypatch):
    monkeypatch.setattr(runtime, "_tuned", True)

    def work(number):
        raise ValueError(f"job {number}")

    with using_threads(2):
        with pytest.raises(ValueError, match="job 0"):
            [*parallel_map(work, range(3), torch.device("cpu"))]
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
    assert run_low_priority(own_and_of_a_thread) == [min(before + 10, 19)] * 2
    assert priority() == before


def test_what_fails_behind_others_fails_here():
    with pytest.raises(ZeroDivisionError):
        run_low_priority(lambda: 1 // 0)


PRINT_PEAK = "import runpy, sys; print(runpy.run_path(sys.argv[1])['peak_memory']())"  # without importing torch


def test_peak_memory_includes_freed_memory():
    before = runtime.peak_memory()
    block = bytearray(b"x") * before
    assert runtime.peak_memory() > before + len(block) // 4
    del block
    assert runtime.peak_memory() > before


def test_peak_memory_of_a_child_does_not_start_with_the_parents():
    block = bytearray(b"x") * (200 << 20)
    command = [sys.executable, "-c", PRINT_PEAK, runtime.__file__]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 0 < int(result.stdout) < len(block)


def test_peak_device_memory_of_gpus_only(monkeypatch):
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", {"cuda": 1000, "cuda:1": 1001}.__getitem__)
    names = ("cpu", "mps", "cuda", "cuda:1")
    assert [runtime.peak_device_memory(name) for name in names] == [None, None, 1000, 1001]


# --- tune_cpu: the only process-wide tuning -------------------------------------------------------------------------


@pytest.mark.parametrize(("flags", "kernels"), [({"avx512_bf16"}, 64), ({"avx2"}, 8192)])
def test_a_capacity_the_user_chose_stays(monkeypatch, flags, kernels):
    monkeypatch.setattr(runtime, "cpu_flags", lambda: frozenset(flags))
    monkeypatch.setattr(runtime, "_tuned", False)
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))  # leave this process's allocator alone
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", raising=False)
    runtime.tune_cpu()
    assert runtime._tuned
    assert os.environ["LRU_CACHE_CAPACITY"] == "7"
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == str(kernels)


PAGE_FAULTS = """
import resource, sys, torch
from softgaze.runtime import tune_cpu
if sys.argv[1] == "tuned":
    tune_cpu()
def work(rounds):
    for _ in range(rounds):
        torch.ones(10**7).add(1)  # 40 MB: more than glibc keeps by default
work(60)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work(10)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="tunes the allocator of glibc")
def test_a_tuned_process_reuses_large_tensors():
    faults = {
        kind: int(subprocess.run([sys.executable, "-c", PAGE_FAULTS, kind], capture_output=True, check=True).stdout)
        for kind in ("plain", "tuned")
    }
    assert faults["tuned"] < faults["plain"] / 4


SPINNING = "from softgaze.runtime import tune_cpu; tune_cpu(); import torch"


@pytest.mark.skipif(sys.platform != "linux", reason="torch uses libgomp on Linux")
@pytest.mark.parametrize(
    ("chosen", "expected"),
    [({}, str(runtime.SPIN_COUNT)), ({"GOMP_SPINCOUNT": "77"}, "77"), ({"OMP_WAIT_POLICY": "passive"}, "0")],
)
def test_waiting_threads_sleep_soon_unless_the_user_chose(chosen, expected):
    clean = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    environment = {**clean, "OMP_DISPLAY_ENV": "VERBOSE", **chosen}
    run = subprocess.run([sys.executable, "-c", SPINNING], env=environment, capture_output=True, text=True, check=True)
    assert f"GOMP_SPINCOUNT = '{expected}'" in run.stderr


@pytest.mark.parametrize(
    ("content", "flags"),
    [
        ("model name\t: A\nflags\t\t: fpu amx_bf16\n\nflags\t\t: fpu\n", {"fpu", "amx_bf16"}),
        ("Features\t: fp asimd\n", set()),  # ARM
        (None, set()),  # not Linux
    ],
)
def test_flags_are_those_of_the_first_processor(tmp_path, monkeypatch, content, flags):
    path = tmp_path / "cpuinfo"
    if content is not None:
        path.write_text(content)
    monkeypatch.setattr("softgaze.runtime.Path", lambda name: path)
    assert cpu_flags.__wrapped__() == flags
