# SPDX-License-Identifier: Apache-2.0
"""Bridge and server of each kind, as in measure/, and assertions about their last commands."""

import os
import time
from pathlib import Path

import alone
import pytest
import subjects
from processes import TIMEOUT_S, Process
from ros_session import RosSession, wait_until

from drone_bridge.kind import kinds

COMMAND_TIMEOUT_S = subjects.COMMAND_TIMEOUT_S
QUEUED_COMMANDS = 30
SETTLING_ROUNDS = 10  # each longer than several timeouts of a command
DOMAIN = int(os.environ["ROS_DOMAIN_ID"])


def assert_neutral(commands):
    """Assert that a neutral command is or becomes the last one.

    It may precede the event that it should follow, if the machine stalled the commander.
    """
    wait_until(lambda: not commands.is_moving, "a neutral last word")


def assert_neutral_after(commands, since_s):
    """Assert that a repeated neutral command follows after a time, and is the last one."""
    assert commands.wait(True, since_s, TIMEOUT_S) is not None, "no neutral command"
    assert_neutral(commands)


def assert_nothing_moved(commands, since_s):
    """Assert that no command since a time moved the vehicle."""
    moved_s = [when - since_s for when, is_neutral in commands.since(since_s) if not is_neutral]
    assert not moved_s, f"moved {moved_s} s after it"


def each_kind(*, with_server=False):
    """Return the fixture `kind` for a file whose tests run for each kind, or for each that has a server."""
    judged = [each for kind in kinds().values() for each in subjects.with_roles(kind) if kind.server or not with_server]
    names = [f"{kind.name} {kind.emulated.get('role', '')}".strip() for kind in judged]

    @pytest.fixture(scope="module", name="kind", params=judged, ids=names)
    def fixture(request):
        kind = request.param
        assert kind.commands, f"Nobody can judge what {kind.name} is commanded: its ProtocolKind needs `commands`."
        return kind

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
            alone.clear_state()  # a hold that a failed test has left

    return fixture


class Tested:
    """Subject with programs that a test can wait for."""

    @property
    def commands(self):
        return self.logs[0]

    @property
    def node(self):
        return f"/{self.name}/{self.name}"

    @property
    def status(self):
        """Name of its link's status in diagnostics."""
        return f"{self.node[1:]}: link"

    def _run(self, role, command):
        return Process(*command)

    def drive(self):
        """Command the vehicle to move unless it does: not every bridge repeats. Restart a killed program."""
        if not self.program.is_running:
            self.start_program()
        if not (self.is_driving and self.commands.is_moving):
            started_s = time.monotonic()
            self.command()
            self.works_after(started_s, TIMEOUT_S)
        self.is_driving = True

    def stop(self):
        """Stop commanding it. Return the time."""
        self.is_driving = False
        return self.let_go()

    @property
    def child(self):
        """Pid of the program's child that writes its log and sends its last words."""
        return wait_until(self._child, f"a log writer of {self.name}")

    def _child(self):
        for path in Path(f"/proc/{self.program.pid}/task").glob("*/children"):
            for pid in path.read_text().split():  # the kernel may leave some out while others start or end
                if "log_writer" in Path(f"/proc/{pid}/cmdline").read_text():
                    return int(pid)
        return None

    def watch(self, reports=2):
        """Wait for a number of further reports, one per second, and until all sent data are read."""
        counts = self._commander.reports
        enough = counts[self.status] + reports
        wait_until(lambda: counts[self.status] >= enough, f"{reports} reports of {self.status}")
        self.catch_up()

    def wait_until_connected(self):
        """Wait until the program reports its connection. Datagrams have none."""
        states = self._commander.states
        if self.kind.is_stream:
            wait_until(lambda: states.get(self.status) == "connected", "a connection")

    def settle(self):
        """Wait until no command has moved the vehicle for longer than its timeout, in the program's time."""
        for _ in range(SETTLING_ROUNDS):
            since_s = time.monotonic()
            self.watch()
            if all(is_neutral for _, is_neutral in self.commands.since(since_s)):
                return
        raise AssertionError("the commands go on, although nobody gives them any more")

    def queue_commands(self):
        """Send commands that queue up for a stopped program."""
        enough = self._commander.published + QUEUED_COMMANDS
        wait_until(lambda: self._commander.published >= enough, "commands to be sent")

    def catch_up(self):
        """Wait until all data sent to the vehicle so far are read."""

    is_driving = False


class BridgePair(Tested, subjects.BridgeSubject):
    """Bridge and its emulated vehicle."""

    @property
    def relay(self):
        return self.vehicles[0].relay

    @property
    def emulator(self):
        return self.emulators[self.vehicles[0]]

    @property
    def faults(self):
        return self.vehicles[0].faults

    def catch_up(self):
        self.relay.catch_up()


class ServerPair(Tested, subjects.ServerSubject):
    """Server, its operator, and a vehicle with its topics. Its commands have the times of their publication."""

    def start(self):
        self.session = RosSession()
        super().start()

    def close(self):
        super().close()
        self.session.close()
