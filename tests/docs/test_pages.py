"""Every command block of the tutorials, the how-to pages and docs/engines.md is run, in order, with one tiny model.

`bash` blocks are run, `python` blocks are run and compared with the `output` block after them, and the first line of a
`yaml` block names the file. A `console` block needs another machine (Docker, systemd, a package index) and is not run;
it contains no softgaze command. The guide, the README and docs/scale.md have tests of their own.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from commands import run
from corpora import SMALL, write_corpus
from docs.chapters import FENCED, Block, blocks, commands
from softgaze.serve.settings import Settings

ROOT = Path(__file__).parents[2]
NEEDS_DOWNLOADS = {"use-a-model-you-already-have"}  # its models cannot be shipped; tests/importers tests `import`
HOWTO = sorted(path for path in (ROOT / "docs/howto").glob("*.md") if path.stem not in NEEDS_DOWNLOADS)
REFERENCE = [ROOT / f"docs/reference/{name}.md" for name in ("formats", "python-api")]
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
PAGES = [*TUTORIALS, *HOWTO, *REFERENCE, ROOT / "docs/engines.md"]
KINDS = {"bash", "python", "yaml", "console", "output", "text", "nginx", "ini"}
QUICK = ["--set=training.warmup=20", "--set=validation.every=100"]
QUICK += [f"--set=model.options.{name}={value}" for name, value in SMALL["transformer"].items()]
STRICT = "set -eo pipefail; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"  # stop at an error, leave no server
SLOW = {"bench"}  # starts a process per setting; tests/cli/test_bench.py runs it
EXAMPLES = ROOT / "examples/serve"
SHELL = re.compile(r"^(?!softgaze )\w|[|&>$]", re.MULTILINE)  # more than softgaze commands
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def read(page):
    return page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a directory with text and a small model of it."""
    directory = tmp_path_factory.mktemp("pages")
    for name, pairs in (("train", 200), ("val", 20), ("test", 8)):
        write_corpus(directory, pairs, name)
    for name, copy in (("train", "corpus"), ("test", "new"), ("test", "test")):  # for the page about alignment
        shutil.copy(directory / f"{name}.de", directory / f"{copy}.fr")
        if name != copy:
            shutil.copy(directory / f"{name}.en", directory / f"{copy}.en")
    links = [range(1, len(line.split()) + 1) for line in (directory / "test.en").read_text().splitlines()]
    (directory / "gold.talp").write_text("".join(" ".join(f"{word}-{word}" for word in row) + "\n" for row in links))
    files = ["--train", "train.en", "train.de", "--dev", "val.en", "val.de"]
    result = run(directory, "train", *files, "--out", "runs/mine", "--steps", 100, *QUICK)
    assert result.returncode == 0, result.stderr
    return directory


@pytest.fixture
def directory(trained, tmp_path):
    """Return a copy, so that pages do not depend on each other."""
    return shutil.copytree(trained, tmp_path / "work")


@pytest.fixture(scope="module")
def shell_environment(tmp_path_factory):
    """Return an environment in which `softgaze` and `python` are those of the tests."""
    programs = tmp_path_factory.mktemp("bin")
    for name, module in (("softgaze", "-m softgaze"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n')
        (programs / name).chmod(0o755)
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}


@every_page
def test_the_commands_of_a_page_run(page, directory, shell_environment):
    for block in blocks(read(page)):
        run_block(page, block, directory, shell_environment)


def run_block(page: Path, block: Block, directory: Path, environment: dict[str, str]) -> None:
    """Run one block in `directory`; raise if it fails or prints something else than the page shows."""
    where = f"{page.name}:{block.line}"
    if block.kind == "yaml":
        (directory / block.text.partition("\n")[0].removeprefix("# ")).write_text(block.text, encoding="utf-8")
    elif block.kind == "bash" and not SHELL.search(block.text.replace("\\\n", " ")):
        for arguments in commands(block.text):
            if arguments[0] in SLOW:
                continue
            result = run(directory, *arguments, *shortened(arguments))
            assert result.returncode == 0, f"{where}: {arguments}\n{result.stderr}"
    elif block.kind in ("bash", "python"):
        text = STRICT + block.text if block.kind == "bash" else block.text
        program = "bash" if block.kind == "bash" else sys.executable
        text = text.replace(str(Settings.port), str(free_port()))
        ran = subprocess.run([program, "-c", text], cwd=directory, env=environment, capture_output=True, timeout=300)
        assert ran.returncode == 0, f"{where}:\n{ran.stderr.decode()}"
        assert block.output is None or ran.stdout.decode() == block.output, where


def shortened(arguments: list[str]) -> list[str]:
    """Return the options that end a training after a few updates."""
    if arguments[0] == "quickstart":
        return ["--steps", "4", "--pairs", "60"]
    if arguments[0] != "train" or {"--dry-run", "--config"} & {*arguments}:
        return []
    return ["--steps", "4", *([] if {"--arch", "--images"} & {*arguments} else QUICK)]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


# --- blocks that are not run


@every_page
def test_every_block_has_a_known_kind(page):
    assert {kind for kind, _ in FENCED.findall(read(page))} <= KINDS
    fences = re.findall(r"^```(\w*)$", read(page), re.MULTILINE)
    assert all(fences[::2]), "a block without a kind"


@every_page
def test_softgaze_commands_are_in_blocks_that_are_run(page):
    skipped = [text for kind, text in FENCED.findall(read(page)) if kind in ("console", "text")]
    assert not [line for text in skipped for line in text.splitlines() if line.startswith("softgaze ")]


@every_page
def test_linked_files_exist(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(page)):
        generated = "docs/reference" in str((page.parent / target).resolve())
        assert generated or (page.parent / target).exists(), target


# --- examples of the server


def shown(kind):
    return {text for found, text in FENCED.findall(read(ROOT / "docs/howto/deploy.md")) if found == kind}


def test_the_proxy_files_are_those_of_the_page():
    assert (EXAMPLES / "nginx.conf").read_text() in shown("nginx")
    assert (EXAMPLES / "Caddyfile").read_text() in shown("text")


def test_nginx_accepts_its_file(tmp_path):
    if not (shutil.which("nginx") and shutil.which("openssl")):
        pytest.skip("nginx or openssl is not installed")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    name = ["-subj", "/CN=translate.example.org", "-keyout", key, "-out", certificate]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *name], check=True, capture_output=True)
    server = (EXAMPLES / "nginx.conf").read_text()
    server = server.replace("/etc/ssl/translate.example.org.pem", str(certificate))
    server = server.replace("/etc/ssl/translate.example.org.key", str(key))
    settings = tmp_path / "nginx.conf"
    settings.write_text(f"pid {tmp_path}/nginx.pid;\nevents {{}}\nhttp {{\n{server}}}\n")
    checked = subprocess.run(["nginx", "-t", "-c", settings], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_caddy_accepts_its_file():
    if not shutil.which("caddy"):
        pytest.skip("caddy is not installed")
    command = ["caddy", "validate", "--adapter", "caddyfile", "--config", EXAMPLES / "Caddyfile"]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_systemd_accepts_the_unit(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    unit = (EXAMPLES / "softgaze.service").read_text().replace("/opt/softgaze/bin/softgaze", sys.executable)
    (tmp_path / "softgaze.service").write_text(unit)
    checked = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / "softgaze.service"], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr
    assert "softgaze.service" not in checked.stderr
