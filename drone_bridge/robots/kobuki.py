# SPDX-License-Identifier: Apache-2.0
"""Kobuki, the base of a TurtleBot 2, over its serial line of 115200 baud.

Packets both ways: AA 55, number of bytes of the payload, parts of (number, size, data), and a checksum by XOR. It
reports 50 times per second. It is driven by a signed speed of its outer wheel, mm/s, and a radius to the left, mm: 0 is
straight ahead, 1 turns in place. No document states a watchdog. Docking is up to the computer, by `dock_ir`.
"""

import math
import struct
from collections.abc import Iterator
from functools import partial, reduce
from operator import xor

from drone_bridge.robot_class import BodyVelocity, Packets, Refusal, Request, Robot, Serial, Step, Telemetry, Wheels

DRIVE, SOUND, ASK, OUTPUTS, ASK_GAINS, CORE, DOCK_IR, INERTIA, FIRMWARE = 1, 4, 9, 12, 14, 1, 3, 4, 11  # parts
#: Time, ms; bumpers, dropped wheels, cliffs; left and right encoder; buttons, charger, battery in 0.1 V.
CORE_DATA = struct.Struct("<HBBBHHxxBBBx")
#: By the maker's documents and driver.
AXLE_M, M_PER_COUNT, TOP_SPEED, EMPTY_V, FULL_V = 0.23, 1 / 11724.41658, 0.7, 13.2, 16.5
HARMLESS = 3, SOUND, 13  # a tone, a sound, and gains of its speed controller
EVENTS = "bumper", "wheel_drop", "cliff", "buttons"
COLOURS = "dark", "red", "green", "orange"
SOUNDS = "on", "off", "recharge", "button", "error", "cleaning_start", "cleaning_end"
#: What the robot's end reports besides: cliff sensors, currents, two gyro samples, and inputs.
REST = (5, struct.pack("<3H", 1500, 1500, 1500)), (6, bytes(2)), (13, b"\0\6" + bytes(12)), (16, bytes(16))
GAINS = 21, struct.pack("<B3I", 0, 100_000, 100, 2000)  # of its speed controller, by default, in thousandths
#: Versions of hardware and firmware, and the robot's number, by the bit that asks for each.
VERSIONS = {1: (10, b"\x04\x00\x01\x00"), 2: (FIRMWARE, b"\x00\x02\x01\x00"), 8: (19, bytes(12))}


def packed(*parts: tuple[int, bytes]) -> bytes:
    payload = b"".join(bytes([number, len(data)]) + data for number, data in parts)
    return b"\xaa\x55" + bytes([len(payload)]) + payload + bytes([reduce(xor, payload, len(payload))])


def parts_of(packet: bytes) -> dict[int, bytes]:
    parts, at = {}, 3
    while at < len(packet) - 1:
        end = at + 2 + packet[at + 1]
        parts[packet[at]], at = packet[at + 2 : end], end
    return parts


def set_led(end: "Kobuki", shift: int, colour: int) -> bytes:
    """Return the packet of the word of outputs with another colour of one LED."""
    end.outputs = end.outputs & ~(3 << shift) | colour << shift
    return packed((OUTPUTS, struct.pack("<H", end.outputs)))


#: As kobuki_bumper2pc places them: beside and in front of the base, from bit 0.
BUMPERS = {"right": (0.086, -0.235, 0.04), "center": (0.25, 0.0, 0.04), "left": (0.086, 0.235, 0.04)}


class Kobuki(Robot):
    name, summary = "kobuki", "a Kobuki base"
    control = Serial(115200, Packets(b"\xaa\x55", length_at=2, extra=1, checksum=lambda raw: not reduce(xor, raw[2:])))
    max_speeds, robot_stops_after_s = {"x": TOP_SPEED, "yaw": math.radians(110)}, None  # its gyro is exact up to there
    bumpers = BUMPERS
    report_rate, battery_v, keeps = 50.0, (EMPTY_V, FULL_V), ("wheels", "outputs")
    topics = ("odom", "battery_state", "imu/data", "bumper/points", "joint_states: sensor_msgs/JointState",
              "dock_ir: std_msgs/UInt8MultiArray", *(f"{name}: std_msgs/UInt8" for name in EVENTS))  # fmt: skip
    requests = {f"sound_{name}": Request(packed((SOUND, bytes([n]))), moves=False) for n, name in enumerate(SOUNDS)} | {
        f"led{led}_{name}": Request(partial(set_led, shift=6 + 2 * led, colour=n), moves=False)
        for led in (1, 2)
        for n, name in enumerate(COLOURS)
    }

    def __init__(self) -> None:
        self.wheels, self.ms = Wheels(AXLE_M, M_PER_COUNT, max_speed=TOP_SPEED, radius_m=0.035), -1
        self.wheels.joints = "wheel_left_joint", "wheel_right_joint"  # of kobuki_description
        self.outputs = 0xF0  # supplies of other devices: on

    def handshake(self) -> Iterator[Step]:
        yield packed((ASK, b"\x0b\x00")), lambda packet: parts_of(packet).get(FIRMWARE, b"")[2:3] == b"\x01"

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        limited = self.wheels.velocity(*self.wheels.sides(velocity))
        forward, turn = limited.forward, limited.turn
        is_arc = abs(forward) < 32.767 * abs(turn)
        radius = round(1000 * forward / turn) if is_arc else 0
        speed = (radius + math.copysign(500 * AXLE_M, radius)) * turn if is_arc else 1000 * forward
        if is_arc and abs(radius) <= 1:
            radius, speed = 1, 500 * AXLE_M * turn
        return packed((DRIVE, struct.pack("<hh", round(speed), radius)))

    def decode_report(self, packet: bytes) -> Telemetry | None:
        from std_msgs.msg import UInt8, UInt8MultiArray  # only the bridge has ROS

        if CORE not in (parts := parts_of(packet)):
            return None
        ms, *stops, left, right, buttons, charger, tenths = CORE_DATA.unpack(parts[CORE])
        elapsed_s, self.ms = ((ms - self.ms) % 0x10000 / 1000 if self.ms >= 0 else None), ms
        self.wheels.is_blocked = any(stops)  # a bumper, a dropped wheel, a cliff: none stops it by itself
        events = {name: UInt8(data=each) for name, each in zip(EVENTS, (*stops, buttons), strict=True)}
        charge = max(0.0, min(1.0, 0.05 + 0.95 * (tenths / 10 - EMPTY_V) / (FULL_V - EMPTY_V)))
        heading, rate = (math.radians(each / 100) for each in struct.unpack("<hh", parts[INERTIA][:4]))
        pose = self.wheels.counted(left, right, elapsed_s)
        extra = {"joint_states": self.wheels.joint_states(), "dock_ir": UInt8MultiArray(data=parts[DOCK_IR]), **events}
        return Telemetry(
            *pose, tenths / 10, charge, is_charging=charger & 15 > 0,
            imu_yaw=heading, rates=(0.0, 0.0, rate), extra=extra,
            contacts=tuple(place for bit, place in enumerate(BUMPERS.values()) if (stops[0] | stops[2]) >> bit & 1),
        )  # fmt: skip

    # The robot's end.

    def decode_command(self, packet: bytes) -> tuple[BodyVelocity | Request | Refusal | bytes | None, ...]:
        return tuple(each for part in parts_of(packet).items() for each in self.meanings(*part))

    def meanings(self, number: int, data: bytes) -> tuple[BodyVelocity | Request | Refusal | bytes | None, ...]:
        if number == ASK:
            return (packed(*(part for bit, part in VERSIONS.items() if data[0] & bit)),)
        if number == OUTPUTS:
            return tuple(self.all_requests[f"led{led}_{COLOURS[data[1] >> 2 * led - 2 & 3]}"] for led in (1, 2))
        if number != DRIVE:
            refused = None if number in HARMLESS else Refusal(f"part {number}")
            return (packed(GAINS) if number == ASK_GAINS else refused,)
        speed, radius = struct.unpack("<hh", data)
        if abs(radius) <= 1:
            return (BodyVelocity(turn=radius * speed / 500 / AXLE_M) if radius else BodyVelocity(speed / 1000),)
        turn = speed / (radius + math.copysign(500 * AXLE_M, radius))
        return (BodyVelocity(radius * turn / 1000, turn=turn),)

    def encode_report(self, t: Telemetry) -> bytes:
        ms, tenths = round(1000 * (t.time_s or 0.0)) % 0x10000, min(255, round(10 * (t.voltage or 0.0)))
        angles = (t.yaw or 0.0) if t.imu_yaw is None else t.imu_yaw, t.rates[2] if t.rates else 0.0
        inertia = struct.pack("<hh3x", *(round(100 * math.degrees(each)) for each in angles))
        touched = self.touched(t.contacts)
        bumpers = sum(1 << bit for bit, name in enumerate(BUMPERS) if name in touched)
        counts, charger = self.wheels.counts(t.position, t.yaw), 6 * bool(t.is_charging)
        core = CORE_DATA.pack(ms, bumpers, 0, 0, *counts, 0, charger, tenths)
        return packed((CORE, core), (DOCK_IR, bytes(3)), (INERTIA, inertia), *REST)
