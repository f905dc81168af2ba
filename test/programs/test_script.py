# SPDX-License-Identifier: Apache-2.0
"""Scripted operators: a plan is done if the vehicle has reported motion, or reports none at all."""

from types import SimpleNamespace

import pytest

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.net.connector import Cancellation
from drone_bridge.programs import script
from drone_bridge.programs.plan import parse_plan

MOVING, STANDING = Measurement(velocity=BodyVelocity(0.1)), Measurement(velocity=BodyVelocity())


@pytest.mark.parametrize(
    ("reports", "plan", "status"),
    [
        ([STANDING], "0.2s forward 0.5", 1),
        ([MOVING], "0.2s forward 0.5", 0),
        ([Measurement(velocity=BodyVelocity(turn=-0.1))], "0.2s turn -0.5", 0),
        ([STANDING], "0.2s up 0.5", 0),
        ([STANDING], "0.2s", 0),
        ([Measurement(voltage=12.0)], "0.2s forward 0.5", 0),
        ([Measurement((0.0, 0.0, 0.0))], "0.2s forward 0.5", 1),
        ([Measurement((0.01 * k, 0.0, 0.0)) for k in range(9)], "0.2s forward 0.5", 0),
    ],
)
def test_a_plan_that_has_moved_nothing_fails(monkeypatch, capsys, reports, plan, status):
    monkeypatch.setattr(script, "LinkLoop", lambda *_: SimpleNamespace(start=lambda: None, stop=lambda: None))
    wish, options = script.PlannedCommands(), SimpleNamespace(plan=parse_plan(plan))
    feedback, waiting = wish.make_feedback(), iter(range(1000))
    feedback.measured(MOVING if reports == [STANDING] else reports[0], 0.0)  # before the plan
    session = SimpleNamespace(is_open=True, peer="it")
    operator = script.Script("it", None, session, wish, options=options, cancellation=Cancellation(), requests=())

    def listen(_):
        operator.time_s += 0.05
        feedback.measured(reports[(number := next(waiting)) % len(reports)], 0.1 * number + 0.1)

    operator.time_s, operator.listen, operator.now_s = 0.0, listen, lambda: operator.time_s
    assert operator.operate() == status
    assert ("reports no motion" in capsys.readouterr().out) is bool(status)
