# SPDX-License-Identifier: Apache-2.0
"""Fictitious robot with two wheels, copied by `drone-bridge new --serial`: binary packets over a serial line.

AA 55, number of bytes up to the checksum, kind, data, and a checksum: all bytes from that number on add up to 0. All
numbers are little-endian.

1  hello, answered by: hello
2  speeds of the left and the right wheel, mm/s; without one for 1 s, the robot stops by itself
3  ten times per second: time, ms; counters of the left and the right wheel, which wrap; battery, mV
"""

import struct
from collections.abc import Iterator

from drone_bridge.robot_class import BodyVelocity, Packets, Robot, Serial, Step, Telemetry, Wheels

HELLO, DRIVE, STATE = 1, 2, 3
AXLE_M, M_PER_COUNT = 0.3, 0.0005  # distance of the wheels, and way of a wheel per count


def is_valid(packet: bytes) -> bool:
    """Return whether the checksum of a packet is right."""
    return sum(packet[2:]) & 255 == 0


def packed(kind: int, layout: str, *values: int) -> bytes:
    """Return a packet of a kind, with values in a layout of `struct`."""
    data = struct.pack(f"<B{layout}", kind, *values)
    return b"\xaa\x55" + bytes([len(data)]) + data + bytes([-sum(data, len(data)) & 255])


class TwoWheelsSerial(Robot):
    """The robot: its commands, and the robot's end of the same packets, for its emulator and its server."""

    name, summary = "two_wheels_serial", "a fictitious robot on a serial line"
    control = Serial(115200, Packets(b"\xaa\x55", length_at=2, extra=1, checksum=is_valid))
    max_speeds, robot_stops_after_s = {"x": 1.0, "yaw": 3.0}, 1.0
    keeps = ("wheels",)  # its pose survives a reconnection

    def __init__(self) -> None:
        self.wheels, self.ms = Wheels(AXLE_M, M_PER_COUNT, max_speed=1.0), -1
        self.is_greeted = False  # at the robot's end

    def handshake(self) -> Iterator[Step]:
        """Yield the steps on a new connection, with the test of the answer."""
        yield packed(HELLO, ""), lambda packet: packet[3] == HELLO

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        """Return the packet for a velocity."""
        return packed(DRIVE, "hh", *(round(1000 * side) for side in self.wheels.sides(velocity)))

    def decode_report(self, packet: bytes) -> Telemetry | None:
        """Decode a packet of the robot. Packets that raise ValueError or struct.error count as rejected input."""
        if packet[3] != STATE:
            return None
        ms, left, right, battery = struct.unpack("<4H", packet[4:-1])
        elapsed_s, self.ms = ((ms - self.ms) % 0x10000 / 1000 if self.ms >= 0 else None), ms
        return Telemetry(*self.wheels.counted(left, right, elapsed_s), voltage=battery / 1000)

    def decode_command(self, packet: bytes) -> BodyVelocity | bytes | None:
        """Decode a packet to a velocity, or to the packet that answers it."""
        if packet[3] == HELLO:
            self.is_greeted = True
            return packet
        left, right = struct.unpack("<hh", packet[4:-1])
        return self.wheels.velocity(left / 1000, right / 1000)

    def encode_report(self, telemetry: Telemetry) -> bytes | None:
        """Return the packet with telemetry, once a client has sent hello."""
        if not self.is_greeted:
            return None
        counts = self.wheels.counts(telemetry.position, telemetry.yaw)
        ms, battery = (round(1000 * (value or 0.0)) % 0x10000 for value in (telemetry.time_s, telemetry.voltage))
        return packed(STATE, "4H", ms, *counts, battery)
