# SPDX-License-Identifier: Apache-2.0
"""A bridge and a server of each kind as a campaign has them, and what their vehicles were told last."""

import os
import time

import pytest
import subjects
from processes import TIMEOUT_S, Process
from ros_session import RosSession, wait_until

from drone_bridge.kind import kinds

COMMAND_TIMEOUT_S = subjects.COMMAND_TIMEOUT_S
LEFT_ALONE = subjects.LEFT_ALONE
NEUTRAL_S = COMMAND_TIMEOUT_S + 2.0  # as the campaign has it: the rest is a busy machine
STALL_S = 2.0
DOMAIN = int(os.environ["ROS_DOMAIN_ID"])


def assert_neutral_after(commands, since_s):
    """Assert that a neutral command has come after a moment or comes in time, and is the last word."""
    assert commands.wait(True, since_s, NEUTRAL_S) is not None, "no neutral command"
    wait_until(lambda: not commands.is_moving, "a neutral last word", NEUTRAL_S)


def assert_nothing_moved(commands, since_s):
    """Assert that no command since a moment moved the vehicle."""
    assert [when - since_s for when, is_neutral in commands.since(since_s) if not is_neutral] == []


def each_kind():
    """Return the fixture `kind` for a file whose tests ask each kind."""
    judged = [kind for kind in kinds().values() if kind.commands]

    @pytest.fixture(scope="module", name="kind", params=judged, ids=[kind.name for kind in judged])
    def fixture(request):
        return request.param

    return fixture


def shared(pair_type):
    """Return the fixture `pair` for a file whose tests share a program of each kind, with its vehicle."""

    @pytest.fixture(scope="module", name="pair")
    def fixture(kind, tmp_path_factory):
        pair = pair_type(kind, DOMAIN, tmp_path_factory.mktemp(kind.name))
        try:
            pair.start()
            yield pair
        finally:
            pair.close()

    return fixture


class Tested:
    """A subject whose programs a test can wait for."""

    @property
    def commands(self):
        return self.logs[0]

    def _run(self, role, command):
        return Process(*command)

    def drive(self):
        """Have the vehicle moved, unless it is: not every bridge repeats itself."""
        if not (self.is_driving and self.commands.is_moving):
            started_s = time.monotonic()
            self.command()
            self.works_after(started_s, TIMEOUT_S)
        self.is_driving = True

    def stop(self):
        """Have nobody move it; return when."""
        self.is_driving = False
        return self.let_go()

    def settle(self):
        """Wait until nothing has moved the vehicle for a while.

        A busy machine may be late with a last command, and the relay with reading what was sent.
        """
        quiet_s = 2 * COMMAND_TIMEOUT_S
        is_quiet = lambda: all(neutral for _, neutral in self.commands.since(time.monotonic() - quiet_s))  # noqa: E731
        wait_until(is_quiet, "the end of the commands")

    is_driving = False


class BridgePair(Tested, subjects.BridgeSubject):
    """A bridge and its emulated vehicle."""

    @property
    def relay(self):
        return self.vehicles[0].relay

    @property
    def emulator(self):
        return self.emulators[self.vehicles[0]]

    @property
    def faults(self):
        return self.vehicles[0].faults


class ServerPair(Tested, subjects.ServerSubject):
    """A server, its operator, and a vehicle whose topics it has."""

    def start(self):
        self.session = RosSession()
        super().start()

    def close(self):
        super().close()
        self.session.close()
