# SPDX-License-Identifier: Apache-2.0
"""iRobot Create 2 or Roomba 600 by its Open Interface, over a serial line of 115200 baud.

Commands are opcodes with data. The robot streams frames of sensor packets 66 times per second: 19, the number of bytes,
packets with their numbers, and a checksum. In passive mode, in which it docks and cleans, it ignores velocities, and so
it does on its charger. Opcode 131 takes it back to safe mode. It has no watchdog: without commands, it drives on.
"""

import math
import struct
from collections.abc import Iterator

from drone_bridge.robot_class import BodyVelocity, Packets, Request, Robot, Serial, Step, Telemetry

START, SAFE, FULL, CLEAN, DOCK, DRIVE, STREAM, STOP = 128, 131, 132, 135, 143, 145, 148, 173
SIZES = {
    7: 1,
    START: 1,
    SAFE: 1,
    FULL: 1,
    133: 1,
    134: 1,
    CLEAN: 1,
    136: 1,
    137: 5,
    138: 2,
    139: 4,
    141: 2,
    142: 2,
    DOCK: 1,
}
SIZES |= {144: 4, DRIVE: 5, 146: 5, 150: 2, 168: 4, STOP: 1}  # bytes of each command
#: Bumpers, voltage, charge, capacity, mode, requested velocities, and counts of the encoders, right wheel first.
SENSORS = struct.Struct(">xB xH xH xH xB xh xh xH xH")
NUMBERS = 7, 22, 25, 26, 35, 41, 42, 44, 43
M_PER_COUNT, AXLE_M, TOP_SPEED = math.pi * 0.072 / 508.8, 0.235, 0.5
MODES = {0: "off", 1: "passive", 2: "safe", 3: "full"}


def opcodes(data: bytes) -> int:
    if data[0] in (STREAM, 149):
        return 2 + data[1] if len(data) > 1 else 0
    return SIZES.get(data[0], -1)


def is_valid(frame: bytes) -> bool:
    return sum(frame) & 255 == 0


def is_safe(frame: bytes) -> bool:
    return len(frame) == SENSORS.size + 3 and MODES[SENSORS.unpack(frame[2:-1])[4]] in ("safe", "full")


class Create2(Robot):
    name, summary = "create2", "an iRobot Create 2"
    control = Serial(115200, Packets(b"\x13", length_at=1, extra=1, checksum=is_valid), commands=opcodes)
    max_speeds, robot_stops_after_s = {"x": TOP_SPEED, "yaw": 2 * TOP_SPEED / AXLE_M}, None
    topics = "odom", "battery_state", "mode: std_msgs/String", "bumper: std_msgs/Bool"
    stop = bytes([SAFE])
    requests = {"dock": bytes([DOCK]), "clean": bytes([CLEAN]), "beep": Request(b"\x8d\x00", moves=False)}

    def __init__(self) -> None:
        self.x = self.y = self.yaw = 0.0
        self.counts: tuple[int, int] | None = None  # right and left
        self.mode, self.wheels_m, self.velocity = 0, [0.0, 0.0], (0, 0)
        self.pose = 0.0, 0.0, 0.0  # at the robot's end
        self.is_streaming = False

    def handshake(self) -> Iterator[Step]:
        yield bytes([START, SAFE, STREAM, len(NUMBERS), *NUMBERS]), is_safe

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        sides = (velocity.forward + sign * velocity.turn * AXLE_M / 2 for sign in (1, -1))
        return struct.pack(">Bhh", DRIVE, *(round(1000 * max(-TOP_SPEED, min(TOP_SPEED, side))) for side in sides))

    def encode_goodbye(self) -> bytes:
        return bytes([STOP])

    def decode_report(self, frame: bytes) -> Telemetry:
        bumpers, mv, charge, capacity, mode, right, left, *counts = SENSORS.unpack(frame[2:-1])
        before, self.counts = self.counts or tuple(counts), (counts[0], counts[1])
        moved = [
            M_PER_COUNT * ((now - then + 0x8000) % 0x10000 - 0x8000) for now, then in zip(counts, before, strict=True)
        ]
        middle = self.yaw + (moved[0] - moved[1]) / AXLE_M / 2
        self.x += sum(moved) / 2 * math.cos(middle)
        self.y += sum(moved) / 2 * math.sin(middle)
        self.yaw = math.remainder(self.yaw + (moved[0] - moved[1]) / AXLE_M, math.tau)
        speeds = BodyVelocity((right + left) / 2000, turn=(right - left) / 1000 / AXLE_M)  # as requested, not measured
        extra = self.messages(MODES.get(mode, "unknown"), bumpers & 3 > 0)
        return Telemetry(
            (self.x, self.y, 0.0), self.yaw, speeds, mv / 1000, charge / capacity if capacity else None, extra=extra
        )

    def messages(self, mode: str, is_bumped: bool) -> dict[str, object]:
        from std_msgs.msg import Bool, String  # only the bridge has ROS

        return {"mode": String(data=mode), "bumper": Bool(data=is_bumped)}

    # The robot's end.

    def decode_command(self, packet: bytes) -> BodyVelocity | None:
        code = packet[0]
        self.mode = {START: 1, SAFE: 2, FULL: 3, STOP: 0}.get(code, self.mode)
        self.is_streaming |= code == STREAM
        if code == STOP:
            return BodyVelocity()
        if code != DRIVE or self.mode < 2:
            return None
        self.velocity = struct.unpack(">hh", packet[1:])
        right, left = (each / 1000 for each in self.velocity)
        return BodyVelocity((right + left) / 2, turn=(right - left) / AXLE_M)

    def encode_report(self, t: Telemetry) -> bytes | None:
        if not self.is_streaming or not t.position:
            return None
        (x, y, yaw), v = self.pose, t.velocity or BodyVelocity()
        self.pose = *t.position[:2], t.yaw or 0.0
        turned = math.remainder(self.pose[2] - yaw, math.tau)
        ahead = (self.pose[0] - x) * math.cos(yaw + turned / 2) + (self.pose[1] - y) * math.sin(yaw + turned / 2)
        self.wheels_m = [m + ahead + sign * turned * AXLE_M / 2 for m, sign in zip(self.wheels_m, (1, -1), strict=True)]
        sides = [round(1000 * (v.forward + sign * v.turn * AXLE_M / 2)) for sign in (1, -1)]
        counts = [round(m / M_PER_COUNT) % 0x10000 for m in self.wheels_m]
        values = 0, round(1000 * (t.voltage or 0.0)), round(2696 * (t.charge or 0.0)), 2696, self.mode, *sides, *counts
        content = bytearray(SENSORS.pack(*values))
        at = 0
        for number, size in zip(NUMBERS, (1, 2, 2, 2, 1, 2, 2, 2, 2), strict=True):
            content[at] = number
            at += 1 + size
        frame = bytes([19, len(content)]) + content
        return frame + bytes([-sum(frame) & 255])
