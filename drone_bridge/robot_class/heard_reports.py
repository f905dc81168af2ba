# SPDX-License-Identifier: Apache-2.0
"""HeardReports: whether a robot is moved, by when its reports and answers came, and what is wrong with them. Pure.

Landing, and requests that are always accepted, need no report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.dead_reckoning import DeadReckoning
from drone_bridge.motion.derived_velocity import DerivedVelocity
from drone_bridge.robot_class.connection import RobotClassConnection
from drone_bridge.robot_class.greeting import Greeting
from drone_bridge.robot_class.obedience import OBEYS_S
from drone_bridge.robot_class.robot import Command, Robot, Telemetry, further_links, is_stream, maxima, reports
from drone_bridge.session.continuous_pose import ContinuousPose, continued
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.session.report_watch import ReportWatch
from drone_bridge.session.session import Actions

#: Motion is withheld from a silent robot on a stream after this many of its reports, by its `report_rate`, or
#: `command_timeout` if longer.
REPORTS_MISSED = 3
UNPROVEN = "{peer} gets neutral until a report of it is decoded: none was since it was greeted."
SILENT = "{peer} was moved for {limit_s:.1f} s without a report: neutral until it sends one."


@dataclass(slots=True)
class OperatorParameters(NodeParameters):
    """Parameters of the session. A robot's class has the defaults."""

    rate: float = Robot.rate
    link_timeout: float = Robot.link_timeout_s


class HeardReports:
    """Reports of one robot, and its other signs of life."""

    def __init__(
        self,
        robot: type[Robot],
        feedback: Feedback | None = None,
        watch: ReportWatch | None = None,
        pose: ContinuousPose | None = None,
    ) -> None:
        """Start before the first connection.

        Args:
            robot: the description.
            feedback: receives telemetry for limits and a pilot.
            watch: notices implausible telemetry, for limits of positions without a pilot.
            pose: the pose in `odom`, for one that is not absolute.
        """
        self.robot, self._feedback, self._watch, self._pose = robot, feedback, watch, pose
        self._reckoning = DeadReckoning(in_plane=True) if robot.reckons else None
        self._derived = DerivedVelocity(*maxima(robot))
        #: Time from which it may be moved; infinity from a loss until it is greeted again, -infinity before the first.
        self._moves_from_s = -math.inf
        #: Why the newest packet is no report; empty if it is one.
        self.rejects = ""
        #: Facts of obstacles: BLOCKED, a robot that answers while no report comes to the further ports; NO_REPORT, a
        #: silent one whose packets are none; NO_PACKET, bytes that are none; UNGREETED, UNANSWERED. Thread-safe.
        self.facts: dict[Obstacle, dict[str, Any] | None] = {}
        self.restart()

    def restart(self) -> None:
        """Begin a connection."""
        self._has_reported = False
        if math.isfinite(self._moves_from_s):
            self._moves_from_s = math.inf
        self._moved_at = math.inf  # time of the first motion that was sent after the last sign of life
        #: Whether it has answered, beyond the greeting; over datagrams the greeting, too.
        self.has_answered = False
        if self._pose:
            self._pose.greeted()
        if self._watch:
            self._watch.restart()

    def tell(self, obstacle: Obstacle, facts: dict[str, Any] | None) -> str:
        """Show the facts of an obstacle, or that there is none. Return its sentence, or ""."""
        self.facts = {**self.facts, obstacle: facts}
        return obstacle.sentence(**facts) if facts else ""

    def greeted(self, now_s: float) -> None:
        """End the greeting."""
        # After a loss it gets neutral for OBEYS_S.
        self._moves_from_s = min(max(self._moves_from_s, now_s), now_s + OBEYS_S)
        self.facts = {**self.facts, Obstacle.UNGREETED: None, Obstacle.UNANSWERED: None}

    def live(self) -> None:
        """Record a sign of life, or that the silence was our own."""
        self._moved_at = math.inf
        self.tell(Obstacle.NO_PACKET, None)

    def commanded(self, command: Command | None) -> None:
        """Record a command that is sent."""
        if self._watch:
            self._watch.commanded(command if isinstance(command, BodyVelocity) else None)

    def measured(self, measured: Telemetry, now_s: float, *, is_greeting: bool) -> tuple[Telemetry, Actions]:
        """Record a report. Return it with its pose in `odom`, and actions if the robot's own pose has begun again.

        Its position is by dead reckoning if the robot has none of its own. Limits, pilot and watch get it after the
        greeting.
        """
        self._has_reported, self.rejects = True, ""
        self.facts = {**self.facts, Obstacle.BLOCKED: None, Obstacle.NO_REPORT: None}
        measured, restarted = continued(self._pose, measured, now_s)
        if self._pose and is_greeting:
            self._pose.greeted()  # a step of the greeting may reset it
        if pose := self._reckoning.update(measured, now_s) if self._reckoning else None:
            measured = replace(measured, position=pose[:3], yaw=pose.yaw)
        for each in (self._feedback, self._watch):
            if each and not is_greeting:
                each.measured(measured, now_s)
        return replace(measured, velocity=self._derived.update(measured, now_s)), restarted

    def silence(self, peer: str, end: RobotClassConnection, silent_s: float) -> str:
        """Return what is wrong with a robot that is silent."""
        if (further := further_links(self.robot).values()) and not self._has_reported:
            ports = " and ".join(str(each.port) for each in further)
            self.tell(Obstacle.BLOCKED, {"peer": peer, "ports": ports} if self.has_answered else None)
        told = self.tell(Obstacle.NO_REPORT, {"peer": peer, "reason": self.rejects} if self.rejects else None)
        self.rejects = ""
        return self.noise(end, silent_s) or told or f"{peer} was silent for {silent_s:.1f} s."

    def ungreeted(
        self, peer: str, greeting: Greeting, disobeys: str, end: RobotClassConnection, silent_s: float
    ) -> str:
        """Return what the robot sends instead of the answer to a step, if anything. `disobeys`: see Greeting."""
        if reports(self.robot) and (noise := self.noise(end, silent_s)):
            return noise
        if not (problem := greeting.problem(disobeys, is_secret=bool(end.robot.login))):
            return ""
        obstacle, facts = problem
        if obstacle is Obstacle.UNANSWERED and self._moves_from_s > -math.inf:
            return ""  # it was greeted before: its silence is named, by whether it flies
        self.facts = {**self.facts, Obstacle.UNGREETED: None, Obstacle.UNANSWERED: None}
        return self.tell(obstacle, {"peer": peer, **facts})

    def noise(self, end: RobotClassConnection, silent_s: float) -> str:
        """Return which bytes of the stream are no packet, and why, if there were no others for this time; else ""."""
        number, first, reason = end.skipped
        if not number:
            return ""
        rate, link = f"{number / max(silent_s, 1.0) / 1000:.1f} kB/s", next(iter(self.robot.links))
        facts = {"link": link, "rate": rate, "sample": f"{first.hex(' ')} ...", "reason": reason}
        return self.tell(Obstacle.NO_PACKET, facts)

    def is_unproven(self) -> bool:
        """Return whether a robot with topics is not to be moved yet: none of its reports or answers was decoded.

        Over a stream or a line, since it was greeted, whose answer shows nothing. Over datagrams, an answer to the
        greeting is enough while no packet is rejected: a firewall may block the port of the reports of a drone, which
        has to be flown to its landing.
        """
        if not (reports(self.robot) and self.robot.topics) or self._has_reported:
            return False
        is_rejected = bool(self.rejects or self.facts.get(Obstacle.NO_REPORT)) and not is_stream(self.robot)
        return not self.has_answered or is_rejected

    def withheld(self, peer: str, parameters: OperatorParameters, now_s: float, *, is_stream: bool) -> str | None:
        """Return why a motion is not sent, or "" while that is normal. None if it is. `is_stream`: see ClientSender."""
        if now_s < self._moves_from_s:
            return ""
        is_unproven = self.is_unproven()
        # A robot on a stream that stops reading executes later all that its system has acknowledged meanwhile. Without
        # reports over this stream, nothing shows that. One that answers each packet has one at a time.
        if not (is_unproven or (is_stream and reports(self.robot) and not self.robot.answered)):
            return None
        self._moved_at = min(self._moved_at, now_s)
        limit_s = max(parameters.command_timeout, REPORTS_MISSED / self.robot.report_rate)
        if now_s - self._moved_at <= limit_s:
            return "" if is_unproven else None
        return (UNPROVEN if is_unproven else SILENT).format(peer=peer, limit_s=limit_s)
