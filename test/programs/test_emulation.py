# SPDX-License-Identifier: Apache-2.0
"""An emulated vehicle is stepped in real time, with a fake clock, link and vehicle."""

import argparse
from types import SimpleNamespace

import pytest

from drone_bridge.net.connector import Cancellation, LinkOutdatedError, LinkRefusedError
from drone_bridge.programs import emulation
from drone_bridge.programs.emulation import LONGEST_CATCH_UP_S, MAX_READ, Emulation
from drone_bridge.programs.program import TrajectoryFile

STEP_S = 0.125  # exact in binary


class Link:
    """Link with prepared events. Errors among them are raised."""

    def __init__(self, clock):
        self.clock, self.events, self.opened = clock, [], 0

    def files(self):
        return []

    def open(self):
        self.opened += 1

    def receive(self):
        if not self.events or self.events[0][0] > self.clock.now_s:
            return None
        _, event = self.events.pop(0)
        if isinstance(event, Exception):
            raise event
        return event


class Vehicle(Emulation):
    """Vehicle that notes what it does, and when."""

    step_s = STEP_S

    def __init__(self, clock):
        self.clock, self.steps, self.received, self.refusals = clock, [], [], []
        self.stalls, self.lines = {}, {}  # by number of steps
        self.last = None

    @property
    def time_s(self):
        return len(self.steps) * STEP_S

    @property
    def has_ended(self):
        return len(self.steps) == self.last

    def receive(self, link, event, now_s):
        self.received.append((event, len(self.steps), now_s))

    def handle_refusal(self, sentence):
        self.refusals.append(sentence)

    def step(self, now_s):
        self.steps.append(now_s)
        self.clock.now_s += self.stalls.get(len(self.steps), 0.0)

    def row(self):
        return [self.time_s]

    def changes(self):
        return self.lines.get(len(self.steps), ())

    def describe(self):
        return f"at {self.time_s:g} s"


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now_s=100.0, waits=[])

    def wait(files, timeout_s):
        clock.waits.append((files, timeout_s))
        clock.now_s += timeout_s

    monkeypatch.setattr(emulation, "elapsed_s", lambda: clock.now_s)
    monkeypatch.setattr(emulation, "wait_readable", wait)
    return clock


@pytest.fixture
def vehicle(clock):
    return Vehicle(clock)


@pytest.fixture
def link(clock):
    return Link(clock)


def run(vehicle, links=(), duration=1.0, cancellation=None, trajectory=None):
    vehicle.run(links, argparse.Namespace(duration=duration), cancellation or Cancellation(), trajectory)


def test_steps_come_at_their_rate_for_the_duration(vehicle):
    run(vehicle, duration=1.0)
    assert vehicle.steps == [100.0 + number * STEP_S for number in range(8)]


def test_without_a_duration_it_runs_until_it_has_ended(vehicle):
    vehicle.last = 20
    run(vehicle, duration=None)
    assert len(vehicle.steps) == 20


def test_each_step_has_a_row_and_each_second_a_status(vehicle, tmp_path, capsys):
    path = tmp_path / "rows.csv"
    with TrajectoryFile(path, ["time"]) as trajectory:
        run(vehicle, duration=2.25, trajectory=trajectory)
    assert [float(line) for line in path.read_text().split()[1:]] == [(n + 1) * STEP_S for n in range(18)]
    assert capsys.readouterr().out.splitlines() == ["at 1 s", "at 2 s"]


def test_changes_are_printed_and_an_empty_status_is_not(vehicle, capsys):
    vehicle.lines, vehicle.describe = {3: ["takes off"], 12: ["flies", "lands"]}, str
    run(vehicle, duration=2.0)
    assert capsys.readouterr().out.splitlines() == ["takes off", "flies", "lands"]


@pytest.mark.parametrize(
    ("stall_s", "at_once"), [(0.0, 1), (STEP_S, 1), (2 * STEP_S, 2), (LONGEST_CATCH_UP_S + STEP_S, 3), (10.0, 3)]
)
def test_a_stall_is_caught_up_to_its_limit(vehicle, stall_s, at_once):
    vehicle.stalls = {2: stall_s}
    run(vehicle, duration=2.0)
    after = vehicle.steps[2:]
    assert after.count(after[0]) == at_once
    assert after[at_once:] == [after[0] + (number + 1) * STEP_S for number in range(len(after) - at_once)]


def test_what_arrives_meanwhile_is_received_before_the_next_step(vehicle, link):
    link.events = [(100.0, "early"), (100.0 + 2.5 * STEP_S, "between"), (100.0 + 3 * STEP_S, "late")]
    run(vehicle, [link])
    assert [(event, steps) for event, steps, _ in vehicle.received] == [("early", 1), ("between", 3), ("late", 3)]


def test_a_flood_on_one_link_leaves_room_for_the_other_and_for_steps(vehicle, clock, link):
    flooded = link
    flooded.receive = lambda: "flood"
    other = Link(clock)
    other.events = [(100.0, "other")]
    run(vehicle, [flooded, other], duration=2 * STEP_S)
    events = [event for event, *_ in vehicle.received]
    assert events[: MAX_READ + 1] == ["flood"] * MAX_READ + ["other"]
    assert len(vehicle.steps) == 2


def test_a_refused_datagram_is_handled_and_an_outdated_link_reopened(vehicle, link, capsys):
    link.events = [(100.0, LinkRefusedError("Refused.")), (100.0, LinkOutdatedError("It has moved.")), (100.0, "data")]
    run(vehicle, [link], duration=STEP_S)
    assert (vehicle.refusals, link.opened, capsys.readouterr().out) == (["Refused."], 1, "It has moved.\n")
    assert [event for event, *_ in vehicle.received] == ["data"]


def test_a_cancelled_vehicle_makes_no_step_and_cancellation_wakes_it(vehicle, clock):
    cancellation = Cancellation()
    run(vehicle, cancellation=cancellation, duration=STEP_S)
    assert all(files == [cancellation] for files, _ in clock.waits)
    cancellation.cancel()
    run(vehicle, cancellation=cancellation)
    assert len(vehicle.steps) == 1
