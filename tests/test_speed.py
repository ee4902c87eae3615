"""The switch, and what a process is told."""

import os
import platform
import subprocess
import sys

import pytest
import torch

from softgaze.speed import is_fast, keep_primitives, measures, prepare_process, tune_allocator


def test_the_measures_are_on_and_a_block_may_turn_them_off_and_on_again():
    assert is_fast()
    with measures(False):
        assert not is_fast()
        with measures(True):
            assert is_fast()
        assert not is_fast()
    assert is_fast()


def test_an_error_inside_the_block_puts_the_switch_back():
    with pytest.raises(KeyError), measures(False):
        raise KeyError
    assert is_fast()


def test_only_a_cpu_is_tuned():
    assert prepare_process(torch.device("meta")) == []
    assert "byte dropout" in prepare_process(torch.device("cpu"))


def test_without_glibc_the_allocator_is_left_alone(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert tune_allocator() == ""


def test_a_capacity_the_user_chose_stays(monkeypatch):
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", raising=False)
    keep_primitives()
    assert os.environ["LRU_CACHE_CAPACITY"] == "7"
    assert int(os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]) > 1024


FAULTS = """
import resource, sys, torch
from softgaze.speed import prepare_process
if sys.argv[1] == "tuned":
    prepare_process(torch.device("cpu"))
def work(rounds):
    for _ in range(rounds):
        torch.ones(10**7).add(1)  # 40 MB: more than glibc ever keeps by itself
work(60)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work(10)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator is glibc's")
def test_large_tensors_are_reused_rather_than_asked_for_page_by_page():
    faults = {
        kind: int(subprocess.run([sys.executable, "-c", FAULTS, kind], capture_output=True, check=True).stdout)
        for kind in ("plain", "tuned")
    }
    assert faults["tuned"] < faults["plain"] / 4
