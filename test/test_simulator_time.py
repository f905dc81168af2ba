# SPDX-License-Identifier: Apache-2.0
"""How often /clock is published, whenever steps come."""

import random
from types import SimpleNamespace

import pytest

from drone_bridge.simulator.bridge import outputs as simulator_time
from drone_bridge.simulator.bridge.outputs import TimeKeeper
from drone_bridge.simulator.codec import Configured

RATE = 100.0


@pytest.fixture
def clock(monkeypatch):
    """A keeper with a rate of 100 Hz, `published` with what it publishes, and `now_s`, the time that it sees."""
    fake = SimpleNamespace(now_s=1000.0, published=[])
    parameters = {"publish_clock": True, "stamp_source": "wire"}
    node = SimpleNamespace(
        parameters=parameters,
        make_publisher=lambda *_: "clock",
        make_timer=lambda *_: None,
        get_parameter=lambda _: SimpleNamespace(value=False),
        publish=lambda _, message: fake.published.append(message),
    )
    monkeypatch.setattr(simulator_time, "time", SimpleNamespace(monotonic=lambda: fake.now_s))
    fake.keeper = TimeKeeper(node)
    fake.keeper.clock.configure(Configured(RATE, 1.0, False, False))
    return fake


def test_steps_as_frequent_as_messages_are_published_at_once_whatever_their_jitter(clock):
    jitter = random.Random(1)
    for number in range(500):
        clock.now_s = 1000.0 + number / RATE + jitter.uniform(-0.002, 0.002)
        clock.keeper.step()
        assert len(clock.published) == number + 1


def test_more_frequent_steps_make_no_more_messages(clock):
    for number in range(5000):  # 5 s
        clock.now_s = 1000.0 + number / 1000.0
        clock.keeper.step()
    assert 499 <= len(clock.published) <= 501


def test_the_last_step_before_a_pause_is_published_when_due(clock):
    for _ in range(3):
        clock.keeper.step()
    assert len(clock.published) == 1
    assert clock.now_s < clock.keeper.due_s <= clock.now_s + 1 / RATE
    clock.keeper.tick(clock.keeper.due_s)
    assert clock.published[-1].clock.nanosec == 30_000_000
