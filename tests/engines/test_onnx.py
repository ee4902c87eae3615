import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_onnx_runtime_passes_its_suite_in_a_process_of_its_own():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "onnx_suite.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent.parent)
    assert done.returncode == 0, done.stdout[-5000:]
