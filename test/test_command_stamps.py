# SPDX-License-Identifier: Apache-2.0
"""Commands with stamps of another machine's clock, on topics: what is followed, refused, and told of it."""

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from diagnostics import values_of
from geometry_msgs.msg import TwistStamped
from processes import Process
from ros_session import wait_until
from stamped_commander import TOPIC, Commander


class Reports:
    """The newest report on the link."""

    def __init__(self, ros):
        self._inbox = ros.subscribe(DiagnosticArray, "/diagnostics")
        self._newest = None

    def newest(self):
        while len(self._inbox):
            self._newest = self._inbox.wait()
        return self._newest

    def count(self, name):
        return int(values_of(self.newest()).get(name, 0)) if self.newest() else 0


@pytest.mark.parametrize(
    ("behind_s", "why"),
    [
        (5.0, r"it is 5\.\d+ s old, and 0\.5 s \(command_timeout\) are allowed"),
        (-5.0, r"[45]\.\d+ s ahead of this machine's"),
    ],
)
def test_commands_of_a_clock_that_differs_are_refused(ros, free_port, behind_s, why):
    reports = Reports(ros)
    with Process.node("robot_bridge", port=free_port, command_timeout=0.5) as node:
        commander = Commander(ros, behind_s)
        commander.give_until(lambda: reports.count("refused commands") > 10, "refusals")
        node.wait_for_line(why)
        assert reports.count("commands") == 0

        commander.leave()  # and somebody else commands, whose clock agrees with ours
        other = Commander(ros, 0.0)
        other.give_until(lambda: reports.count("commands") > 20, "commands of somebody else")


def test_commands_that_waited_are_refused(ros, free_port):
    reports = Reports(ros)
    with Process.node("robot_bridge", port=free_port) as node:
        commander = Commander(ros, 0.0)
        commander.give_until(lambda: reports.count("commands") > 0, "a command that is followed")
        refused = reports.count("refused commands")
        commander.give_until(lambda: reports.count("refused commands") > refused + 20, "refusals", ago_s=3.0)
        followed = reports.count("commands")
        commander.give_until(lambda: reports.count("refused commands") > refused + 60, "refusals", ago_s=3.0)
        assert reports.count("commands") == followed
        node.wait_for_line(r"it is [3-5]\.\d+ s old, and 0\.5 s \(command_timeout\) are allowed")


def test_a_stamp_of_zero_counts_as_none_and_is_told_of_once(ros, free_port):
    """As in ros2_controllers: people publish a TwistStamped from the command line, without a stamp."""
    reports = Reports(ros)
    with Process.node("robot_bridge", port=free_port) as node:
        publisher = ros.publisher(TwistStamped, TOPIC)
        for followed in (1, 10):
            wait_until(
                lambda followed=followed: publisher.publish(TwistStamped()) or reports.count("commands") >= followed,
                "commands that are followed",
                period_s=0.05,
            )
        assert reports.count("refused commands") == 0
        assert node.count_lines(rf"WARN.*{TOPIC} have a stamp of zero, which counts as none") == 1
