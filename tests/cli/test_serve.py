from bundles import tiny_bundle
from commands import run
from softgaze.serve.settings import Settings


def test_help_tells_flags_and_environment_variables(tmp_path):
    found = run(tmp_path, "serve", "--help")
    for name in ("host", "port", "workers", "threads", "api-keys", "max-body", "window", "deadline"):
        assert f"--{name}" in found.stdout
        assert f"SOFTGAZE_{name.replace('-', '_').upper()}" in found.stdout


def test_no_model(tmp_path):
    found = run(tmp_path, "serve")
    assert found.returncode == 2
    assert "MODEL" in found.stderr


def test_a_limit_that_makes_no_sense(tmp_path):
    found = run(tmp_path, "serve", tiny_bundle(), "--queue", "0")
    assert (found.returncode, found.stderr) == (2, "--queue is at least 1, not 0")


def test_an_address_that_is_not_here(tmp_path):
    found = run(tmp_path, "serve", tiny_bundle(), "--host", "203.0.113.7")
    assert found.returncode == 4
    assert found.stderr.startswith("cannot serve on 203.0.113.7:8000")


def test_every_setting_has_a_flag(tmp_path):
    text = run(tmp_path, "serve", "--help").stdout
    for name in vars(Settings()):
        assert name in ("models", "shared") or f"--{name.replace('_', '-')}" in text
