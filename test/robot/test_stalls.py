# SPDX-License-Identifier: Apache-2.0
"""DriverSession with an adapter that stalls and handles one packet per read, with a fake clock."""

import random

import pytest

from drone_bridge.robot import codec
from drone_bridge.robot.codec import STOPPED, Speeds
from drone_bridge.robot.session.connected_driver import ConnectedDriver, DriverParameters
from drone_bridge.robot.session.desired import DesiredSubsystems
from drone_bridge.robot.session.keep_alives import KEEP_ALIVE_PERIOD_S
from drone_bridge.robot.session.packet_sender import PacketSender
from drone_bridge.robot.vehicle.device.dialects import Protocol1Control, RobotdControl
from drone_bridge.robot.vehicle.device.drivers import Instant
from drone_bridge.robot.vehicle.device.served_driver import ServedDriver
from drone_bridge.robot.vehicle.device.vehicle import TRACKS
from drone_bridge.robot.vehicle.emulator import SimulatedRobot, TrackedRobot

STEP_S = 0.001
COMMANDS_PER_S = 50
READINGS_S = 0.25
WALL_S = 1_800_000_000
STALL_S = 2.0  # when it begins
#: Limit of a stop without a stall, and from the end of the adapter's stall. The protocol's own driver needs 1.8 s.
SOON_S = 0.25
AFTER_A_STALL_S = 1.0


class Scene:
    """Session with random commands, an adapter, and a clock. Data that arrive during a stall are read as one piece.

    `joins_pieces`: and so are those that arrive together later.
    """

    def __init__(self, control=Protocol1Control, reads_one_packet=True, stalls=(), delay_s=0.0, joins_pieces=False):
        self.now_s = 0.0
        self.vehicle = TrackedRobot()
        self.control = control(SimulatedRobot(self.vehicle, [TRACKS]), lambda sentence: None)
        self.stalls, self.joins_pieces = stalls, joins_pieces
        self.sent = []
        self.delay_s = delay_s
        self.on_their_way = []  # to the adapter: time of arrival, and data
        self.answers = []  # to the driver, likewise
        self.out = []
        self.sender = PacketSender(None, self.out)
        self.wire = self.sender.connection
        parameters = DriverParameters(max_update_rate=COMMANDS_PER_S, link_timeout=10.0)
        self.session = ConnectedDriver("me", DesiredSubsystems(["first"], ["none"]), parameters, [], now_s=0.0)
        self.served = ServedDriver(
            self.control,
            "driver",
            lambda data: self.answers.append((self.now_s + self.delay_s, data)),
            self._instant,
            reads_one_packet=reads_one_packet,
        )
        self._random = random.Random(1)
        self._command, self._has_stalled = STOPPED, False

    def _instant(self):
        return Instant(self.now_s, round(1000 * (WALL_S + self.now_s)))

    def _send(self, packet, now_s, *, is_slow):
        self.sent.append((now_s, packet))
        self.sender.send(packet, now_s, is_slow=is_slow)

    def run(self, until_s, is_driving=True, after_step=lambda: None):
        """Advance the clock, with a new command every 20 ms, or with a stop."""
        while self.now_s < until_s:
            self.now_s = round(self.now_s + STEP_S, 6)
            self._read_answers()
            self.session.tick(self.now_s, self._instant().wall_ms)
            if not is_driving:
                self._command = STOPPED
            elif _is_multiple(self.now_s, 1 / COMMANDS_PER_S):
                self._command = Speeds(self._random.randint(1, 2048), self._random.randint(1, 2048))
            self.session.drive(self._command, self.now_s)
            self.session.flush(self._send, self.now_s)
            self.sender.tick(self.now_s)
            self.on_their_way += [(self.now_s + self.delay_s, each.data) for each in self.out]
            self.out.clear()
            if self.stands_still:
                self._has_stalled = True
            else:
                self._let_adapter_work()
            after_step()

    @property
    def speeds(self):
        """Speeds of the motors."""
        return Speeds(self.vehicle.left.setting, self.vehicle.right.setting)

    @property
    def stands_still(self):
        return any(begin_s <= self.now_s < begin_s + lasts_s for begin_s, lasts_s in self.stalls)

    def _read_answers(self):
        while self.answers and self.answers[0][0] <= self.now_s:
            self.wire.receive_data(self.answers.pop(0)[1])
        while (packet := self.wire.next_event()) is not codec.NEED_DATA:
            self.session.handle(packet, self.now_s)

    def _let_adapter_work(self):
        if _is_multiple(self.now_s, READINGS_S):
            self.control.send_readings([codec.SensorReading(0, 9_000)])
        arrived = [data for at_s, data in self.on_their_way if at_s <= self.now_s]
        if arrived:
            del self.on_their_way[: len(arrived)]
            for read in [b"".join(arrived)] if self._has_stalled or self.joins_pieces else arrived:
                self.served.receive_data(read)
                while self.served.handle_next():
                    pass
            self._has_stalled = False

    def until(self, condition, at_most_s=60.0):
        """Command a stop until a condition holds. Return the time."""
        ends_s = self.now_s + at_most_s
        while not condition() and self.now_s < ends_s:
            self.run(self.now_s + STEP_S, is_driving=False)
        return self.now_s

    def stops_s(self):
        """Command a stop. Return the time from which the motors stay stopped."""
        moved_s = [self.now_s]
        after_step = lambda: moved_s.append(self.now_s) if self.speeds != STOPPED else None  # noqa: E731
        self.run(self.now_s + 4.0, is_driving=False, after_step=after_step)
        return moved_s[-1]


def _is_multiple(time_s, period_s):
    return round(time_s / STEP_S) % round(period_s / STEP_S) == 0


@pytest.mark.parametrize("joins_pieces", [False, True])
@pytest.mark.parametrize("stop_s", [0.05, 0.2, 3.0])
@pytest.mark.parametrize("stall_s", [0.2, 0.4, 1.0, 2.0])
def test_a_stop_gets_through_after_a_stall_of_the_adapter(stall_s, stop_s, joins_pieces):
    """Each piece that arrives later lets it handle one more of the accumulated packets."""
    scene = Scene(stalls=[(STALL_S, stall_s)], joins_pieces=joins_pieces)
    scene.run(STALL_S + stop_s)
    stopped_s = max(scene.now_s, STALL_S + stall_s)
    assert scene.stops_s() - stopped_s < AFTER_A_STALL_S
    scene.run(scene.now_s + 1.0)
    assert scene.speeds != STOPPED, "it is driven again"
    stopped_s = scene.now_s
    assert scene.stops_s() - stopped_s < AFTER_A_STALL_S


@pytest.mark.parametrize("reads_one_packet", [True, False])
def test_without_a_stall_a_stop_is_immediate(reads_one_packet):
    scene = Scene(reads_one_packet=reads_one_packet, delay_s=0.02)
    scene.run(10.0)
    assert scene.stops_s() - 10.0 < SOON_S


@pytest.mark.parametrize("delay_s", [0.0, 0.2])
def test_a_stop_counts_only_once_it_is_in_force(delay_s):
    scene = Scene(reads_one_packet=False, delay_s=delay_s)
    scene.run(STALL_S)

    def claim():
        assert scene.session.moving != STOPPED or scene.speeds == STOPPED

    scene.run(STALL_S + 2 * delay_s + 0.05, is_driving=False, after_step=claim)
    assert scene.session.moving == STOPPED


def test_a_stalled_robotd_is_neither_flooded_nor_disconnected():
    """A stop is sent once, with no more keep-alives than the protocol's own driver sends."""
    scene = Scene(control=RobotdControl, reads_one_packet=False, stalls=[(STALL_S, 9.0)])
    scene.run(STALL_S + 0.2)
    scene.run(STALL_S + 9.0, is_driving=False)
    lately = [packet for at_s, packet in scene.sent if at_s > STALL_S + 0.2]
    assert [packet for packet in lately if not isinstance(packet, codec.KeepAlive)] == [codec.SkidSteerUpdate(0, 0, 0)]
    assert len(lately) <= 2 + 9.0 / KEEP_ALIVE_PERIOD_S
    scene.stops_s()
    scene.run(scene.now_s + 2.0)
    assert scene.speeds != STOPPED
