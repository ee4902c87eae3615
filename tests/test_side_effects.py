"""Used as a library, softgaze changes nothing process-wide; `softgaze.tune_cpu` does, on request."""

import json
import subprocess
import sys

from bundles import lines
from engines.exported import trained_bundle

PROGRAM = """
import ctypes, json, os, random, sys
from pathlib import Path

class Library(ctypes.CDLL):
    calls = []
    def __getattr__(self, name):
        if name == "mallopt":
            self.calls.append(name)
        return super().__getattr__(name)

ctypes.CDLL = Library
import numpy as np
import torch
import softgaze
from softgaze.config import Config
from softgaze.data.corpus import Corpus

torch.set_num_threads(2)
torch.manual_seed(5)

def state():
    return {
        "threads": torch.get_num_threads(),
        "torch": torch.get_rng_state().sum().item(),
        "numpy": int(np.random.get_state()[1].sum()),
        "random": hash(random.getstate()),
        "priority": os.getpriority(os.PRIO_PROCESS, 0) if hasattr(os, "getpriority") else 0,
        "environment": hash(tuple(sorted(os.environ.items()))),
        "allocator": len(Library.calls),
        "grad": torch.is_grad_enabled(),
        "dtype": str(torch.get_default_dtype()),
    }

before, during = state(), []
model = softgaze.load(sys.argv[1], "cpu")
for translation in model.translate_lines(["a dog runs.", "the cat sleeps."] * 40):
    during.append(state())
for search in ({}, {"temperature": 1.0}):
    assert model.translate("the dog runs.", **search).attention is not None
    during.append(state())
folder = Path(sys.argv[2])
text = Corpus.of([(folder / "text.en", folder / "text.ko")])
settings = Config.model_validate({"budget": {"steps": 2}, "validation": {"sentences": 2}, "model": {"size": "tiny"}})
softgaze.train(settings, text, None, folder / "run", device="cpu")
print(json.dumps({"changed": [name for seen in [*during, state()] for name in seen if seen[name] != before[name]]}))
"""


def test_load_translate_and_train_change_nothing_process_wide(tmp_path):
    bundle = trained_bundle("transformer")
    for language in ("en", "ko"):
        (tmp_path / f"text.{language}").write_text("\n".join(lines(language, 60)), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(bundle), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == {"changed": []}
