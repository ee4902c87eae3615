"""`tune_cpu` is the only process-wide tuning; a library call changes nothing."""

import os
import platform
import subprocess
import sys

import pytest

from softgaze import runtime


def test_a_capacity_the_user_chose_stays(monkeypatch):
    monkeypatch.setattr(runtime, "_tuned", False)
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))  # leave this process's allocator alone
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", raising=False)
    runtime.tune_cpu()
    assert runtime.is_tuned()
    assert os.environ["LRU_CACHE_CAPACITY"] == "7"
    assert int(os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]) > 1024


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
