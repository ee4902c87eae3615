"""The Slurm script: bash can read it, and what it asks of softgaze exists."""

import re
import shlex
import signal
import subprocess
from pathlib import Path

from typer.testing import CliRunner

from corpora import write_corpus
from softgaze.cli import app

SCRIPT = Path(__file__).parents[2] / "examples" / "train.slurm"
TEXT = SCRIPT.read_text()


def command():
    """The words of the one command that srun starts."""
    [found] = re.findall(r"^srun softgaze (.*?[^\\])$", TEXT, re.MULTILINE | re.DOTALL)
    return shlex.split(found.replace("\\\n", " "))


def test_bash_can_read_it():
    assert subprocess.run(["bash", "-n", SCRIPT], capture_output=True).stderr == b""


def test_it_is_told_in_time_and_queued_again():
    options = dict(re.findall(r"^#SBATCH --([\w-]+)=?(.*)$", TEXT, re.MULTILINE))
    assert {"nodes", "ntasks-per-node", "time", "requeue"} <= options.keys()
    name, _, seconds = options["signal"].partition("@")
    assert hasattr(signal, f"SIG{name}")
    assert int(seconds) >= 60
    codes = {int(code) for code in re.findall(r"-eq (\d+)", TEXT)}
    assert codes == {128 + signal.SIGUSR1, 128 + signal.SIGTERM}


def test_what_it_asks_of_softgaze_exists(tmp_path, monkeypatch):
    """The very command, on text of its names, stopped where the training would begin."""
    (tmp_path / "data").mkdir()
    for name in ("train", "dev"):
        write_corpus(tmp_path / "data", name=name)
    seen = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("softgaze.training.train.train", lambda *settings, **more: seen.extend(settings))
    done = CliRunner().invoke(app, command())
    assert done.exit_code == 0, done.output
    config, corpus, dev, _ = seen
    assert [path.name for path in (*corpus.paths, *dev.paths)] == ["train.en", "train.de", "dev.en", "dev.de"]
    assert config.training.batch_tokens == 100_000


def test_the_rank_that_writes_is_not_killed_because_another_left():
    """They leave while it saves; whoever is dead is missed within training.rank_timeout."""
    assert "--kill-on-bad-exit" not in TEXT
    assert "training.rank_timeout=" in TEXT
