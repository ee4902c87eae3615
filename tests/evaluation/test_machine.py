import subprocess

from softgaze.evaluation import machine


def test_what_figures_need_is_told():
    found = machine.surroundings()
    assert {"processor", "cores", "memory_bytes", "softgaze", "python", "packages", "commit", "date"} <= set(found)
    assert found["processor"]
    assert found["memory_bytes"] > 2**28


def test_the_commit_is_that_of_a_clone_and_of_nothing_else(tmp_path, monkeypatch):
    """An installed package may lie in somebody's own repository, whose commit says nothing about it."""
    package = tmp_path / "src" / "softgaze"
    package.mkdir(parents=True)
    monkeypatch.setattr(machine, "PACKAGE", package)
    assert machine.commit() is None
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    own = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=tmp_path, capture_output=True, text=True)
    assert machine.commit() == own.stdout.strip()
    installed = tmp_path / "env" / "lib" / "softgaze"
    installed.mkdir(parents=True)
    monkeypatch.setattr(machine, "PACKAGE", installed)
    assert machine.commit() is None
