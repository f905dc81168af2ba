# SPDX-License-Identifier: Apache-2.0
"""Fictitious robot with two wheels, copied by `drone-bridge new`: lines of text over TCP.

hello                      answered by: hello
drive <left> <right>       speeds of the wheels, mm/s; without one for 1 s, the robot stops by itself
at <x> <y> <yaw> <left> <right> <battery>      ten times per second: mm, 0.001 rad, mm/s, mV
"""

from collections.abc import Iterator

from drone_bridge.robot_class import BodyVelocity, Delimited, Robot, Step, Tcp, Telemetry

AXLE_M = 0.3  # distance of the wheels


class TwoWheels(Robot):
    """The robot: its commands, and the robot's end of the same lines, for its emulator and its server."""

    name, summary = "two_wheels", "a fictitious robot with two wheels"
    control = Tcp(7700, Delimited(b"\n"))  # or Serial(115200, Delimited(b"\n")), or Udp(7700)
    max_speeds, robot_stops_after_s = {"x": 1.0, "yaw": 3.0}, 1.0

    def __init__(self) -> None:
        self.is_greeted = False  # at the robot's end

    def handshake(self) -> Iterator[Step]:
        """Yield the steps on a new connection, with the test of the answer."""
        yield b"hello\n", lambda line: line == b"hello\n"

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        """Return the line for a velocity. The right wheel is faster in a left turn."""
        sides = (velocity.forward + sign * velocity.turn * AXLE_M / 2 for sign in (-1, 1))
        return "drive {} {}\n".format(*(round(1000 * side) for side in sides)).encode()

    def decode_report(self, packet: bytes) -> Telemetry | None:
        """Decode a line of the robot. Lines that raise ValueError count as rejected input."""
        word, *numbers = packet.decode("ascii").split()
        if word != "at":
            return None
        x, y, yaw, left, right, battery = map(int, numbers)
        velocity = BodyVelocity((left + right) / 2000, turn=(right - left) / 1000 / AXLE_M)
        return Telemetry((x / 1000, y / 1000, 0.0), yaw / 1000, velocity, battery / 1000)

    def decode_command(self, packet: bytes) -> BodyVelocity | bytes | None:
        """Decode a line to a velocity, or to the line that answers it."""
        word, *numbers = packet.decode("ascii").split()
        if word == "hello":
            self.is_greeted = True
            return packet
        left, right = map(int, numbers)
        if word != "drive":
            raise ValueError(f"unknown command {word!r}")
        return BodyVelocity((left + right) / 2000, turn=(right - left) / 1000 / AXLE_M)

    def encode_report(self, telemetry: Telemetry) -> bytes | None:
        """Return the line with telemetry, once a client has sent hello."""
        if not self.is_greeted or not telemetry.position:
            return None
        velocity = telemetry.velocity or BodyVelocity()
        sides = [velocity.forward + sign * velocity.turn * AXLE_M / 2 for sign in (-1, 1)]
        values = (*telemetry.position[:2], telemetry.yaw or 0.0, *sides, telemetry.voltage or 0.0)
        return " ".join(["at", *(str(round(1000 * value)) for value in values)]).encode() + b"\n"
