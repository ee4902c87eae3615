"""Errors for users are one line that names what is wrong."""

from contextlib import contextmanager

import pytest


@contextmanager
def one_line_error(kind, *parts):
    """Expect an error of this kind whose message is one line and contains every part."""
    with pytest.raises(kind) as caught:
        yield caught
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert str(part) in message, message
