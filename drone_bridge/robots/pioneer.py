# SPDX-License-Identifier: Apache-2.0
"""Pioneer 3, by ARCOS packets over TCP or a serial line, as used by the robot, serial servers and AMRISim.

A packet is FA FB, the number of following bytes, a type, a body, and a checksum. SYNC0 to SYNC2 are echoed. From then
on, the same types are PULSE, OPEN and CLOSE. After OPEN, the robot sends its state ten times per second (SIP). It stops
by itself on a stall, which includes its bumpers. Maxima and sizes are those of the maker's parameter files. Programs
also drive by the speeds of its wheels, to a heading, and by a way, and keep it driving by PULSE. Without power for its
motors (ENABLE 0), it refuses to. Its end refuses all other commands.
"""

import math
import struct
from collections.abc import Iterator
from functools import partial

from drone_bridge.robot_class import BodyVelocity, Meaning, Move, Packets, Refusal, Robot, Step, Tcp, Telemetry

PULSE, OPEN, ENABLE, SONAR, SIP, MOVING_SIP = 0, 1, 4, 28, 0x32, 0x33
#: Motions, by velocities, headings and a way, their limits, and what ends them.
VEL, RVEL, ROTATE, VEL2, HEAD, DHEAD, DCHEAD, MOVE, SETV, SETRV = 11, 21, 9, 32, 12, 13, 22, 8, 6, 10
STOPS = CLOSE, STOP, E_STOP, RESET, MAINTENANCE = 2, 29, 55, 253, 255
#: Names of commands with a number: of those that are executed, and others that move or disable.
EXECUTED = {ENABLE: "ENABLE", SONAR: "SONAR", VEL: "VEL", RVEL: "RVEL", ROTATE: "ROTATE", VEL2: "VEL2", HEAD: "HEAD",
            DHEAD: "DHEAD", DCHEAD: "DCHEAD", MOVE: "MOVE", SETV: "SETV", SETRV: "SETRV"}  # fmt: skip
REFUSED = {5: "SETA", 7: "SETO", 20: "SETRVDIR", 23: "SETRA", 33: "GRIPPER", 44: "BUMPSTALL", 47: "JOYDRIVE",
           68: "CHARGE", 110: "LATVEL"}  # fmt: skip
#: Speeds of a way and of a turn, by default, mm/s and degrees/s.
SPEEDS = 750, 100
STATE = struct.Struct("<HHhhhBHhHBB")
#: Behind it: gripper, analog port and value, inputs, outputs, 0.1 V, charger, 0.1 degrees/s.
REST = struct.Struct("<5BHBh")
RAD_PER_UNIT = math.tau / 4096


def checksum(content: bytes) -> bytes:
    total: int = sum(struct.unpack(f">{len(content) // 2}H", content[: len(content) // 2 * 2])) & 0xFFFF
    return (total ^ content[-1] if len(content) % 2 else total).to_bytes(2, "big")


def is_valid(data: bytes) -> bool:
    return len(data) > 5 and data[-2:] == checksum(data[3:-2])


def packet(kind: int, body: bytes = b"") -> bytes:
    content = bytes([kind]) + body
    return struct.pack(">HB", 0xFAFB, len(content) + 2) + content + checksum(content)


def command(kind: int, value: int) -> bytes:
    return packet(kind, struct.pack("<BH", 0x3B if value >= 0 else 0x1B, abs(value)))


def is_of_kind(kind: int, heard: bytes) -> bool:
    return heard[3] == kind


class Pioneer(Robot):
    name, summary = "pioneer", "a Pioneer 3 robot"
    control = Tcp(8101, Packets(b"\xfa\xfb", length_at=2, checksum=is_valid), baud=9600)
    max_speeds, robot_stops_after_s, keeps = {"x": 2.2, "yaw": 8.7}, 2.0, ("x", "y")
    any_packet_counts = True
    topics = "odom", "battery_state", "motors: std_msgs/Bool", "stalled: std_msgs/Bool"

    def __init__(self) -> None:
        self.x = self.y = 0
        self.is_open = self.has_reported = False
        self.m_per_unit, self.half_axle_m = 0.000485, 0.18  # of a p3dx
        # At the robot's end: its motors, as by its button, its speeds, its heading, degrees, and the one to keep.
        self.mm_s, self.deg_s = 0.0, 0.0
        self.is_on, self.yaw, self.synced = True, 0.0, 0
        self.heading: float | None = None
        self.limits = dict[int, int]()  # mm/s and degrees/s

    def handshake(self) -> Iterator[Step]:
        yield packet(0), self.is_awake
        if self.is_open:
            yield packet(CLOSE) + packet(0), partial(is_of_kind, 0)
        yield packet(1), partial(is_of_kind, 1)
        yield packet(2), self.is_named
        yield packet(OPEN) + self.encode_command(BodyVelocity()) + command(ENABLE, 1)

    def is_awake(self, heard: bytes) -> bool:
        self.is_open = heard[3] in (SIP, MOVING_SIP)  # by an earlier client that was killed
        return self.is_open or heard[3] == 0

    def is_named(self, heard: bytes) -> bool:
        model = heard[4:-2].rstrip(b"\0").rpartition(b"\0")[2].lower()
        is_at = model.startswith(b"p3at")
        self.m_per_unit = 0.001 if b"-sh" in model else 0.000465 if is_at else 0.000485
        self.half_axle_m = 0.294 if is_at else 0.18
        return heard[3] == 2

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        return command(VEL, round(1000 * velocity.forward)) + command(RVEL, round(math.degrees(velocity.turn)))

    def encode_goodbye(self) -> bytes:
        return packet(CLOSE)

    def decode_report(self, data: bytes) -> Telemetry | None:
        if data[3] not in (SIP, MOVING_SIP):
            return None
        x, y, theta, left, right, battery, stalls, _, flags, _, _ = STATE.unpack_from(data, 4)
        if not self.has_reported and not (x or y or theta):  # switched on anew
            self.x = self.y = 0
        self.has_reported = True
        self.x += (x - self.x + 0x4000) % 0x8000 - 0x4000  # 15 bits on the wire, which wrap
        self.y += (y - self.y + 0x4000) % 0x8000 - 0x4000
        speeds = BodyVelocity((left + right) / 2000, turn=(right - left) / 2000 / self.half_axle_m)
        position = self.m_per_unit * self.x, self.m_per_unit * self.y, 0.0
        motors_off = "" if flags & 1 else "its motors are off, by its button MOTORS or a stall"
        extra = self.messages(motors=flags & 1, stalled=stalls & 0x101)
        return Telemetry(position, theta * RAD_PER_UNIT, speeds, battery / 10, extra=extra, disobeys=motors_off)

    def messages(self, **flags: int) -> dict[str, object]:
        from std_msgs.msg import Bool  # only the bridge has ROS

        return {name: Bool(data=bool(flag)) for name, flag in flags.items()}

    # The robot's end.

    def decode_command(self, data: bytes) -> Meaning | tuple[Meaning, ...]:
        kind = data[3]
        if self.synced < 3 and kind in (0, self.synced):  # in sequence; others may close an earlier connection
            self.synced = kind + 1
            return packet(kind, b"pioneer\0Pioneer\0p3dx\0" if kind == 2 else b"")
        self.is_open |= kind == OPEN
        if kind in (CLOSE, RESET, MAINTENANCE):
            self.is_open, self.synced = False, 0
        if kind in EXECUTED:
            sign, value = struct.unpack_from("<BH", data, 4)
            return self.executed(kind, {0x3B: value, 0x1B: -value}[sign])
        known = self.stopped() if kind in STOPS else None
        return known if known or kind in (PULSE, OPEN) else Refusal(REFUSED.get(kind, f"number {kind}"))

    def executed(self, kind: int, value: int) -> Meaning | tuple[Meaning, ...]:
        if kind in (SETV, SETRV, SONAR):  # programs wait for the flag of its sonars, which have no readings
            self.limits[kind] = abs(value)
            return None
        if kind == ENABLE:
            self.is_on = value > 0
            return None if self.is_on else self.stopped()
        return (
            self.moved(kind, value) if self.is_on else (self.stopped(), Refusal(EXECUTED[kind], "its motors are off"))
        )

    def stopped(self) -> BodyVelocity:
        self.mm_s, self.deg_s, self.heading = 0, 0, None
        return BodyVelocity()

    def moved(self, kind: int, value: int) -> BodyVelocity | Move:
        mm_s, deg_s = self.limits.get(SETV, SPEEDS[0]), self.limits.get(SETRV, SPEEDS[1])
        if kind == VEL:
            self.mm_s = value
        elif kind in (RVEL, ROTATE):
            self.deg_s, self.heading = value, None
        elif kind == VEL2:  # of the left and the right wheel
            left, right = (20 * each for each in struct.unpack("bb", (value & 0xFFFF).to_bytes(2, "big")))
            self.mm_s, self.heading = (left + right) / 2, None
            self.deg_s = math.degrees((right - left) / 2000 / self.half_axle_m)
        elif kind == MOVE:
            self.stopped()
            return Move(value / 1000, speed=max(1, mm_s) / 1000, is_setpoint=True)
        else:
            before = {HEAD: 0.0, DHEAD: self.yaw}.get(kind, self.yaw if self.heading is None else self.heading)
            self.deg_s, self.heading = 0, before + value
        ahead = self.within(SETV, self.mm_s) / 1000
        if self.heading is None:
            return BodyVelocity(ahead, turn=math.radians(self.within(SETRV, self.deg_s)))
        turn_speed = math.radians(max(1, deg_s))
        return Move(heading=math.radians(self.heading), turn_speed=turn_speed, cruise=ahead, is_setpoint=True)

    def within(self, kind: int, speed: float) -> float:
        most = self.limits.get(kind, abs(speed))
        return max(-most, min(most, speed))

    def encode_report(self, telemetry: Telemetry) -> bytes | None:
        self.yaw = math.degrees(telemetry.yaw or 0.0)
        if not self.is_open or not telemetry.position:
            return None
        x, y = (round(each / self.m_per_unit) % 0x8000 for each in telemetry.position[:2])
        speeds, battery = telemetry.velocity or BodyVelocity(), round(10 * (telemetry.voltage or 0))
        sides = (round(1000 * (speeds.forward + sign * speeds.turn * self.half_axle_m)) for sign in (-1, 1))
        yaw = round((telemetry.yaw or 0.0) / RAD_PER_UNIT)
        flags = self.is_on + 2 * (self.limits.get(SONAR, 0) > 0)
        rest = REST.pack(0, 0, 0, 0, 0, battery, 0, round(math.degrees(10 * speeds.turn)))
        return packet(SIP, STATE.pack(x, y, yaw, *sides, min(255, battery), 0, 0, flags, 0, 0) + rest)
