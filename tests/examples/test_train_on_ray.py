"""The Ray Train script, run as it stands: two workers of a real Ray learn what one process learns."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from corpora import SMALL, corpus, small, write_corpus
from softgaze.training.train import train

SCRIPT = Path(__file__).parents[2] / "examples" / "train_on_ray.py"


def losses(out):
    rows = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return [row["loss"] for row in rows if row["kind"] == "validation"]


def test_two_workers_of_ray_learn_what_one_process_learns(ray, tmp_path):
    changes = {
        "model": {"options": {**SMALL["transformer"], "dropout": 0}},
        "training": {"average": 0, "precision": "float32"},
    }
    config = small(**changes)
    train(config, corpus(tmp_path), None, tmp_path / "alone", device="cpu")
    source, target = write_corpus(tmp_path)
    settings = config.model_dump(exclude_unset=True)
    assignments = [
        f"--set={section}.{name}={json.dumps(value)}"
        for section in ("training", "validation", "budget")
        for name, value in settings[section].items()
    ]
    assignments += [f"--set=model.options.{name}={value}" for name, value in settings["model"]["options"].items()]
    address = ray.get_runtime_context().gcs_address
    words = ["--train", source, target, "--out", tmp_path / "ray-run", "--size", "tiny", "--steps", "8"]
    command = [sys.executable, SCRIPT, *words, "--workers", "2", "--address", address, *assignments]
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert f"trained: {tmp_path / 'ray-run'}" in done.stdout
    assert losses(tmp_path / "ray-run") == pytest.approx(losses(tmp_path / "alone"), abs=1e-4)
