import subprocess

from softgaze.evaluation import benchmark


def test_the_environment_has_all_facts_of_a_measurement():
    result = benchmark.describe_environment()
    assert {"processor", "cores", "memory_bytes", "softgaze", "python", "packages", "commit", "date"} <= set(result)
    assert result["processor"]
    assert result["memory_bytes"] > 2**28


def test_the_commit_is_that_of_a_clone_and_of_nothing_else(tmp_path, monkeypatch):
    """An installed package may lie in another repository, whose commit says nothing about it."""
    package = tmp_path / "src" / "softgaze"
    package.mkdir(parents=True)
    monkeypatch.setattr(benchmark, "PACKAGE", package)
    assert benchmark.git_commit() is None
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    own = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=tmp_path, capture_output=True, text=True)
    assert benchmark.git_commit() == own.stdout.strip()
    installed = tmp_path / "env" / "lib" / "softgaze"
    installed.mkdir(parents=True)
    monkeypatch.setattr(benchmark, "PACKAGE", installed)
    assert benchmark.git_commit() is None
