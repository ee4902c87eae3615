"""The package never executes the content of a file: no pickle, torch.load, eval or YAML tags."""

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


def violations(source: str) -> list[str]:
    """Return the unsafe imports, calls and arguments of a module with their lines."""
    messages = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and [alias.name for alias in node.names] == ["UnpicklingError"]:
            continue  # raised by the restricted unpickler of torch
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            messages += [f"line {node.lineno}: imports {name}" for name in names if name.split(".")[0] in MODULES]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            messages.append(f"line {node.lineno}: calls {node.func.id}")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if (node.value.id, node.attr) in ATTRIBUTES:
                messages.append(f"line {node.lineno}: uses {node.value.id}.{node.attr}")
        elif isinstance(node, ast.keyword) and (node.arg, getattr(node.value, "value", None)) in RISKS:
            messages.append(f"line {node.value.lineno}: passes {node.arg}={node.value.value}")
    return messages


RISKS = {("allow_pickle", True), ("shell", True), ("weights_only", False)}


# Weights of an installed package or of a model to import, read by the restricted unpickler, which creates only tensors.
PERMITTED = {"backbones.py": "torch.load", "tensor_files.py": "torch.load"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: "/".join(path.parts[path.parts.index("softgaze") :]))
def test_no_module_executes_the_content_of_files(path):
    source = path.read_text(encoding="utf-8")
    permitted = f"uses {PERMITTED.get(path.name)}"
    assert [message for message in violations(source) if not message.endswith(permitted)] == []
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
def test_each_violation_is_found(source):
    assert len(violations(source)) == 1


def test_safe_code_has_no_violations():
    harmless = (
        "import os, yaml\nyaml.safe_load(text)\nre.compile('a')\nmodel.eval()\nnumpy.load('a')\nos.path.exists('a')"
    )
    assert violations(harmless) == []
