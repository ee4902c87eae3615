"""The files: which there are, and what is in them."""

from pathlib import Path

from softgaze.data.phrasebook import SPLITS, write


def test_write(tmp_path: Path):
    book = write(tmp_path / "corpus", pairs=100, seed=5)
    names = {f"{split}.{ending}" for split in SPLITS for ending in ("en", "ko", "gold")} | {"README.txt"}
    assert {path.name for path in (tmp_path / "corpus").iterdir()} == names
    for split in SPLITS:
        sentences = getattr(book, split)
        for ending, attribute in (("en", "source"), ("ko", "target"), ("gold", "gold")):
            raw = (tmp_path / "corpus" / f"{split}.{ending}").read_bytes()
            assert b"\r" not in raw
            assert raw.decode("utf-8") == "".join(f"{getattr(one, attribute)}\n" for one in sentences)
    readme = (tmp_path / "corpus" / "README.txt").read_text(encoding="utf-8")
    assert "seed: 5" in readme
    assert "counted from 0" in readme
    assert "100 pairs" in readme
