import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("suite", ["onnx_suite.py", "onnx_captions_suite.py"])
def test_onnx_runtime_passes_its_suites_in_processes_of_their_own(suite):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / suite)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent.parent)
    assert done.returncode == 0, done.stdout[-5000:]
