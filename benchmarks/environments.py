"""Virtual environments of the peers, created once with pip.

Each peer gets the same torch as softgaze (constraints.txt): a pin of its own would compare two versions of torch.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENTS = HERE / ".envs"
CONSTRAINTS = HERE.parent / "constraints.txt"


@dataclass(frozen=True)
class Peer:
    """A peer: its label and its packages."""

    label: str
    # Installed without its requirements, whose pins contradict each other or today's torch; separated by spaces.
    package: str | None
    needs: list[str]  # the packages it imports in training
    archs: tuple[str, ...] = ("transformer",)
    bfloat16: bool = False  # whether it has a bfloat16 for CPUs


def names(text: str) -> list[str]:
    """Split a list of packages, written as one text to stay short."""
    return text.split()


# Hugging Face's datasets, which two peers import, requires an older fsspec and huggingface_hub than our constraints
# have, so it is installed like a peer, without its requirements, which are listed here.
DATASETS = "datasets==5.0.1"
DATASETS_NEEDS = names("dill<0.4.2 multiprocess<0.70.20 httpx<1.0 xxhash fsspec aiohttp huggingface_hub tqdm pyarrow")
EVERY = ("transformer", "rnn-luong", "rnn-bahdanau")
PEERS: dict[str, Peer] = {
    "joeynmt": Peer(
        "JoeyNMT",
        f"joeynmt==2.3.0 {DATASETS}",
        DATASETS_NEEDS
        + names(
            "torch numpy pyyaml sacrebleu sacremoses subword-nmt sentencepiece importlib_metadata tensorboard "
            "matplotlib seaborn pandas packaging six wrapt pillow setuptools"
        ),
        EVERY,
    ),
    "sockeye": Peer("Sockeye", "sockeye==3.1.34", names("torch numpy pyyaml sacrebleu")),
    "opennmt_py": Peer(
        "OpenNMT-py",
        "OpenNMT-py==3.5.1",
        names(
            "torch configargparse ctranslate2 tensorboard flask waitress pyonmttok pyyaml sacrebleu rapidfuzz "
            "pyahocorasick six spacy fasttext-wheel"
        ),
        EVERY,
    ),
    "eole": Peer(
        "eole",
        f"eole==0.6.4 {DATASETS}",
        DATASETS_NEEDS
        + names(
            "torch configargparse ctranslate2 fastapi numpy pandas pyahocorasick pyonmttok "
            "pyyaml rapidfuzz rich sacrebleu safetensors sentencepiece six subword-nmt tensorboard tokenizers "
            "torch-optimi uvicorn waitress pydantic requests spacy"
        ),
        EVERY,
        bfloat16=True,
    ),
    "marian": Peer("Hugging Face Marian", None, names("torch transformers==5.22.2 accelerate"), bfloat16=True),
    "torch_transformer": Peer("plain nn.Transformer", None, names("torch numpy"), bfloat16=True),
}


class UnavailableError(Exception):
    """The reason why a peer cannot be measured."""


def interpreter(name: str) -> Path:
    """Return the Python of a peer's environment; create it if it is missing or its packages have changed."""
    folder = ENVIRONMENTS / name
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    wanted = ingredients(PEERS[name])
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    install(name, folder, python)
    stamp.write_text(wanted)
    return python


def ingredients(peer: Peer) -> str:
    """Return the packages of a peer with our pins; other pins are no reason to install again."""
    pins = {line.partition("==")[0].lower(): line for line in CONSTRAINTS.read_text().splitlines()}
    wanted = [peer.package or "", *(pins.get(need.lower(), need) for need in peer.needs)]
    return "\n".join(filter(None, wanted)) + "\n"


def install(name: str, folder: Path, python: Path) -> None:
    """Install the requirements under the constraints, then the peer without dependencies."""
    peer = PEERS[name]
    print(f"installing {peer.label} into {folder.relative_to(HERE.parent)}", flush=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "-c", str(CONSTRAINTS)]
    run([sys.executable, "-m", "venv", "--clear", str(folder)])
    run([*pip, *peer.needs])
    if peer.package:
        run([*pip, "--no-deps", *names(peer.package)])


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UnavailableError(f"cannot be installed: {reason(done.stderr)}")


def reason(output: str) -> str:
    """Return the first error of pip, which names the packages; its last line is a general hint."""
    return next((line for line in output.splitlines() if line.startswith("ERROR:")), last_line(output))


def last_line(text: str) -> str:
    """Return the last line that is not empty: of a traceback, the error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
