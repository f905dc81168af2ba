# SPDX-License-Identifier: Apache-2.0
"""RoboMaster EP by its plain-text SDK: commands over TCP to port 40923, and its state in datagrams to our port 40924.

A text ends with a semicolon, and each command is answered by ok. Axes are forward, right and clockwise, in m, m/s,
degrees and degrees/s, as known drivers have them; not yet tried with a real robot. Maxima are those of the document.
None states a watchdog, and the maker's own driver stops the robot by a timer of the computer.
"""

import math
from collections.abc import Iterator

from drone_bridge.robot_class import Answer, BodyVelocity, Delimited, Request, Robot, Step, Tcp, Telemetry, Udp

PUSH = b"chassis push position on pfreq 10 attitude on afreq 10;"


def texts(data: bytes) -> int:
    """Split a datagram, which may end with white space."""
    return data.find(b";") + 1 or (len(data) if data.isspace() else 0)


def is_ok(answer: bytes) -> bool:
    return answer.strip(b"; \n") == b"ok"


class RoboMaster(Robot):
    name, summary = "robomaster", "a RoboMaster EP"
    control, state = Tcp(40923, Delimited(b";")), Udp(40924, texts, listen=True)
    max_speeds, robot_stops_after_s = {"x": 3.5, "y": 3.5, "yaw": math.radians(600)}, None
    topics, answered = ("odom",), True
    requests = {
        "open_gripper": Request(b"robotic_gripper open 1;"),
        "close_gripper": Request(b"robotic_gripper close 1;"),
    }

    def __init__(self) -> None:
        self.position, self.yaw = (0.0, 0.0), 0.0
        self.is_pushing = False

    def handshake(self) -> Iterator[Step]:
        yield b"command;", is_ok
        yield PUSH, is_ok
        yield b"robot mode chassis_lead;", bool  # else the chassis may turn with its gimbal only; some have none

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        numbers = velocity.forward, -velocity.left, -math.degrees(velocity.turn)
        return b"chassis speed x %.3f y %.3f z %.2f;" % numbers

    def encode_goodbye(self) -> bytes:
        return b"quit;"

    def decode_report(self, packet: bytes) -> Answer | Telemetry | None:
        words = packet.decode("ascii").replace("chassis push", "").strip("; \n").split()
        if words[:1] == ["position"]:
            self.position = float(words[1]), -float(words[2])
        elif words[:1] == ["attitude"]:
            self.yaw = -math.radians(float(words[3]))
        else:
            return Answer("", words == ["ok"], " ".join(words)) if words else None
        return Telemetry((*self.position, 0.0), self.yaw)

    # The robot's end.

    def decode_command(self, packet: bytes) -> tuple[BodyVelocity | bytes, ...]:
        words = packet.decode("ascii").strip("; \n").split()
        if words[:2] == ["chassis", "speed"] and words[-1] != "?":
            x, y, z = (float(words[words.index(axis) + 1]) for axis in "xyz")
            return BodyVelocity(x, -y, turn=-math.radians(z)), b"ok;"
        self.is_pushing |= words[:2] == ["chassis", "push"]
        if not words or not words[0].replace("_", "").isalpha():
            raise ValueError(f"unknown command {packet[:40]!r}")
        answer = b"error;" if words[-1] == "?" else b"ok;"  # it answers no questions
        return (BodyVelocity(), answer) if words == ["quit"] else (answer,)

    def encode_answer(self, answer: Answer) -> bytes:
        return b"ok;" if answer.is_success else b"error;"

    def encode_report(self, t: Telemetry) -> bytes | None:
        if not self.is_pushing or not t.position:
            return None
        x, y, yaw = t.position[0], -t.position[1], -math.degrees(t.yaw or 0.0)
        return b"chassis push position %.3f %.3f ; attitude 0.000 0.000 %.3f ;" % (x, y, yaw)
