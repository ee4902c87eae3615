"""The peak of a process is its own."""

import subprocess
import sys

import torch

from softgaze.training import memory

TELL = "import runpy, sys; print(runpy.run_path(sys.argv[1])['peak_memory']())"  # without torch, which takes as much


def test_what_was_held_is_counted_and_stays():
    before = memory.peak_memory()
    held = bytearray(b"x") * before
    assert memory.peak_memory() > before + len(held) // 4
    del held
    assert memory.peak_memory() > before


def test_a_process_does_not_begin_with_the_memory_of_the_one_that_started_it():
    held = bytearray(b"x") * (200 << 20)
    told = subprocess.run([sys.executable, "-c", TELL, memory.__file__], capture_output=True, text=True, check=True)
    assert 0 < int(told.stdout) < len(held)


def test_only_a_gpu_has_memory_of_its_own(monkeypatch):
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", {"cuda": 1000, "cuda:1": 1001}.__getitem__)
    assert [memory.peak_device_memory(name) for name in ("cpu", "mps", "cuda", "cuda:1")] == [None, None, 1000, 1001]
