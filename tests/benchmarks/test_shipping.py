"""The arithmetic of what an exported model costs; never how fast anything is."""

import pytest

from benchmarks import shipping


def test_the_base_install_holds_no_torch():
    found = shipping.installed("softgaze")
    assert {"softgaze", "numpy", "ctranslate2", "sentencepiece", "typer"} <= found.keys()
    assert not {"torch", "safetensors", "onnxruntime", "fastapi"} & found.keys()
    assert all(size > 0 for size in found.values())


def test_a_command_is_run_and_its_exit_code_checked():
    done = shipping.run(["-c", "import sys; print('a warning\\n{\"loaded\": 1}', file=sys.stderr)"], 1)
    assert done.clock == {"loaded": 1}
    assert shipping.run(["-c", "raise SystemExit(2)"], 1, code=2).seconds > 0
    with pytest.raises(SystemExit, match="failed: why"):
        shipping.run(["-c", "raise SystemExit('why')"], 1)


def test_a_part_that_is_measured_again_leaves_the_others_on_the_page(tmp_path):
    for name, found in (("sizes", ["## Place", "old"]), ("starting", ["## First"]), ("sizes", ["## Place", "new"])):
        shipping.keep(tmp_path / "page", name, found)
    assert (tmp_path / "page.md").read_text() == "# What an exported model costs\n\n## First\n\n## Place\n\nnew\n"
