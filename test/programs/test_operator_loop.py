# SPDX-License-Identifier: Apache-2.0
"""Loop of scripted operators, with a fake clock."""

import pytest

from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError, LinkTimeoutError
from drone_bridge.programs.operator import Operator
from drone_bridge.programs.plan import parse_plan


class Client(Operator):
    """Operator that records its actions."""

    period_s = 0.5

    def __init__(self, plan="1s forward 1, 1s turn 2", fails=None):
        self.time_s, self.log, self._fails = 0.0, [], fails
        super().__init__(parse_plan(plan), Cancellation(), lambda: self.time_s)

    def listen(self, timeout_s):
        if self._fails and self.time_s >= 1.0:
            raise self._fails
        self.time_s += timeout_s
        raise LinkTimeoutError("Nothing arrived.")

    def steer(self, leg):
        self.log.append((self.time_s, leg.forward, leg.turn))
        return "as asked"

    def finish(self):
        self.log.append("finish")

    def leave(self):
        self.log.append("leave")


def test_each_leg_is_commanded_at_a_steady_rate_and_announced_once(capsys):
    client = Client()
    assert client.run()
    assert client.log == [(0.0, 1.0, 0.0), (0.5, 1.0, 0.0), (1.0, 0.0, 2.0), (1.5, 0.0, 2.0), "finish", "leave"]
    assert capsys.readouterr().out.count("leg ") == 2


def test_a_cancelled_plan_ends_with_the_last_command():
    client = Client(fails=LinkCancelledError("cancelled"))
    assert not client.run()
    assert client.log[-1] == "leave"
    assert "finish" not in client.log


def test_a_failure_is_raised_after_the_last_command():
    client = Client(fails=LinkError("gone"))
    with pytest.raises(LinkError, match="gone"):
        client.run()
    assert client.log[-1] == "leave"


def test_reports_are_throttled():
    client, due = Client(), []
    for client.time_s in (0.0, 0.5, 1.0, 1.5):
        due.append(client.is_report_due())
    assert due == [True, False, True, False]
