import pytest

from softgaze.errors import UsageError
from softgaze.serve.settings import ENVIRONMENT, LEAST, Settings


def test_workers_get_what_their_parent_was_told(monkeypatch):
    told = Settings(models=("a", "b c"), port=1, cors=("*",), api_keys="k", window=0.5, shared="/x")
    monkeypatch.setenv(ENVIRONMENT, "")
    told.to_environment()
    assert Settings.from_environment() == told


@pytest.mark.parametrize("name", LEAST)
def test_limits_that_make_no_sense_are_refused(name):
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')} is at least"):
        Settings(**{name: LEAST[name] - 1})


def test_a_beam_within_its_limit():
    with pytest.raises(UsageError, match="--beam 5 is above --max-beam 4"):
        Settings(max_beam=4)
