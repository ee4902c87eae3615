"""The three layers of explain: only three modules run torch models, and numbers do not depend on how they are drawn."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from softgaze import explain

FOLDER = Path(explain.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.py"))
NEEDS_TORCH = {"recorder", "interventions", "attribution"}


@pytest.mark.parametrize("name", MODULES)
def test_no_module_imports_render_when_it_is_imported(name):
    statements = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8")).body
    modules = [statement.module for statement in statements if isinstance(statement, ast.ImportFrom)]
    assert [module for module in modules if module.startswith("softgaze.explain.render")] == []


def test_only_modules_that_run_a_model_import_torch():
    names = [f"softgaze.explain.{name}" for name in MODULES if name not in {"__init__", *NEEDS_TORCH}]
    code = f"import sys, {', '.join(names)}; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
