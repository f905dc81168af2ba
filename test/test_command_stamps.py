# SPDX-License-Identifier: Apache-2.0
"""Commands with stamps of another machine's clock, on topics: what is followed, refused, and told of it."""

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from diagnostics import values_of
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


@pytest.mark.parametrize(("behind_s", "where"), [(5.0, "behind"), (-5.0, "ahead of")])
def test_a_clock_difference_is_learned_and_reported_and_queued_commands_are_refused(ros, free_port, behind_s, where):
    reports = Reports(ros)
    with Process.node("robot_bridge", port=free_port, command_timeout=0.5) as node:
        commander = Commander(ros, behind_s)
        commander.give_until(lambda: reports.count("commands") > 0, "a command that is followed")
        assert reports.count("refused commands") > 10  # those that it was learned from
        line = rf"WARN.*{TOPIC} is stamped by a clock [45]\.\d\d s {where} this machine's: commands are judged by"
        node.wait_for_line(line)
        named = f"s {where} this machine's"
        commander.give_until(lambda: named in reports.newest().status[0].message, "the difference in diagnostics")
        assert reports.newest().status[0].level == DiagnosticStatus.WARN
        followed, refused = reports.count("commands"), reports.count("refused commands")
        commander.give_until(lambda: reports.count("refused commands") > refused + 40, "refusals", ago_s=3.0)
        # It was followed until the last one that was given at once, perhaps after the last report.
        assert reports.count("commands") <= followed + 40
        node.wait_for_line(r"it is [23]\.\d+ s old, and 0\.5 s \(command_timeout\) are allowed")
        before = reports.count("commands")
        commander.give_until(lambda: reports.count("commands") > before + 5, "commands that are followed again")
        assert node.count_lines(line) == 1

        commander.leave()  # and somebody else commands, whose clock agrees with ours
        other = Commander(ros, 0.0)
        before = reports.count("commands")
        other.give_until(lambda: reports.count("commands") > before + 20, "commands of somebody else")
        wait_until(lambda: other.give() or named not in reports.newest().status[0].message, "an end", period_s=0.05)


def test_clock_differences_can_be_refused(ros, free_port):
    reports = Reports(ros)
    with Process.node("robot_bridge", port=free_port, clock_difference="refuse") as node:
        commander = Commander(ros, 5.0)
        commander.give_until(lambda: reports.count("refused commands") > 100, "refusals")
        assert reports.count("commands") == 0
        node.wait_for_line(r"it is [56]\.\d+ s old, and 0\.5 s \(command_timeout\) are allowed")
