# SPDX-License-Identifier: Apache-2.0
"""Each obstacle in all places that name it, and what `drone-bridge doctor` says of running nodes. Without a graph."""

import re
from types import SimpleNamespace

import pytest
from diagnostic_msgs.msg import DiagnosticStatus

from drone_bridge.ros.node.link_report import LinkReport
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.tools.doctor.command import judge
from drone_bridge.tools.doctor.running_nodes import RunningNode
from drone_bridge.wire.counters import ProblemCounter

REFUSED = ProblemCounter("test_refusals")


@pytest.fixture
def log():
    return []


@pytest.fixture
def report(log):
    report = LinkReport(SimpleNamespace(**dict.fromkeys(("info", "warning", "error"), log.append)), "connected")
    report.state = "connected"
    return report


def judged(report):
    """Return what diagnostics, which the page shows, and doctor say."""
    status = report.status("robot_bridge: link", "")
    (finding,) = judge([RunningNode("/robot_bridge", "robot", status)])
    return status.message, str(finding)


@pytest.mark.parametrize("obstacle", Obstacle)
@pytest.mark.parametrize("is_logged", [True, False])
def test_log_diagnostics_and_doctor_name_an_obstacle_with_its_remedy(report, log, obstacle, is_logged):
    facts = {name: f"<{name}>" for name in re.findall(r"\{(\w+)\}", obstacle.sentence())}
    report.update_obstacle(obstacle, facts, is_logged=is_logged)
    sentence = obstacle.sentence(**facts)
    assert log == [sentence][: int(is_logged)]
    for text in judged(report):
        assert sentence.rstrip(".") in text
    report.update_obstacle(obstacle, None)
    assert judged(report) == ("connected", "ok running        /robot_bridge (robot), connected")


def test_doctor_names_the_commander(report):
    report.facts["commander"] = "/joy on /cmd_vel"
    assert judged(report)[1].endswith("/robot_bridge (robot), connected, commanded by /joy on /cmd_vel")


def test_diagnostics_and_doctor_say_why_a_problem_is_counted(report):
    report.count_and_warn(REFUSED, "A command on cmd_vel was refused: its stamp is 3 s old.")
    for text in judged(report):
        assert "test refusals growing: A command on cmd_vel was refused: its stamp is 3 s old" in text
    report.counts[REFUSED] += 1
    report.update_condition("stamp", "its stamp is 3 s old")
    assert judged(report)[0] == "connected; its stamp is 3 s old; test refusals growing", "not twice"


@pytest.mark.parametrize(("level", "mark"), [(DiagnosticStatus.WARN, "! "), (DiagnosticStatus.ERROR, "x ")])
def test_an_error_is_marked_as_one(report, level, mark):
    report.begin_condition("drive", "Drive is held by h2", level)
    assert judged(report)[1].startswith(mark)


def test_a_node_without_a_report_is_named():
    (finding,) = judge([RunningNode("/robot_bridge", "robot", None)])
    assert "does not report" in finding.remedy
