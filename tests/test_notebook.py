"""The example notebook runs from its first cell to its last, and shows what it promises."""

from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "examples" / "attention.ipynb"
WRITTEN, QUICK = "STEPS, PAIRS = 2190, 20_000", "STEPS, PAIRS = 20, 300"
LARGEST = 300_000  # bytes of the file, with its outputs


@pytest.fixture(scope="module")
def kept():
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def run(kept, tmp_path_factory):
    """As written, but for a shorter training, somewhere else."""
    place = tmp_path_factory.mktemp("notebook") / "examples"
    place.mkdir()
    notebook = nbformat.from_dict(kept)
    [first] = [cell for cell in notebook.cells if WRITTEN in cell.source]
    first.source = first.source.replace(WRITTEN, QUICK)
    return NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(place)}}).execute()


def outputs(notebook, kind):
    """Everything of a kind that cells show."""
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["data"][kind] for output in shown if kind in output.get("data", {})]


def test_every_cell_runs(run):
    cells = [cell for cell in run.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]


def test_a_translation_is_shown_in_every_form(run):
    [page] = outputs(run, "text/html")
    assert 'sandbox="allow-scripts allow-downloads"' in page
    pictures = outputs(run, "image/svg+xml")
    assert len(pictures) == 4
    for picture in pictures:
        ElementTree.fromstring(picture)


def test_what_is_kept_is_small_and_has_pictures(kept):
    assert NOTEBOOK.stat().st_size < LARGEST
    assert len(outputs(kept, "image/svg+xml")) == 4
    assert not outputs(kept, "text/html")  # a page for each translation would be most of the file
    assert not [output for cell in kept.cells for output in cell.get("outputs", []) if output.output_type == "error"]
