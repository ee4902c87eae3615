"""Nothing of ours executes what a file says: no pickle, no torch.load, no eval, no YAML with tags."""

import ast
from pathlib import Path

import pytest

SOURCES = sorted((Path(__file__).parents[1] / "src").rglob("*.py"))
MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
CALLS = {"eval", "exec", "compile", "__import__"}
ATTRIBUTES = {
    *(("torch", name) for name in ("load", "save")),
    *(
        ("yaml", name)
        for name in ("load", "load_all", "full_load", "unsafe_load", "Loader", "FullLoader", "UnsafeLoader")
    ),
    *(("os", name) for name in ("system", "popen")),
    *(
        ("dist", name)
        for name in ("broadcast_object_list", "all_gather_object", "gather_object", "scatter_object_list")
    ),
    ("numpy", "fromregex"),
}


def misdeeds(source: str) -> list[str]:
    """What a module may not do, and where it does."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            found += [f"line {node.lineno}: imports {name}" for name in names if name.split(".")[0] in MODULES]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            found.append(f"line {node.lineno}: calls {node.func.id}")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if (node.value.id, node.attr) in ATTRIBUTES:
                found.append(f"line {node.lineno}: uses {node.value.id}.{node.attr}")
        elif isinstance(node, ast.keyword) and (node.arg, getattr(node.value, "value", None)) in RISKS:
            found.append(f"line {node.value.lineno}: says {node.arg}={node.value.value}")
    return found


RISKS = {("allow_pickle", True), ("shell", True), ("weights_only", False)}


# The weights that an installed package brings along, read by the unpickler that makes nothing but tensors.
PERMITTED = {"backbones.py": "torch.load"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: "/".join(path.parts[path.parts.index("softgaze") :]))
def test_no_module_executes_what_a_file_says(path):
    source = path.read_text(encoding="utf-8")
    found = [each for each in misdeeds(source) if not each.endswith(f"uses {PERMITTED.get(path.name)}")]
    assert found == []
    assert path.name not in PERMITTED or source.count("torch.load(") == source.count("weights_only=True)")


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import os.path, dill",
        "torch.load('a')",
        "yaml.load(text)",
        "eval('1')",
        "numpy.load('a', allow_pickle=True)",
        "subprocess.run('ls', shell=True)",
    ],
)
def test_each_misdeed_is_seen(source):
    assert len(misdeeds(source)) == 1


def test_what_is_harmless_is_left_alone():
    harmless = (
        "import os, yaml\nyaml.safe_load(text)\nre.compile('a')\nmodel.eval()\nnumpy.load('a')\nos.path.exists('a')"
    )
    assert misdeeds(harmless) == []
