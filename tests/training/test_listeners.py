"""Listeners hear everything, in the order they were named, and can change nothing."""

from dataclasses import FrozenInstanceError

import pytest

from softgaze.training.listeners import Listener, Listeners, Update, Validation

UPDATE = Update(1, 0, 2.5, 100, 1e-3, 0.5)
VALIDATION = Validation(1, 0, 0.5, 2.5, 10.0, 20.0, (), True)
TOLD = {
    "started": ({"arch": "transformer"},),
    "updated": (UPDATE, 0.5),
    "validated": (VALIDATION,),
    "said": ("resuming",),
    "finished": ({"step": 1},),
}


def test_every_event_is_tried_here():
    assert {*TOLD} == {name for name in vars(Listener) if not name.startswith("_")}


@pytest.mark.parametrize("event", TOLD)
def test_all_hear_it_in_order(event):
    heard = []

    def listener(name):
        made = Listener()
        setattr(made, event, lambda *told: heard.append((name, told)))
        return made

    getattr(Listeners(listener("first"), Listeners(listener("second")), listener("third")), event)(*TOLD[event])
    assert heard == [(name, TOLD[event]) for name in ("first", "second", "third")]


@pytest.mark.parametrize("told", [UPDATE, VALIDATION])
def test_what_they_hear_cannot_be_changed(told):
    with pytest.raises(FrozenInstanceError):
        told.step = 2
