"""bfloat16 when asked for or done in hardware, float32 otherwise; the weights are float32 either way."""

import pytest
import torch

from softgaze.training import precision
from softgaze.training.precision import autocast, cpu_flags, uses_bfloat16

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_what_is_asked_for_is_computed_in(name):
    layer = torch.nn.Linear(3, 3)
    with autocast(CPU, name):
        result = layer(torch.ones(1, 3))
    assert result.dtype == getattr(torch, name)
    result.float().sum().backward()
    assert layer.weight.dtype == layer.weight.grad.dtype == torch.float32


@pytest.mark.parametrize(
    ("flags", "expected"), [({"amx_bf16"}, True), ({"avx512_bf16", "fma"}, True), ({"avx512f"}, False), (set(), False)]
)
def test_auto_asks_the_processor(monkeypatch, flags, expected):
    monkeypatch.setattr(precision, "cpu_flags", lambda: flags)
    assert uses_bfloat16(CPU, "auto") is expected
    assert uses_bfloat16(CPU, "bfloat16")
    assert not uses_bfloat16(CPU, "float32")


def test_auto_is_float32_where_nothing_is_known():
    assert not uses_bfloat16(torch.device("mps"), "auto")


@pytest.mark.parametrize(
    ("content", "flags"),
    [
        ("model name\t: A\nflags\t\t: fpu amx_bf16\n\nflags\t\t: fpu\n", {"fpu", "amx_bf16"}),
        ("Features\t: fp asimd\n", set()),  # how ARM spells it
        (None, set()),  # no Linux
    ],
)
def test_flags_are_read_from_the_first_processor(tmp_path, monkeypatch, content, flags):
    path = tmp_path / "cpuinfo"
    if content is not None:
        path.write_text(content)
    monkeypatch.setattr(precision, "Path", lambda name: path)
    assert cpu_flags() == flags
