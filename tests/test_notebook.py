"""The example notebook runs from the first cell to the last and shows its figures."""

import os
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "examples" / "attention.ipynb"
FULL, QUICK = "STEPS, PAIRS = 1500, 20_000", "STEPS, PAIRS = 20, 300"
MAX_BYTES = 300_000  # with outputs
TIMEOUT = (
    1200  # seconds of a cell; on a loaded machine two torch threads that wait for each other take many times longer
)


@pytest.fixture(scope="module")
def stored():
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def run(stored, tmp_path_factory):
    """Run the notebook with a shorter training in a temporary directory."""
    directory = tmp_path_factory.mktemp("notebook") / "examples"
    directory.mkdir()
    notebook = nbformat.from_dict(stored)
    [first] = [cell for cell in notebook.cells if FULL in cell.source]
    first.source = first.source.replace(FULL, QUICK)
    client = NotebookClient(notebook, timeout=TIMEOUT, resources={"metadata": {"path": str(directory)}})
    return client.execute(env={**os.environ, "OMP_NUM_THREADS": "1"})


def outputs(notebook, kind):
    """Return the outputs of one MIME type."""
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["data"][kind] for output in shown if kind in output.get("data", {})]


def test_every_cell_runs(run):
    cells = [cell for cell in run.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]


def test_a_translation_is_shown_as_page_and_figure(run):
    [page] = outputs(run, "text/html")
    assert 'sandbox="allow-scripts allow-downloads"' in page
    pictures = outputs(run, "image/svg+xml")
    assert len(pictures) == 4
    for picture in pictures:
        ElementTree.fromstring(picture)


def test_the_stored_outputs_are_small_and_have_figures(stored):
    assert NOTEBOOK.stat().st_size < MAX_BYTES
    assert len(outputs(stored, "image/svg+xml")) == 4
    assert not outputs(stored, "text/html")  # pages would be most of the file
    assert not [output for cell in stored.cells for output in cell.get("outputs", []) if output.output_type == "error"]
