# SPDX-License-Identifier: Apache-2.0
"""Two motors behind an Arduino with the firmware of ros_arduino_bridge, over its serial line of 57600 baud.

A command is a letter and up to two numbers, and ends with CR. Each is answered by a line: `m 20 20`, counts per loop of
33 ms of the left and the right wheel, by OK, and `e` by the counters of both. Opening the port resets the board, which
answers again after 1 to 2 s, so the greeting is repeated. It stops 2 s after the last `m` or `o`. By the sources of
hbrobotics/ros_arduino_bridge and of its fork by joshnewans, which added `o`.
"""

import math
import re
from collections.abc import Iterator

from drone_bridge.robot_class import Answer, BodyVelocity, Delimited, Refusal, Robot, Serial, Step, Telemetry, Wheels

LOOP_S = 0.033  # 1000 / 30 ms, whole
HALF = 1 << 31  # of the range of a counter
#: Limit of a wheel in the most used tutorial's description of its robot: 10 rad/s, of 0.05 m radius.
TOP_SPEED = 0.5
OK, INVALID = b"OK\r\n", b"Invalid Command\r\n"
#: Answers of pins, which the emulated board has nothing at, and of gains.
OTHERS = dict.fromkeys("adp", b"0\r\n") | dict.fromkeys("cuwx", OK) | {"b": b"57600\r\n"}
#: Commands that may move something at its pins.
REFUSED = {"s": "a servo (s)", "w": "a digital pin (w)", "x": "an analog pin (x)"}


def is_number(line: bytes) -> bool:
    return line.strip().isdigit()


def whole(text: str) -> int:
    """Return a number as the board reads it: the digits at the beginning, else 0, in 16 bits."""
    digits = re.match(r"\s*[+-]?\d+", text)
    return (int(digits[0]) + 0x8000 & 0xFFFF) - 0x8000 if digits else 0


class Arduino(Robot):
    name, summary = "arduino", "an Arduino base (ros_arduino_bridge)"
    control = Serial(57600, Delimited(b"\n"), commands=Delimited(b"\r"))
    max_speeds, robot_stops_after_s = {"x": TOP_SPEED, "yaw": 2 * TOP_SPEED / 0.35}, 2.0
    topics, answered, keeps, report_rate = ("odom",), True, ("wheels",), 50.0
    #: Those of the tutorial's robot and driver.
    sizes = {"wheel_separation": 0.35, "wheel_radius": 0.05, "enc_counts_per_rev": 1920.0}

    def __init__(self) -> None:
        self.m_per_count = math.tau * self.sizes["wheel_radius"] / self.sizes["enc_counts_per_rev"]
        self.wheels = Wheels(self.sizes["wheel_separation"], self.m_per_count, bits=32, max_speed=TOP_SPEED)
        self.counts = self.zero = 0, 0  # at the robot's end
        self.is_regulated = False  # by m instead of o

    def handshake(self) -> Iterator[Step]:
        yield b"b\r", is_number

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        sides = (round(side * LOOP_S / self.m_per_count) for side in self.wheels.sides(velocity))
        return b"m %d %d\re\r" % tuple(sides)

    def last_words(self) -> tuple[bytes, bytes]:
        return b"m 0 0\r", b""

    def decode_report(self, line: bytes) -> Answer | Telemetry:
        if line == INVALID:
            raise ValueError("Invalid Command: compile the firmware with USE_BASE")
        numbers = line.split()
        if len(numbers) != 2:
            return Answer("", line == OK or is_number(line), repr(line))
        return Telemetry(*self.wheels.counted(int(numbers[0]), int(numbers[1])))

    # The robot's end.

    def decode_command(self, line: bytes) -> Refusal | bytes | tuple[BodyVelocity | bytes, ...]:
        letters, *arguments = line[:-1].decode("latin-1").split(" ", 2)
        code, words = letters[-1:], [each.replace(" ", "") for each in arguments]
        first, second = (whole(each) for each in [*words, "", ""][:2])
        if code == "e":
            pairs = zip(self.counts, self.zero, strict=True)
            return b"%d %d\r\n" % tuple((now - then + HALF) % (2 * HALF) - HALF for now, then in pairs)
        if code in ("m", "o"):
            self.is_regulated = code == "m"
            unit = self.m_per_count / LOOP_S if self.is_regulated else TOP_SPEED / 255
            return self.wheels.velocity(first * unit, second * unit), OK
        if code == "r":
            self.zero = self.counts
            return (BodyVelocity(), OK) if self.is_regulated else OK
        answer = OTHERS.get(code, INVALID)
        return Refusal(REFUSED[code], "nothing is at its pins", answer) if code in REFUSED else answer

    def encode_report(self, t: Telemetry) -> None:
        self.counts = self.wheels.counts(t.position, t.yaw)  # until it is polled
