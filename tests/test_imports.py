"""Imports point one way only, and `import softgaze` waits for nothing heavy."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import softgaze

PACKAGE = Path(softgaze.__file__).parent

# From the top down. A part may import itself and the parts of any line below its own; never a neighbour on its line.
LAYERS = (
    {"__main__"},
    {"cli"},
    {"serve", "scale", "evaluation"},
    {"training", "importers"},
    {"documents"},
    {"translator"},
    {"engines"},
    {"alignment", "caption_metrics"},
    {"explain", "metrics"},
    {"bundle", "search"},
    {"data"},
    {"models"},
    {"soft_dict", "local_attention"},
    {"scores"},
    {"attention", "positions", "config", "runtime", "atomic_io", "glossary"},
    {"dropout"},
    {"errors", "kv_cache", "special_tokens"},
    {"softgaze"},  # the package itself, for its version; it imports nothing of ours except on first use, by name
)
DEPTH = {part: depth for depth, layer in enumerate(LAYERS) for part in layer}

# One part in three files: a translation knows its translator.
PART = {"translation": "translator", "term_placement": "translator"}

# Narrower than their line allows.
ONLY = {
    "attention": {"dropout", "kv_cache"},
    "scores": {"attention"},
    "soft_dict": {"attention", "errors", "scores"},
    "local_attention": {"attention"},
    "data": {"models.backbones", "atomic_io", "errors", "runtime", "special_tokens", "softgaze"},
    "search": {"models.base", "special_tokens", "errors", "glossary"},
}


def part_of(module: str) -> str:
    """softgaze.models.base -> models; softgaze -> softgaze."""
    part = module.split(".")[1] if "." in module else module
    return PART.get(part, part)


def modules(package: Path) -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(("softgaze", *(part for part in parts if part != "__init__")))] = path
    return found


def imports(module: str, path: Path) -> Iterator[str]:
    """Every module of ours that `module` imports, wherever in the file it does so."""
    inside = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = inside.split(".")[: len(inside.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            names = [resolve(base, alias.name) for alias in node.names]
        yield from (name for name in names if name.split(".")[0] == "softgaze")


def resolve(base: str, name: str) -> str:
    """The module that `from base import name` reaches: the package's own names live where it says."""
    if base == "softgaze":
        return softgaze.PUBLIC.get(name, "softgaze" if name == "__version__" else f"softgaze.{name}")
    return base


def complaints(package: Path) -> list[str]:
    """One sentence for each import that points the wrong way."""
    return [
        f"{module} imports {name}: {why}"
        for module, path in modules(package).items()
        for name in imports(module, path)
        if (why := objection(module, name))
    ]


def objection(module: str, name: str) -> str | None:
    """What is wrong with `module` importing `name`, if anything is."""
    importer, imported = part_of(module), part_of(name)
    if importer == imported and importer != "softgaze":
        return None
    unknown = {importer, imported} - set(DEPTH)
    if unknown:
        return f"{unknown.pop()} has no place in the layers of {Path(__file__).name} yet"
    if DEPTH[imported] <= DEPTH[importer]:
        return "imports point down the layers only"
    if importer in ONLY and not any(f"{name}.".startswith(f"softgaze.{each}.") for each in ONLY[importer]):
        return f"{importer} may know only {sorted(ONLY[importer]) or 'nothing of ours'}"
    return None


def test_every_part_of_the_package_has_its_place():
    parts = {part_of(module) for module in modules(PACKAGE)}
    assert not parts - set(DEPTH), "give these a line in LAYERS (and in docs/design.md)"


def test_imports_point_one_way():
    assert complaints(PACKAGE) == []


PLANTED = {
    "up": ("data/batching.py", "import softgaze.training.trainer"),
    "a neighbour": ("models/rnn.py", "from softgaze.data.tokenizer import Tokenizer"),
    "a neighbour, the other way": ("data/tokenizer.py", "from softgaze.models.base import Source"),
    "inside a function": ("config.py", "def late():\n    from softgaze.models import MODELS"),
    "a submodule from the package": ("bundle.py", "from softgaze import search"),
    "a public name from the package": ("bundle.py", "from softgaze import greedy"),
    "relative": ("models/conv.py", "from ..search import beam"),
    "relative, from the package": ("data/__init__.py", "from .. import cli"),
    "search beyond the protocol": ("search/beam.py", "from softgaze.models.rnn import RNN"),
    "search and the registry": ("search/beam.py", "from softgaze.models import MODELS"),
    "attention and even errors": ("attention.py", "from softgaze.errors import pick"),
    "the package from itself": ("search/beam.py", "import softgaze as sg"),
    "the package, eagerly": ("__init__.py", "from softgaze.errors import pick"),
    "no place": ("shortcuts.py", "from softgaze.errors import pick"),
    "of no place": ("translator.py", "from softgaze.shortcuts import pick"),
}
ALLOWED = {
    "down": ("training/trainer.py", "from softgaze.models.base import Seq2Seq"),
    "the protocol": ("search/beam.py", "from softgaze.models.base import Seq2Seq"),
    "itself": ("search/beam.py", "from . import rules"),
    "the version": ("bundle.py", "from softgaze import __version__"),
    "another package": ("attention.py", "from torch import nn"),
}


def write_module(package, file, line):
    path = package / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(line)
    return package


@pytest.mark.parametrize(("file", "line"), PLANTED.values(), ids=PLANTED)
def test_a_planted_wrong_import_is_found(tmp_path, file, line):
    assert len(complaints(write_module(tmp_path, file, line))) == 1


@pytest.mark.parametrize(("file", "line"), ALLOWED.values(), ids=ALLOWED)
def test_a_planted_right_import_is_accepted(tmp_path, file, line):
    assert complaints(write_module(tmp_path, file, line)) == []


LIGHT = {
    "import softgaze": "import softgaze",
    "softgaze --help": "import sys; sys.argv = ['softgaze', '--help']; import softgaze.cli; softgaze.cli.main()",
    "softgaze --version": "import sys; sys.argv = ['softgaze', '--version']; import softgaze.cli; softgaze.cli.main()",
}


@pytest.mark.parametrize("code", LIGHT.values(), ids=LIGHT)
def test_what_should_be_quick_imports_nothing_heavy(code):
    heavy = "{'torch', 'numpy', 'ctranslate2', 'onnxruntime', 'sentencepiece', 'sacrebleu'} & set(sys.modules)"
    report = f"import atexit, sys; atexit.register(lambda: print('heavy:', {heavy} or None)); {code}"
    ran = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "heavy: None"
