# SPDX-License-Identifier: Apache-2.0
"""Short fuzzing of every codec, and a check that it detects faults."""

import contextlib
import gc

import fuzzing as fuzz
import pytest

from drone_bridge.protocols import robot


@pytest.mark.parametrize("target", list(fuzz.targets()), ids=lambda target: target.name)
def test_any_bytes_in_any_split_give_events_or_a_violation(target):
    inputs = 300
    refused, _, wrong = fuzz.run(target, inputs, seed=2)
    assert not wrong
    assert refused > 0


@pytest.mark.parametrize("target", list(fuzz.targets()), ids=lambda target: target.name)
def test_unmutated_input_is_decoded(target):
    for seed in target.seeds:
        for data in seed.read:
            connection = target.make(seed)
            connection.receive_data(data)
            assert connection.next_event() is not fuzz.NEED_DATA


@pytest.mark.parametrize("target", list(fuzz.targets()), ids=lambda target: target.name)
def test_refused_input_is_freed_at_once(target):
    """Otherwise invalid input fills the memory until the next run of the garbage collector."""
    fuzz.run(target, 3, seed=3)
    with uncollected() as left:
        assert fuzz.run(target, 30, seed=3)[0] > 0
    assert not left


@contextlib.contextmanager
def uncollected():
    """Yield a list, which is filled at the end with the exceptions that only the garbage collector frees."""
    left = []
    gc.freeze()  # all that other tests have left
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield left
        gc.collect()
        left += [repr(found) for found in gc.garbage if isinstance(found, BaseException)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        gc.unfreeze()


def test_an_exception_is_found_and_reproducible():
    class Connection(robot.DriverConnection):
        def receive_data(self, data):
            if b"\xff" in data:
                raise ZeroDivisionError("a fault of its own")
            super().receive_data(data)

    target = fuzz.Target("faulty", Connection, (fuzz.Seed((bytes(100),)),))
    wrong = fuzz.run(target, 200, seed=1)[2]
    assert wrong
    assert "ZeroDivisionError: a fault of its own" in wrong[0]
    assert wrong == fuzz.run(target, 200, seed=1)[2]


def test_a_connection_that_never_ends_is_found(monkeypatch):
    class Connection(robot.DriverConnection):
        def next_event(self):
            return robot.KeepAlive(1)

    monkeypatch.setattr(fuzz, "MAX_EVENTS", 50)
    assert "no end" in fuzz.run(fuzz.Target("endless", Connection, (fuzz.Seed((bytes(9),)),)), 1, seed=1)[2][0]
