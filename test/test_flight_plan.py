# SPDX-License-Identifier: Apache-2.0
"""The flight plan: what it asks for and when, without ROS."""

import pytest

from drone_bridge.controllers.flight_plan import Call, FlightPlan, PlanParameters, Velocity

PARAMETERS = PlanParameters(take_off_time=3.0, take_off_patience=5.0, leg_time=1.0, pause_time=0.5, speed=0.2)
TICK_S = 0.1
ANSWER_S = 0.6


class World:
    """Calls the plan steadily, answers after a while, and keeps what was asked for: (time, call or velocity)."""

    def __init__(self, parameters=PARAMETERS):
        self.plan = FlightPlan(parameters)
        self.plan.is_flying = False
        self.log = []
        self.refused = {}  # service: how often
        self._tick = 0
        self._answer_at = None

    @property
    def now_s(self):
        return self._tick * TICK_S

    def run(self, seconds=60.0):
        for _ in range(round(seconds / TICK_S)):
            if self.plan.is_over:
                break
            self._step()
            self._tick += 1
        return self

    def _step(self):
        if self._answer_at is not None and self.now_s >= self._answer_at:
            self._answer_at = None
            left = self.refused.get(self._called.service, 0)
            self.refused[self._called.service] = max(0, left - 1)
            self.plan.answered(self.now_s, not left, "not now" if left else "done")
        step = self.plan.update(self.now_s)
        assert not (step.call and step.velocity)
        if step.call:
            assert self._answer_at is None, "a call before the answer to the last one"
            self._called, self._answer_at = step.call, self.now_s + ANSWER_S
            self.log.append((self.now_s, step.call))
        if step.velocity:
            self.log.append((self.now_s, step.velocity))

    @property
    def calls(self):
        return [entry for _, entry in self.log if isinstance(entry, Call)]

    @property
    def velocities(self):
        return [entry for _, entry in self.log if isinstance(entry, Velocity)]


HOVER, GO = Call("hover", True), Call("hover", False)


def test_a_flight_is_take_off_a_square_and_landing():
    world = World().run()
    assert world.plan.state == "done"
    assert world.calls == [Call("takeoff"), *[GO, HOVER] * 4, Call("land"), GO]


def test_a_refused_takeoff_is_tried_again():
    world = World()
    world.refused["takeoff"] = 2
    world.run()
    assert world.plan.state == "done"
    assert world.calls[:3] == [Call("takeoff")] * 3


def test_a_takeoff_that_stays_refused_ends_it():
    world = World()
    world.refused["takeoff"] = 100
    world.run()
    assert (world.plan.state, world.plan.problem) == ("failed", "takeoff was refused: not now")
    assert set(world.calls) == {Call("takeoff")}
    assert world.now_s <= PARAMETERS.take_off_patience + ANSWER_S + TICK_S


def test_any_other_refusal_lands():
    world = World()
    world.refused["hover"] = 1
    world.run()
    assert world.calls == [Call("takeoff"), GO, Call("land"), GO]
    assert (world.plan.state, world.plan.problem) == ("failed", "hover was refused: not now")


def test_a_landing_is_over_when_the_drone_is_down():
    world = World(PlanParameters(take_off_time=3.0, leg_time=1.0, pause_time=0.5, speed=0.2, landing_patience=10.0))
    world.plan.is_flying = True
    world.run(19.0)
    assert world.plan.state == "landing"
    world.plan.is_flying = False
    world.run()
    assert (world.plan.state, world.plan.problem) == ("done", "")
    assert world.calls[-2:] == [Call("land"), GO]


@pytest.mark.parametrize("is_flying", [True, None])
def test_a_flight_is_not_done_until_the_drone_is_known_to_be_down(is_flying):
    world = World(PlanParameters(take_off_time=3.0, leg_time=1.0, pause_time=0.5, speed=0.2, landing_patience=2.0))
    world.plan.is_flying = is_flying
    world.run()
    assert world.plan.state == "failed"
    assert "not seen on the ground within 2 s" in world.plan.problem
