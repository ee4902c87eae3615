import os

from bundles import tiny_bundle
from commands import run
from softgaze.cli import command
from softgaze.serve.settings import Settings


def test_no_model(tmp_path):
    result = run(tmp_path, "serve")
    assert result.returncode == 2
    assert "MODEL" in result.stderr


def test_a_limit_that_makes_no_sense(tmp_path):
    result = run(tmp_path, "serve", tiny_bundle(), "--queue", "0")
    assert (result.returncode, result.stderr) == (2, "--queue must be at least 1, got 0")


def test_an_address_that_is_not_here(tmp_path):
    result = run(tmp_path, "serve", tiny_bundle(), "--host", "203.0.113.7")
    assert result.returncode == 4
    assert "203.0.113.7:8000" in result.stderr


def test_every_setting_is_an_option_and_an_environment_variable():
    parameters = command("serve").params
    options = {parameter.name: parameter for parameter in parameters}
    for name in vars(Settings()).keys() - {"shared_dir"}:
        assert options[name].envvar == f"SOFTGAZE_{name.upper()}"
        assert name == "models" or options[name].opts == [f"--{name.replace('_', '-')}"]


def test_lists_in_environment_variables_are_separated_as_paths_and_as_words(tmp_path, monkeypatch):
    received = []
    monkeypatch.setattr("softgaze.serve.server.serve", lambda settings, echo: received.append(settings))
    monkeypatch.setenv("SOFTGAZE_MODELS", os.pathsep.join(["my model", "other"]))
    monkeypatch.setenv("SOFTGAZE_CORS", "https://a.example https://b.example")
    assert run(tmp_path, "serve").returncode == 0
    [settings] = received
    assert settings.models == ("my model", "other")
    assert settings.cors == ("https://a.example", "https://b.example")
