"""Model directories made to harm: refused in one line, before anything is executed or much memory taken."""

import json
import os
import pickle
import resource
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from safetensors.torch import load_file, save

from bundles import tiny_bundle
from errors import one_line_error
from softgaze.atomic_io import fingerprint
from softgaze.bundle import (
    CONFIG,
    DETECTOR,
    JOINT,
    MANIFEST,
    MAX_TEXT_BYTES,
    WEIGHTS,
    Bundle,
    tensor_shapes,
    write_manifest,
)
from softgaze.errors import SoftgazeError

MAX_MEMORY = 256 << 20  # bytes: torch loads some of itself to plan a model; the rejected ones would need gigabytes


@pytest.fixture
def bundle(tmp_path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(tiny_bundle(), tmp_path / "bundle"))


def list_file(bundle, name, entry):
    """Write the entry of a file into the manifest; remove it if `entry` is None."""
    manifest = json.loads((bundle / MANIFEST).read_text())
    manifest["files"][name] = entry
    manifest["files"] = {name: entry for name, entry in manifest["files"].items() if entry}
    write_manifest(bundle, manifest)


def put(bundle, name, content):
    """Add a file and sign it, as a forger would."""
    (bundle / name).write_bytes(content)
    list_file(bundle, name, fingerprint(bundle / name))


def configure(bundle, **changes):
    put(bundle, CONFIG, yaml.safe_dump({**yaml.safe_load((bundle / CONFIG).read_text()), **changes}).encode())


def refused(bundle, *words):
    """Expect an error of one short line, and that little memory was used."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with one_line_error(SoftgazeError, *words) as caught:
        Bundle.open(bundle).model()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (after - before) * 1024 < MAX_MEMORY
    assert len(str(caught.value)) < 1000


# --- names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../secret", "a/../../secret", "/etc/hostname", "", ".", "..", "C:\\secret", "a\\..\\b", "a\0b", "a\nb"]
)
def test_names_that_leave_the_bundle_are_refused(bundle, name):
    (bundle.parent / "secret").write_text("mine")
    list_file(bundle, name, fingerprint(bundle.parent / "secret"))
    refused(bundle, MANIFEST, "is not inside the bundle")


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, JOINT, DETECTOR])
def test_links_are_refused_wherever_they_point(bundle, name):
    (bundle / name).rename(bundle.parent / "elsewhere")
    (bundle / name).symlink_to("../elsewhere")
    refused(bundle, name, "is a link")


def test_a_directory_that_is_a_link_is_refused(bundle):
    (bundle.parent / "outside").mkdir()
    (bundle.parent / "outside" / "a").write_text("mine")
    (bundle / "inside").symlink_to("../outside")
    list_file(bundle, "inside/a", fingerprint(bundle / "inside" / "a"))
    refused(bundle, "inside", "is a link")


def test_the_bundle_itself_may_be_reached_by_a_link(bundle):
    (bundle.parent / "latest").symlink_to(bundle)
    Bundle.open(bundle.parent / "latest").model()


@pytest.mark.parametrize(
    ("name", "message"),
    [(CONFIG, "does not list"), (JOINT, "does not list"), (WEIGHTS, "is not listed"), (DETECTOR, "is not listed")],
)
def test_files_must_be_listed(bundle, name, message):
    list_file(bundle, name, None)
    refused(bundle, message)


# --- what is in the files -----------------------------------------------------------------------------------------


class Trap:
    """Runs when it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was executed",)


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, JOINT, DETECTOR])
@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
def test_a_pickle_is_never_executed_whatever_it_is_called(bundle, name, protocol):
    put(bundle, name, pickle.dumps(Trap(), protocol))
    with pytest.raises(SoftgazeError, match=name):
        _ = Bundle.open(bundle).detector, Bundle.open(bundle).model()


@pytest.mark.parametrize("name", ["model.pt", "pytorch_model.bin", "model.pkl"])
def test_a_pickle_beside_or_instead_is_no_bundle(tmp_path, name):
    (tmp_path / name).write_bytes(pickle.dumps(Trap()))
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(SoftgazeError, match=f"contains no {MANIFEST}|no such model directory"):
            Bundle.open(path)


BILLION = 10**9


@pytest.mark.parametrize(
    "options",
    [
        {"encoder_layers": BILLION},
        {"decoder_layers": BILLION},
        {"width": BILLION},
        {"feed_forward_width": BILLION},
        {"max_length": BILLION, "positions": "learned"},
        {"width": 10**18},
        {"heads": 10**30},
        {"width": 10**400},
        {"width": [1] * 9},
        {"width": {"a": "b"}},
    ],
)
def test_settings_that_ask_for_too_much_are_refused_at_once(bundle, options):
    plain = yaml.safe_load((bundle / CONFIG).read_text())["options"]
    configure(bundle, options={**plain, **options})
    refused(bundle)


@pytest.mark.parametrize(
    "changes", [{"max_length": "x"}, {"max_length": True}, {"arch": 5}, {"options": "x"}, {"source_language": ["en"]}]
)
def test_settings_of_the_wrong_kind_are_refused(bundle, changes):
    configure(bundle, **changes)
    refused(bundle, CONFIG)


@pytest.mark.parametrize("deep", [b"[" * 100_000, b"{a: " * 20_000])
def test_settings_without_a_bottom_are_refused(bundle, deep):
    put(bundle, CONFIG, deep)
    refused(bundle, CONFIG)


def test_a_billion_laughs_are_not_laughed(bundle):
    laughs = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    laughs += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    plain = (bundle / CONFIG).read_text().replace("options:", "options:\n  width: *a11")
    put(bundle, CONFIG, "\n".join([*laughs, plain]).encode())
    refused(bundle, CONFIG)
    options = "options:\n" + "\n".join(f"  {each}" for each in laughs)
    put(bundle, CONFIG, plain.split("options:")[0].encode() + options.encode())
    refused(bundle, CONFIG)


@pytest.mark.parametrize("name", [CONFIG, MANIFEST])
def test_what_has_no_reason_to_be_large_is_not_read(bundle, name):
    with (bundle / name).open("ab") as file:
        file.truncate(50 << 30)  # a hole: fifty gigabytes that take no room
    if name == CONFIG:
        list_file(bundle, name, None)
        refused(bundle, name)
    else:
        refused(bundle, name, f"more than {MAX_TEXT_BYTES:,}")


# --- headers that lie -------------------------------------------------------------------------------------------


def tensors(header, body=b"", length=None):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + body


def entry(start, stop, shape=(2,), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, stop]}


LIES = {
    "nothing": b"",
    "short": b"\1\0\0",
    "huge header": tensors({}, length=2**63),
    "long header": tensors({}, length=10**9),
    "no header": tensors({}, length=0),
    "no json": tensors(b"{" * 100),
    "deep": tensors(b"[" * 100_000),
    "a list": tensors([]),
    "past the end": tensors({"a": entry(0, 2**40, [2**38])}, b"\0" * 8),
    "far offsets": tensors({"a": entry(2**62, 2**62 + 8)}, b"\0" * 8),
    "overlapping": tensors({"a": entry(0, 8), "b": entry(4, 12)}, b"\0" * 12),
    "the same bytes": tensors({"a": entry(0, 8), "b": entry(0, 8)}, b"\0" * 8),
    "a hole": tensors({"a": entry(0, 8), "b": entry(12, 20)}, b"\0" * 20),
    "left over": tensors({"a": entry(0, 8)}, b"\0" * 80),
    "another shape": tensors({"a": entry(0, 8, [BILLION])}, b"\0" * 8),
    "a product that wraps": tensors({"a": entry(0, 0, [2**32, 2**32])}),
    "negative": tensors({"a": entry(0, 8, [-1, -2])}, b"\0" * 8),
    "backwards": tensors({"a": entry(8, 0)}, b"\0" * 8),
    "fractions": tensors({"a": entry(0, 8.0, [2.0])}, b"\0" * 8),
    "unknown numbers": tensors({"a": entry(0, 8, dtype="Q4")}, b"\0" * 8),
    "no offsets": tensors({"a": {"dtype": "F32", "shape": [2]}}, b"\0" * 8),
    "words": tensors({"a": "F32"}, b"\0" * 8),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_lies_is_refused(bundle, lie):
    put(bundle, WEIGHTS, LIES[lie])
    refused(bundle, WEIGHTS, "cannot be read as safetensors")


def test_an_honest_header_is_believed():
    path = tiny_bundle() / WEIGHTS
    assert tensor_shapes(path) == {name: list(tensor.shape) for name, tensor in load_file(path).items()}


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(bundle, number):
    found = load_file(bundle / WEIGHTS)
    name = sorted(found)[len(found) // 2]
    found[name].view(-1)[-1] = number
    put(bundle, WEIGHTS, save(found))
    refused(bundle, WEIGHTS, name, "NaN or infinite")


# --- the same from outside ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("spoil", ["layers", "header", "link", "width"])
def test_a_stranger_gets_one_line_within_little_memory(bundle, spoil):
    """The whole command, in an address space that has no room for what is asked."""
    plain = yaml.safe_load((bundle / CONFIG).read_text())["options"]
    if spoil == "layers":
        configure(bundle, options={**plain, "encoder_layers": BILLION})
    elif spoil == "width":
        configure(bundle, options={**plain, "width": BILLION})
    elif spoil == "header":
        put(bundle, WEIGHTS, LIES["long header"])
    else:
        (bundle / WEIGHTS).unlink()
        (bundle / WEIGHTS).symlink_to("/dev/zero")
    command = [sys.executable, "-m", "softgaze", "info" if spoil == "header" else "translate", str(bundle)]
    command += [] if spoil == "header" else ["a dog"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)),
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
