# SPDX-License-Identifier: Apache-2.0
"""A bridge and a server of each kind, made from the kind itself, and what their vehicles were told last.

A bridge has its emulated vehicle behind the campaign's relay, which reads every command. A server has its scripted
operator, an emulated vehicle behind a bridge that obeys others, and a subscriber of cmd_vel.
"""

import contextlib
import os
import sys
import time
from pathlib import Path

import ports
import pytest
from geometry_msgs.msg import Twist
from processes import TIMEOUT_S, Process, executable
from ros_session import RosSession, wait_until

from drone_bridge.kind import Side, kinds

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "benchmark"))
import pairs
from commander import Commander
from relay import CUT, FLOOD, GARBAGE, HALF_OPEN, CommandLog

__all__ = ["CUT", "FLOOD", "GARBAGE", "HALF_OPEN"]


def free_port(*, is_stream=True):
    """Return one that nobody else draws, instead of any that is free."""
    return ports.free_port()


pairs.free_port = free_port

NEUTRAL_S = pairs.COMMAND_TIMEOUT_S + 2.0  # as the campaign has it: the rest is a busy machine
STALL_S = 2.0
PLAN = "600s forward 0.3 turn 0.3"
COMMANDS = ("cmd_vel", "cmd_vel_stamped", "cmd_rates", "cmd_axes")
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


def bridge_pair():
    """Return the fixture `pair` for a file whose tests share a bridge of each kind, with its vehicle."""

    @pytest.fixture(scope="module", name="pair")
    def fixture(kind, tmp_path_factory):
        pair = BridgePair(kind, tmp_path_factory.mktemp(kind.name))
        try:
            pair.start_emulator()
            pair.start_bridge()
            yield pair
        finally:
            pair.close()

    return fixture


class BridgePair(pairs.Pair):
    """A bridge, its emulated vehicle, and a commander that moves it while `is_commanded`."""

    def __init__(self, kind, scratch):
        super().__init__(kind, kind.name, DOMAIN, scratch)
        self.is_commanded = False
        self.is_left_alone = kind.name == "simulator"  # as others may steer it, until it is commanded
        self._commander = Commander([self], DOMAIN)

    def _start(self, role, command):
        return Process(*command)

    def drive(self):
        """Command the vehicle until that moves it, unless it is being moved: not every bridge repeats itself."""
        if self.is_commanded and self.commands.is_moving:
            return
        started_s = time.monotonic()
        self.is_commanded = True
        assert self.is_driven(started_s, TIMEOUT_S), self.bridge.output

    def stop(self):
        """Stop commanding; return when."""
        self.is_commanded = False
        return time.monotonic()

    def close(self):
        super().close()
        self._commander.close()


class ServerPair:
    """A server, its operator, and a vehicle whose topics it has."""

    def __init__(self, kind, scratch):
        self.kind = kind
        self.node = f"/{kind.name}/{kind.name}_server"
        self.commands = CommandLog()
        self.session = RosSession()
        self.server = self.operator = None
        self._vehicle = pairs.Pair.__new__(BridgePair)
        pairs.Pair.__init__(self._vehicle, kind, kind.name, DOMAIN, scratch)
        own = {each.parameter: ports.free_port() for each in kind.ports}
        self.port = own[kind.ports[0].parameter]
        self.parameters = {"host": "127.0.0.1", "command_timeout": pairs.COMMAND_TIMEOUT_S, **own}
        self.is_called = kind.ports[0].side is Side.VEHICLE  # by its operator
        self.session.node.create_subscription(Twist, f"/{kind.name}/cmd_vel", self._note, 10)
        self._vehicle.start_emulator()
        self._vehicle.start_bridge([part for name in COMMANDS for part in ("-r", f"{name}:=of_others/{name}")])

    def _note(self, twist):
        axes = (getattr(part, name) for part in (twist.linear, twist.angular) for name in ("x", "y", "z"))
        self.commands.note(not any(axes))

    def start_server(self, **parameters):
        self.server = Process.node(
            f"{self.kind.name}_server", remap=[f"__ns:=/{self.kind.name}"], **{**self.parameters, **parameters}
        )

    def start_operator(self):
        operator = self.kind.operator
        options = {**operator.beside(self.kind.server, self.parameters), **operator.at_once, "plan": PLAN}
        self.operator = Process(executable("drone-bridge"), "operate", operator.name, *operator.words(options))

    def drive(self):
        """Have the operator move the vehicle."""
        since_s = time.monotonic()

        def is_driven():
            if not (self.operator and self.operator.is_running):
                self.end(self.operator)
                self.start_operator()
            return self.commands.wait(False, since_s, 0.5)

        wait_until(is_driven, f"motion; {self.server.output}", TIMEOUT_S)

    @staticmethod
    def end(process):
        if process:
            process.end()

    def kill_operator(self):
        """Kill the operator; return when."""
        self.operator.send(9)
        self.operator.wait()
        return time.monotonic()

    def close(self):
        with contextlib.ExitStack() as stack:
            stack.callback(self.session.close)
            stack.callback(self._vehicle.relay.close)
            for process in (self._vehicle.emulator, self._vehicle.bridge, self.server, self.operator):
                stack.callback(self.end, process)
