"""Output shards: every line once and in order; done only if complete and of the same source and model."""

import json
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs softgaze[scale]")
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.parquet import read_table

from bundles import copier
from softgaze.errors import DataError, UsageError
from softgaze.scale.output_shards import SHARD_FILE, OutputTarget, Shard, ShardStore, encode_shard, read_shards
from softgaze.scale.storage import StoragePath

WORDS = [f"word {number}" for number in range(23)]


def in_file(tmp_path, lines=WORDS):
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return StoragePath.of(str(path))


@given(st.integers(0, 30), st.integers(1, 12))
def test_shards_have_every_line_once(tmp_path_factory, count, size):
    lines = [f"line {number}" for number in range(1, count + 1)]
    result = list(read_shards(3, in_file(tmp_path_factory.mktemp("in"), lines), "en", size))
    assert [line for shard in result for line in shard.lines] == lines
    assert all(shard.lines[0] == f"line {shard.first_line}" for shard in result)
    assert [shard.name for shard in result] == sorted(shard.name for shard in result)
    assert all(SHARD_FILE.fullmatch(f"{shard.name}.done") for shard in result)


@pytest.fixture(params=["", "memory://"])
def store(request, tmp_path):
    return ShardStore(StoragePath.of(f"{request.param}{tmp_path}/out.parts"), ".txt", "model and options")


SHARD = Shard(0, 0, 1, 2, ["a", "b"])


def test_a_written_shard_is_done(store):
    assert not store.is_done(SHARD)
    store.write(SHARD, b"x\ny\n")
    assert store.is_done(SHARD)
    assert store.read(SHARD.name) == b"x\ny\n"


def test_another_source_or_model_is_not_done(store):
    store.write(SHARD, b"x\ny\n")
    assert not store.is_done(SHARD._replace(lines=["a", "c"]))
    assert not ShardStore(store.directory, ".txt", "another model").is_done(SHARD)


@pytest.mark.parametrize("fault", ["no marker", "half a marker", "another marker", "no part", "half a part"])
def test_incomplete_shards_are_not_done(store, fault):
    store.write(SHARD, b"x\ny\n")
    marker, part = store.marker(SHARD.name), store.part(SHARD.name)
    faults = {
        "no marker": marker.remove,
        "half a marker": lambda: marker.write(marker.read()[:20]),
        "another marker": lambda: marker.write(json.dumps({"lines": 2}).encode()),
        "no part": part.remove,
        "half a part": lambda: part.write(b"x\n"),
    }
    faults[fault]()
    assert not store.is_done(SHARD)


def test_a_changed_part_is_an_error(store):
    store.write(SHARD, b"x\ny\n")
    store.part(SHARD.name).write(b"x\nz\n")
    with pytest.raises(DataError, match=r"part-00000-000000\.txt"):
        store.read(SHARD.name)


# --- all of them --------------------------------------------------------------------------------------------------


def fill(output, path, size=4):
    """Write the shards of a file as workers do, with a model that copies."""
    store = output.shard_store({"model": "m"})
    result = list(read_shards(0, path, "en", size))
    for shard in result:
        lines = copier(Path("none")).translate(shard.lines)
        show = None if output.suffix == ".parquet" else str
        store.write(shard, encode_shard(path, shard, lines, show))
    return store, [shard.name for shard in result]


@pytest.mark.parametrize("root", ["", "memory://"])
@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz", "out/", "out.parquet"])
def test_shards_become_the_output(tmp_path, root, name):
    path = in_file(tmp_path)
    output = OutputTarget.of(f"{root}{tmp_path}/{name}", [path])
    output.finish(*fill(output, path))
    if name == "out/":
        parts = [output.path.child(each) for each in output.path.names() if each.endswith(".txt")]
        assert b"".join(part.read() for part in parts).decode().splitlines() == WORDS
    elif name == "out.parquet":
        output.path.is_file()
        rows = read_table(output.path.filesystem[1], filesystem=output.path.filesystem[0]).to_pylist()
        assert [(row["file"], row["line"], row["text"]) for row in rows] == [
            ("in.txt", number, word) for number, word in enumerate(WORDS, 1)
        ]
    else:
        assert output.path.read().decode().splitlines() == WORDS
        assert not StoragePath(f"{output.path}.parts").is_directory()


def test_empty_input(tmp_path):
    path = in_file(tmp_path, [])
    for name in ("out.txt", "out.parquet"):
        output = OutputTarget.of(str(tmp_path / name), [path])
        output.finish(*fill(output, path))
    assert (tmp_path / "out.txt").read_bytes() == b""
    assert read_table(tmp_path / "out.parquet").num_rows == 0


def test_shards_of_a_longer_input_are_removed(tmp_path):
    path = in_file(tmp_path)
    output = OutputTarget.of(f"{tmp_path}/out/", [path])
    output.finish(*fill(output, path))
    path = in_file(tmp_path, WORDS[:5])
    output.finish(*fill(output, path))
    assert len(output.path.names()) == 4


def test_a_directory_has_the_format_of_the_input(tmp_path):
    assert OutputTarget.of(f"{tmp_path}/out/", [StoragePath.of("a.parquet")]).suffix == ".parquet"
    assert OutputTarget.of(f"{tmp_path}/out/", [StoragePath.of("a.txt")]).suffix == ".txt"


def test_other_files_are_not_touched(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"thesis\.txt"):
        OutputTarget.of(str(tmp_path), [StoragePath.of("a.txt")])
    with pytest.raises(UsageError, match="both input and output"):
        OutputTarget.of(str(tmp_path / "a.txt"), [StoragePath.of(str(tmp_path / "a.txt"))])


def test_a_missing_translation_is_an_error(tmp_path):
    with pytest.raises(DataError, match="2 lines from line 1 gave 1 translations"):
        encode_shard(in_file(tmp_path), SHARD, copier(Path("none")).translate(["a"]), str)
