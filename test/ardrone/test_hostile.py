# SPDX-License-Identifier: Apache-2.0
"""A hostile drone: session with pilot and limits, topics, and video. Nothing raises, blocks or grows."""

import math
import random
import struct

import pytest
from ardrone_talk import Talk, commands_in
from builtin_interfaces.msg import Time
from limited_vehicle import LimitedVehicle
from repository import CAPTURES

from drone_bridge.ar_drone.drone import AR_DRONE
from drone_bridge.ardrone.codec import COMMANDS, CONTROL, NAVDATA, PaveReader, Pcmd, State
from drone_bridge.ardrone.codec.navdata import StateWord, read_navdata
from drone_bridge.ardrone.codec.video import MAX_PAYLOAD_BYTES
from drone_bridge.ardrone.topics import TOPICS, ArdroneTranslation
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.dead_reckoning import DeadReckonedPose, DeadReckoning
from drone_bridge.motion.limits import LimitParameters
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.session.arbiter import Arrival
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import Send
from drone_bridge.session.tilt_pilot import TiltPilot

WHOLE = read_navdata((CAPTURES / "ardrone" / "node_navdata.bin").read_bytes())
FLOATS = (math.nan, math.inf, -math.inf, 3.4e38, -3.4e38, 1e-45, 0.0)
WORDS = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def datagram(state, sequence, options):
    packet = struct.pack("<IIII", 0x55667788, state, sequence, 0)
    for tag, data in options:
        packet += struct.pack("<HH", tag, len(data) + 4) + data
    return packet + struct.pack("<HHI", 0xFFFF, 8, sum(packet) & 0xFFFFFFFF)


def hostile_option(option, by_chance):
    """Return an option with one word replaced, all of them, or without its end."""
    data = bytearray(option[1])
    values = [struct.pack("<f", each) for each in FLOATS] + [struct.pack("<I", each) for each in WORDS]
    way = by_chance.randrange(4)
    if way == 0:
        del data[by_chance.randrange(len(data) + 1) :]
    elif way == 1:
        data = bytearray(by_chance.choice(values) * (len(data) // 4 + 1))[: len(data)]
    else:
        for _ in range(way):
            at = 4 * by_chance.randrange(max(1, len(data) // 4))
            data[at : at + 4] = by_chance.choice(values)
    return option[0], bytes(data)


class Flown(Talk):
    """Session with the real pilot, limits and messages."""

    def __init__(self):
        super().__init__()
        vehicle = LimitedVehicle(lambda: self.now_s, sinks=False)
        vehicle.arbiter.limits.parameters = LimitParameters(fence_radius=3.0, max_height=2.0, land_on_low_battery=True)
        pilot = TiltPilot(vehicle.arbiter, AR_DRONE, hovers=True)
        pilot.use(AR_DRONE)
        self.session._packets._pilot, self.session.requests._arbiter = pilot, vehicle.arbiter
        self.session.watch._feedback = Feedback(vehicle.observed, vehicle.arbiter.limits, pilot)
        self.arbiter, self.reckoning, self.translation = (
            vehicle.arbiter,
            DeadReckoning(),
            ArdroneTranslation(DroneFrameNames()),
        )
        self.made = 0

    def steer(self):
        self.arbiter.put(Arrival(BodyVelocity(1.0, 0.5, 0.2), self.now_s))

    def take(self, actions):
        for each in super().take(actions):
            if isinstance(each, Send) and each.to == COMMANDS:
                for command in commands_in(each):
                    assert not isinstance(command, Pcmd) or all(
                        -1 <= share <= 1 for share in (command.roll, command.pitch, command.gaz, command.yaw)
                    )
            elif hasattr(each, "message") and hasattr(each.message, "navdata"):
                self.publish(each.message)
        self.actions.clear()
        return actions

    def publish(self, received):
        wires = [received.navdata, self.reckoning.update(received.measured, self.now_s)]
        for row in TOPICS:
            for wire in wires:
                if isinstance(wire, row.of) and row.of in (type(received.navdata), DeadReckonedPose) and row.to_ros:
                    self.made += row.to_ros(self.translation, wire, Time()) is not None


@pytest.mark.parametrize("seed", range(2))
def test_a_hostile_drone_is_flown_within_bounds_and_its_values_become_messages(seed):
    by_chance, talk = random.Random(seed), Flown()
    talk.open()
    for number in range(800):
        talk.now_s += by_chance.choice((0.001, 0.005, 0.07))
        options = [hostile_option(each, by_chance) for each in WHOLE.options if by_chance.random() < 0.8]
        state = State.FLYING if by_chance.random() < 0.7 else by_chance.getrandbits(32)
        sequence = by_chance.choice((number, 0, 1, 0xFFFFFFFF, by_chance.getrandbits(32)))
        talk.steer()
        talk.take(talk.session.receive(datagram(int(state), sequence, options), NAVDATA, talk.now_s))
        if by_chance.random() < 0.05:
            talk.ask(by_chance.choice(("takeoff", "land", "emergency", "reset", "flat_trim")))
        if by_chance.random() < 0.05:
            talk.take(talk.session.receive(by_chance.randbytes(2000) + b"\n\0", CONTROL, talk.now_s))
        if talk.now_s >= talk.session.due_s:
            talk.take(talk.session.tick(talk.now_s))
    assert talk.made > 200


def test_after_a_wrap_of_the_sequence_navdata_go_on():
    talk = Talk().connected()
    state = int(talk.session.watch.navdata.state)
    for sequence in (0xFFFFFFFE, 0xFFFFFFFF, 0, 1, 2):
        talk.take(talk.session.receive(datagram(state, sequence, WHOLE.options), NAVDATA, talk.now_s))
        assert talk.session.watch.navdata.sequence == sequence


def test_a_second_drone_on_the_address_does_not_grow_the_session():
    """Two drones with the same address, whose navdata interleave: that with the higher numbers is followed."""
    talk = Talk().connected()
    for number in range(600):
        talk.now_s += 0.005
        for first in (10_000, 500_000):
            talk.take(talk.session.receive(datagram(0x0F800000, first + number, WHOLE.options), NAVDATA, talk.now_s))
    assert talk.session.watch.navdata.sequence == 500_599
    assert talk.session.requests._waiting == []
    assert talk.session._effects == []


@pytest.mark.parametrize(
    "piece", [b"PaVE", b"\0", b"PaVE" + bytes(60), b"PaVE\2\4" + b"\xff\xff" * 31, bytes(range(256))]
)
def test_video_that_is_garbage_for_ever_is_skipped_within_bounds(piece):
    reader, chunk = PaveReader(), piece * (65536 // len(piece))
    for _ in range(40):
        for frame in reader.receive(chunk):
            assert len(frame.payload) <= MAX_PAYLOAD_BYTES
        assert len(reader._data) <= MAX_PAYLOAD_BYTES + 2 * len(chunk)


@pytest.mark.parametrize("payload", [0, MAX_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES + 1, 0xFFFFFFFF])
@pytest.mark.parametrize("head", [0, 63, 64, 68, 512, 513, 0xFFFF])
def test_heads_with_absurd_sizes_do_not_hide_the_next_frames_for_long(head, payload):
    reader = PaveReader()
    captured = (CAPTURES / "ardrone" / "uavpilot_video.bin").read_bytes()
    bad = struct.pack("<4sBBHI", b"PaVE", 2, 4, head, payload) + bytes(56)
    frames = [frame.number for data in (bad, *[captured] * 30) for frame in reader.receive(data)]
    assert frames.count(17104) >= 15


def test_a_word_of_no_bits_has_a_text():
    assert str(StateWord(0)) == "0"
