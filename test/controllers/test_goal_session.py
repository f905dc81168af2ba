# SPDX-License-Identifier: Apache-2.0
"""GoalSession without a node: what ends a goal at each stage, by the table in its docstring."""

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest

from drone_bridge.controllers.goals import session as module
from drone_bridge.controllers.goals.guides import GoalFailedError, GoalParameters, GuideStep, RestDetector
from drone_bridge.controllers.goals.requests import GoalFence, GoalPose, GoalRequest
from drone_bridge.controllers.goals.session import ENDINGS, STOPPING_S, EndEvent, Goal, GoalSession, GoalStage
from drone_bridge.controllers.goals.watches import ProgressWatch
from drone_bridge.controllers.vehicle_pose import VehiclePose
from drone_bridge.motion.quaternions import Quaternion

PERIOD_S = 0.02
#: Codes by text and stage, as a reader of the docstring finds them.
TABLE = [[cell.strip() for cell in line.split("|")[1:-1]] for line in module.__doc__.splitlines() if line[:2] == "| "]
CODES = {(text, stage): code for text, *codes in TABLE for stage, code in zip(GoalStage, codes, strict=True)}
ENDS_WITHIN_S = {EndEvent.LATE: 6.0, EndEvent.LEFT: 2.0}


def go_to(x, frame=""):
    return GoalRequest("go_to", (GoalPose(frame, x, 0.0, 1.0, Quaternion(0.0, 0.0, 0.0, 0.0)),))


#: Goal by the stage at which an event finds it. The vehicle stands still at x 0.
GOALS = {
    GoalStage.WAITS: go_to(0.0, "nowhere"),
    GoalStage.BEGINS: go_to(5.0),
    GoalStage.FOLLOWED: go_to(5.0),
    GoalStage.HELD: go_to(0.0),
}
LAND = GoalRequest("land")


class World:
    """Session of a drone that hovers, and reports its odometry while it speaks."""

    def __init__(self, *services):
        self.now_s, self.speaks, self.is_located, self.is_canceled, self.has_client = 100.0, True, True, False, True
        self.services, self.ended = {*services}, []
        self.session = GoalSession(GoalParameters(settle_time=0.1), self._service, lambda base, frame: None, flies=True)
        self.vehicle = self.session.vehicle
        self.vehicle.restart()  # the first report of a count
        self.run(0.1)

    def _service(self, name):
        answer = SimpleNamespace(
            done=lambda: True, exception=lambda: None, result=lambda: SimpleNamespace(success=True)
        )
        return (lambda: answer) if name in self.services else None

    def send(self, request):
        end = lambda code, message: self.ended.append(code.name)  # noqa: E731
        self.session.receive(Goal(request, self.now_s, end, lambda: self.has_client, lambda: self.is_canceled))

    def run(self, seconds):
        steps = []
        for _ in range(round(seconds / PERIOD_S)):
            self.now_s += PERIOD_S
            if self.speaks:
                pose = VehiclePose(np.array([0.0, 0.0, 1.0]), np.eye(3))
                self.vehicle.move(self.now_s, pose, "odom", is_located=self.is_located)
            steps.append(self.session.step(self.now_s))
        return steps

    def happen(self, event):
        """Let an event happen. Return what is commanded meanwhile."""
        self.is_canceled, self.has_client = event is EndEvent.CANCELED, event is not EndEvent.LEFT
        self.is_located, self.speaks = event is not EndEvent.DOUBTED, event is not EndEvent.SILENT
        self.vehicle.is_held, self.vehicle.is_steered = event is EndEvent.HELD, event is EndEvent.HELM
        self.vehicle.overruled_by = "commands on /cmd_vel by teleop" if event is EndEvent.OVERRULED else ""
        if event is EndEvent.OUTSIDE:
            self.vehicle.fence = GoalFence("odom", ((90.0, 90.0), (99.0, 90.0), (99.0, 99.0)))
        if event is EndEvent.RESTARTED:
            self.vehicle.restart()
        if event is EndEvent.GROUNDED:
            self.vehicle.ground.is_flying, self.services = False, self.services | {"takeoff"}
        return self.run(5.1 if event is EndEvent.SILENT else 0.1)


def test_the_docstring_has_the_rows():
    rows = [
        [row.event.value[0], *(row.code.name if stage in row.stages else "" for stage in GoalStage)] for row in ENDINGS
    ]
    assert TABLE[1:] == rows
    assert [row.event for row in ENDINGS] == list(EndEvent)


@pytest.mark.parametrize("stage", GoalStage)
@pytest.mark.parametrize("event", EndEvent)
def test_an_event_ends_a_goal_as_the_table_says(event, stage):
    world, code = World(), CODES[event.value[0], stage]
    if stage in (GoalStage.FOLLOWED, GoalStage.HELD):
        world.send(GOALS[stage])
        world.run(1.0)
        assert world.ended == (["NONE"] if stage is GoalStage.HELD else [])
        steps = world.happen(event) + world.run(ENDS_WITHIN_S.get(event, 0.1))
        stops = [step for step in steps if step and not any(step.velocity.linear) and step.distance != step.distance]
        assert (world.session.state[0] == "idle") is bool(code)
        assert bool(stops) is (code not in ("", "NONE")) or event in (EndEvent.SILENT, EndEvent.OVERRULED)
        world.run(STOPPING_S)
        assert world.session.is_idle is bool(code)
    else:
        world.happen(event)
        world.send(GOALS[stage])
        world.run(ENDS_WITHIN_S.get(event, 0.1))
    ended_before = ["NONE"] if stage is GoalStage.HELD else []
    assert world.ended == (ended_before or [code] if code else ended_before)


@pytest.mark.parametrize("event", [EndEvent.RESTARTED, EndEvent.DOUBTED, EndEvent.HELD, EndEvent.HELM])
@pytest.mark.parametrize("services", [(), ("land",)])
@pytest.mark.parametrize("happens_first", [False, True])
def test_a_landing_goes_on_unless_it_needs_commands_that_are_not_followed(event, services, happens_first):
    world, needs_commands = World(*services), not services and event in (EndEvent.HELD, EndEvent.HELM)
    world.vehicle.ground.is_flying = True
    steps = (lambda: world.send(LAND), lambda: world.happen(event))
    for step in reversed(steps) if happens_first else steps:
        step()
        world.run(0.1)
    assert world.ended == (["HELD"] if needs_commands else [])


@pytest.mark.parametrize(
    ("period_s", "step_s", "rests", "seldom"),
    [
        (0.1, 0.0, True, 0),
        (0.5, 1 / 30, False, 0),
        (1.0, 1 / 30, False, 0),
        (60.0, 0.0, False, 0),
        (0.05, 1 / 30, False, 4),
    ],
)
def test_rest_is_shown_by_several_poses(period_s, step_s, rests, seldom):
    """A simulator that waits for commands sends one frame per second, and a drone begins to sink with 1 m/s^2.

    The first ones, `seldom`, come each 0.65 s.
    """
    detector, turned = RestDetector(), np.eye(3)
    sunk_m = [0.5 * min(at_s, 0.3) ** 2 + 0.3 * max(at_s - 0.3, 0.0) for at_s in np.arange(305) * step_s]
    poses = [VehiclePose(np.array([0.0, 0.0, 2.0 - each]), turned) for each in sunk_m]
    frames = [min(turn // 13, seldom) + int(max(0, turn - 13 * seldom) * 0.05 / period_s) for turn in range(300)]
    seen = [detector.is_seen(turn * 0.05, poses[frame]) for turn, frame in enumerate(frames)]
    assert any(seen) is rests
    assert not any(seen[:20])


@pytest.mark.parametrize(
    ("steps", "is_stuck"),
    [
        ([GuideStep(distance=2.0)] * 2, True),
        ([GuideStep(distance=2.0), GuideStep(distance=1.0)], False),
        ([GuideStep(distance=2.0), GuideStep(distance=2.0, done="reached")], False),
        ([GuideStep(distance=2.0), GuideStep(distance=2.0, waiting_for="odom")], False),
        ([GuideStep(distance=2.0, waiting_for="odom"), GuideStep(distance=2.0)], False),
        ([GuideStep(distance=2.0, waiting_for="odom"), GuideStep(distance=2.0, waiting_for="imu")], False),
    ],
)
def test_progress_is_less_to_go_another_wait_or_the_goal(steps, is_stuck):
    parameters = SimpleNamespace(stuck_time=5.0, answer_time=5.0)
    watch, (first, second) = ProgressWatch(parameters, str), steps
    watch.check(0.0, first, 0.0)
    with pytest.raises(GoalFailedError) if is_stuck else contextlib.nullcontext():
        watch.check(6.0, second, 0.0)
