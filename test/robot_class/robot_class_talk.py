# SPDX-License-Identifier: Apache-2.0
"""ClientTalk: session of a client with a robot in one class that the test plays, whose commands the test decides."""

from dataclasses import dataclass

from session_talk import SessionTalk, sent

from drone_bridge.robot_class.client_session import RobotClassOperatorSession
from drone_bridge.robot_class.heard_reports import HeardReports, OperatorParameters
from drone_bridge.robot_class.robot import is_stream
from drone_bridge.session.arbiter import Decision, Rank
from drone_bridge.session.session import Close, Note, Outcome

PARAMETERS = OperatorParameters()


@dataclass(eq=False)
class Asked:
    """Request of a service."""

    name: str
    asked_s: float = 1e9


class ClientTalk(SessionTalk):
    """Session with a robot played by the test, and its arbiter, which decides `rank` and `command`."""

    def __init__(self, robot, arbiter=None, *, parameters=PARAMETERS, feedback=None, watch=None, pose=None, **options):
        """`options` are those of the session."""
        self.rank, self.command, self.starts = Rank.NEUTRAL, None, 0
        self.peer = "robot" if is_stream(robot) else None
        reports = HeardReports(robot, feedback, watch, pose)
        super().__init__(RobotClassOperatorSession(robot, arbiter or self, parameters, "robot", reports, **options))

    def decide(self, now_s):
        return Decision(self.rank, self.command)

    def start(self, now_s):
        self.starts += 1

    def connect(self, *heard):
        """Open the link, and receive data. Return the actions."""
        actions = list(self.session.connected(self.peer, self.now_s))
        return actions + [action for data in heard for action in self.hear(data)]

    def disconnect(self):
        return list(self.session.disconnected("robot", "It has closed the connection.", self.now_s))

    def hear(self, data, link="robot"):
        return list(self.session.receive(data, link, self.now_s))

    def ask(self, name, asked_s=1e9):
        return list(self.session.ask(Asked(name, asked_s), self.now_s))

    def sends(self, seconds):
        """Return the data that are sent within this time."""
        return data_of(self.run(seconds))


def data_of(actions):
    return [action.data for action in sent(actions)]


def bytes_of(actions):
    return b"".join(data_of(actions))


def counters(actions):
    return [action.counter for action in actions if isinstance(action, Note)]


def closes(actions):
    return any(isinstance(action, Close) for action in actions)


def outcomes(actions):
    return [(each.request.name, each.is_success, each.sentence) for each in actions if isinstance(each, Outcome)]
