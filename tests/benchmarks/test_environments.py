"""An environment of its own for a peer: made once, made again when what it needs changes, and honest about failure."""

import subprocess
import zipfile

import pytest

from benchmarks import environments
from benchmarks.environments import Peer, UnavailableError, interpreter


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Nobody's environments, and no constraints."""
    (tmp_path / "constraints.txt").write_text("# none\n")
    monkeypatch.setattr(environments, "ENVIRONMENTS", tmp_path / ".envs")
    monkeypatch.setattr(environments, "HERE", tmp_path / "benchmarks")
    monkeypatch.setattr(environments, "CONSTRAINTS", tmp_path / "constraints.txt")
    return tmp_path


def wheel(place, name, needs=()):
    """A package of one module, as a file that pip installs without an index."""
    path, info = place / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    wants = "".join(f"Requires-Dist: {each}\n" for each in needs)
    files = {
        f"{name}.py": "answer = 42\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{wants}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in files.items():
            archive.writestr(each, text)
    return str(path)


def test_a_peer_is_installed_once_and_without_its_own_requirements(place, monkeypatch):
    pin = ["torch==0.0.1"]  # that no index could satisfy
    package = f"{wheel(place, 'peer', pin)} {wheel(place, 'beside', pin)}"
    monkeypatch.setitem(environments.PEERS, "peer", Peer("Peer", package, [wheel(place, "helper")]))
    python = interpreter("peer")
    asked = [str(python), "-c", "import peer, beside, helper; print(peer.answer)"]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "42\n"

    monkeypatch.setattr(environments, "install", None)  # would fail if it were called again
    assert interpreter("peer") == python
    (place / "constraints.txt").write_text("something-else==2\n")
    assert interpreter("peer") == python
    monkeypatch.setitem(environments.PEERS, "peer", Peer("Peer", package, [wheel(place, "other")]))
    with pytest.raises(TypeError):
        interpreter("peer")


def test_a_peer_that_cannot_be_installed_says_why(place, monkeypatch):
    monkeypatch.setitem(environments.PEERS, "lost", Peer("Lost", None, [str(place / "nowhere-1.0-py3-none-any.whl")]))
    with pytest.raises(UnavailableError, match=r"cannot be installed: .*nowhere"):
        interpreter("lost")
    assert not (place / ".envs/lost/installed.txt").exists()
