"""Shards: all lines once and in order; done only when all of it is there, and only for the same source and model."""

import json
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs softgaze[scale]")
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.parquet import read_table

from bundles import copier
from softgaze.errors import DataError, UsageError
from softgaze.scale.places import Place
from softgaze.scale.shards import OURS, Output, Shard, Shards, shards_of, written

WORDS = [f"word {number}" for number in range(23)]


def in_file(tmp_path, lines=WORDS):
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return Place.of(str(path))


@given(st.integers(0, 30), st.integers(1, 12))
def test_shards_hold_every_line_once_and_say_where(tmp_path_factory, count, size):
    lines = [f"line {number}" for number in range(1, count + 1)]
    found = list(shards_of(3, in_file(tmp_path_factory.mktemp("in"), lines), "en", size))
    assert [line for shard in found for line in shard.lines] == lines
    assert all(shard.lines[0] == f"line {shard.first}" for shard in found)
    assert [shard.name for shard in found] == sorted(shard.name for shard in found)
    assert all(OURS.fullmatch(f"{shard.name}.done") for shard in found)


@pytest.fixture(params=["", "memory://"])
def shards(request, tmp_path):
    return Shards(Place.of(f"{request.param}{tmp_path}/out.parts"), ".txt", "model and options")


SHARD = Shard(0, 0, 1, ["a", "b"])


def test_a_shard_is_done_when_it_is_kept(shards):
    assert not shards.is_done(SHARD)
    shards.keep(SHARD, b"x\ny\n")
    assert shards.is_done(SHARD)
    assert shards.content(SHARD.name) == b"x\ny\n"


def test_another_source_or_model_is_another_shard(shards):
    shards.keep(SHARD, b"x\ny\n")
    assert not shards.is_done(SHARD._replace(lines=["a", "c"]))
    assert not Shards(shards.place, ".txt", "another model").is_done(SHARD)


@pytest.mark.parametrize("fault", ["no marker", "half a marker", "another marker", "no part", "half a part"])
def test_what_is_not_whole_is_not_done(shards, fault):
    shards.keep(SHARD, b"x\ny\n")
    marker, part = shards.marker(SHARD.name), shards.part(SHARD.name)
    deeds = {
        "no marker": marker.remove,
        "half a marker": lambda: marker.write(marker.read()[:20]),
        "another marker": lambda: marker.write(json.dumps({"lines": 2}).encode()),
        "no part": part.remove,
        "half a part": lambda: part.write(b"x\n"),
    }
    deeds[fault]()
    assert not shards.is_done(SHARD)


def test_a_part_that_somebody_changed_is_refused_by_name(shards):
    shards.keep(SHARD, b"x\ny\n")
    shards.part(SHARD.name).write(b"x\nz\n")
    with pytest.raises(DataError, match=r"part-00000-000000\.txt: is not what was written"):
        shards.content(SHARD.name)


# --- all of them --------------------------------------------------------------------------------------------------


def fill(output, place, size=4):
    """What workers would do, by a model that copies."""
    shards = output.shards({"model": "m"})
    found = list(shards_of(0, place, "en", size))
    for shard in found:
        lines = copier(Path("none")).translate(shard.lines)
        show = None if output.ending == ".parquet" else str
        shards.keep(shard, written(place, shard, lines, show))
    return shards, [shard.name for shard in found]


@pytest.mark.parametrize("root", ["", "memory://"])
@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz", "out/", "out.parquet"])
def test_shards_become_what_was_asked_for(tmp_path, root, name):
    place = in_file(tmp_path)
    output = Output.of(f"{root}{tmp_path}/{name}", [place])
    output.finish(*fill(output, place))
    if name == "out/":
        parts = [output.place.child(each) for each in output.place.names() if each.endswith(".txt")]
        assert b"".join(part.read() for part in parts).decode().splitlines() == WORDS
    elif name == "out.parquet":
        output.place.is_file()
        rows = read_table(output.place.storage[1], filesystem=output.place.storage[0]).to_pylist()
        assert [(row["file"], row["line"], row["text"]) for row in rows] == [
            ("in.txt", number, word) for number, word in enumerate(WORDS, 1)
        ]
    else:
        assert output.place.read().decode().splitlines() == WORDS
        assert not Place(f"{output.place}.parts").is_directory()


def test_nothing_becomes_nothing(tmp_path):
    place = in_file(tmp_path, [])
    for name in ("out.txt", "out.parquet"):
        output = Output.of(str(tmp_path / name), [place])
        output.finish(*fill(output, place))
    assert (tmp_path / "out.txt").read_bytes() == b""
    assert read_table(tmp_path / "out.parquet").num_rows == 0


def test_shards_of_a_longer_input_are_forgotten(tmp_path):
    place = in_file(tmp_path)
    output = Output.of(f"{tmp_path}/out/", [place])
    output.finish(*fill(output, place))
    place = in_file(tmp_path, WORDS[:5])
    output.finish(*fill(output, place))
    assert len(output.place.names()) == 4


def test_a_directory_takes_the_form_of_what_is_read(tmp_path):
    assert Output.of(f"{tmp_path}/out/", [Place.of("a.parquet")]).ending == ".parquet"
    assert Output.of(f"{tmp_path}/out/", [Place.of("a.txt")]).ending == ".txt"


def test_what_somebody_else_keeps_is_not_touched(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"holds thesis\.txt, which is no shard of ours"):
        Output.of(str(tmp_path), [Place.of("a.txt")])
    with pytest.raises(UsageError, match="is read and cannot be written"):
        Output.of(str(tmp_path / "a.txt"), [Place.of(str(tmp_path / "a.txt"))])


def test_a_translation_too_few_is_never_kept(tmp_path):
    with pytest.raises(DataError, match="2 lines from line 1 on gave 1 translations"):
        written(in_file(tmp_path), SHARD, copier(Path("none")).translate(["a"]), str)
