# SPDX-License-Identifier: Apache-2.0
"""Scripted operators: a plan is done if the vehicle has reported motion, or reports none at all."""

import contextlib
from types import SimpleNamespace

import pytest

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError
from drone_bridge.programs import program, script
from drone_bridge.programs.plan import parse_plan

MOVING, STANDING = Measurement(velocity=BodyVelocity(0.1)), Measurement(velocity=BodyVelocity())


class Scripts:
    """Makes scripts with a fake clock and loop."""

    def __init__(self):
        self.wish, self.stopped, self.script = script.PlannedCommands(), [], None

    def loop(self, *_):
        return SimpleNamespace(start=lambda: None, stop=lambda: self.stopped.append(self.script.time_s))

    def __call__(self, plan):
        session, options = SimpleNamespace(is_open=True, peer="it"), SimpleNamespace(plan=parse_plan(plan))
        self.script = made = script.Script(
            "it", None, session, self.wish, options=options, cancellation=Cancellation(), requests=()
        )
        made.time_s, made.now_s = 0.0, lambda: made.time_s
        return made


@pytest.fixture
def make_script(monkeypatch):
    scripts = Scripts()
    monkeypatch.setattr(script, "LinkLoop", scripts.loop)
    return scripts


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
def test_a_plan_that_has_moved_nothing_fails(make_script, capsys, reports, plan, status):
    feedback, waiting = make_script.wish.make_feedback(), iter(range(1000))
    feedback.measured(MOVING if reports == [STANDING] else reports[0], 0.0)  # before the plan
    operator = make_script(plan)

    def listen(_):
        operator.time_s += 0.05
        feedback.measured(reports[(number := next(waiting)) % len(reports)], 0.1 * number + 0.1)

    operator.listen = listen
    assert operator.operate() == status
    assert ("reports no motion" in capsys.readouterr().out) is bool(status)


def test_each_leg_is_commanded_at_a_steady_rate_and_announced_once(make_script, capsys):
    operator, sent = make_script("1s forward 1, 1s turn 2"), []
    operator.period_s = 0.5

    def listen(seconds):
        sent.append((operator.time_s, make_script.wish.velocity.forward, make_script.wish.velocity.turn))
        operator.time_s += seconds

    operator.first_report_s, operator.listen = 0.0, listen
    assert operator.operate() == 0
    assert sent == [(0.0, 1.0, 0.0), (0.5, 1.0, 0.0), (1.0, 0.0, 2.0), (1.5, 0.0, 2.0)]
    printed = capsys.readouterr().out
    assert (printed.count("leg "), printed.count("reports "), make_script.stopped) == (2, 2, [2.0])


@pytest.mark.parametrize("error", [LinkCancelledError, LinkError])
def test_a_plan_that_is_cancelled_or_fails_ends_with_the_session(make_script, error):
    operator = make_script("1s forward 1")

    def listen(seconds):
        operator.time_s += seconds
        if operator.time_s > 0.5:
            raise error("gone")

    operator.first_report_s, operator.listen = 0.0, listen
    with contextlib.nullcontext() if error is LinkCancelledError else pytest.raises(LinkError, match="gone"):
        operator.operate()
    assert make_script.stopped == [operator.time_s]


@pytest.mark.parametrize(
    ("measured", "text"),
    [
        (None, "no telemetry"),
        (Measurement(), "telemetry"),
        (Measurement((1.0, 2.0, 3.0), yaw=0.5, is_flying=True), "at 1.00 2.00 3.00 m, yaw 0.50 rad, flying"),
        (Measurement(height=1.5, charge=0.25, is_flying=False), "height 1.50 m, battery 25.00 %, not flying"),
        (Measurement(velocity=BodyVelocity(1.0, -0.5)), "forward 1.00 m/s, left -0.50 m/s"),
    ],
)
def test_a_report_is_printed_in_its_units(measured, text):
    assert script.described(measured) == text


@pytest.mark.parametrize("ends_launch", [False, True])
def test_a_program_of_a_launch_prints_no_progress(ends_launch, capsys):
    def run(options, cancellation, stack):
        program.print_status("half of it")
        return 0

    assert program.run_program("it", run, SimpleNamespace(ends_launch=ends_launch)) == 0
    assert ("half of it" in capsys.readouterr().out) is not ends_launch
