# SPDX-License-Identifier: Apache-2.0
"""Hoverboard with the firmware hoverboard-firmware-hack-FOC of E. Feru, over its serial line of 115200 baud.

Commands (steer, speed), and reports, 100 per second, have words of 16 bits. They begin with ABCD, and end with the XOR
of the others. The left wheel gets speed + steer / 2, and the right one speed - steer / 2, rounded down, each within
1000: rpm if the firmware is compiled for VARIANT_USART with CTRL_MOD_REQ SPD_MODE. By default it is a voltage, and the
board is slower or faster than commanded. The right motor is mounted the other way round, and reports so. Reports are
rounded down, too, and those of less than 5.3 rpm are 0: such a wheel counts as turning as commanded. 0.8 s after the
last command, the motors are free. The board drops commands that follow each other without a pause, and switches off
after standing for 8 minutes.
"""

import math
import struct
from collections.abc import Iterator
from functools import reduce
from operator import xor

from drone_bridge.robot_class import BodyVelocity, Packets, Robot, Serial, Step, Telemetry, Wheels

START, MOST, TIMEOUT_S = 0xABCD, 1000, 0.8
SLOWEST_RPM = 60 / 90 / 0.125  # 90 steps of its Hall sensors for each turn, within 0.125 s
#: Steer and speed.
COMMAND = struct.Struct("<HhhH")
#: The last steer and speed, rpm of the right and left motor, 0.01 V, 0.1 degrees C, LEDs.
REPORT = struct.Struct("<HhhhhhhHH")
#: Limits of hoverboard-driver's configuration, and its wheels.
TOP_SPEED, SEPARATION_M, RADIUS_M = 1.0, 0.32, 0.0825


def is_valid(packet: bytes) -> bool:
    return not reduce(xor, struct.unpack(f"<{len(packet) // 2}H", packet))


def packed(layout: struct.Struct, *values: int) -> bytes:
    words = layout.pack(START, *values, 0)
    return words[:-2] + struct.pack("<H", reduce(xor, struct.unpack(f"<{len(words) // 2}H", words)))


def within(value: int) -> int:
    return max(-MOST, min(MOST, value))


class Hoverboard(Robot):
    name, summary = "hoverboard", "a hoverboard with FOC firmware"
    control = Serial(
        115200,
        Packets(b"\xcd\xab", size=REPORT.size, checksum=is_valid),
        commands=Packets(b"\xcd\xab", size=COMMAND.size, checksum=is_valid),
    )
    max_speeds, robot_stops_after_s = {"x": TOP_SPEED, "yaw": 2 * TOP_SPEED / SEPARATION_M}, TIMEOUT_S
    topics, reckons, report_rate = ("odom", "battery_state", "board_temperature: std_msgs/Float32"), True, 100.0
    battery_v = 33.7, 42.0  # ten cells; it switches off below 33.7 V
    sizes = {"wheel_separation": SEPARATION_M, "wheel_radius": RADIUS_M}

    def __init__(self) -> None:
        self.wheels = Wheels(self.sizes["wheel_separation"], 1.0, max_speed=TOP_SPEED)
        self.m_s_per_rpm = math.tau * self.sizes["wheel_radius"] / 60
        self.commanded, self.reports, self.until = (0, 0), 0, 0  # at the robot's end: steer and speed, until a report

    def handshake(self) -> Iterator[Step]:
        yield self.encode_command(BodyVelocity()), bool

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        left, right = (round(side / self.m_s_per_rpm) for side in self.wheels.sides(velocity))
        return packed(COMMAND, left - right, (left + right + 1) // 2)  # so both are whole after the mixer

    def decode_report(self, packet: bytes) -> Telemetry:
        from std_msgs.msg import Float32  # only the bridge has ROS

        _, steer, speed, right, left, volts, degrees, _, _ = REPORT.unpack(packet)
        told = (left, within(speed + steer // 2)), (right, -within(speed + -steer // 2))
        slow = (rpm + 0.5 if rpm else wanted if abs(wanted) < SLOWEST_RPM else 0.0 for rpm, wanted in told)
        left, right = (self.m_s_per_rpm * rpm for rpm in slow)
        velocity = self.wheels.velocity(left, -right)
        extra = {"board_temperature": Float32(data=degrees / 10)}
        return Telemetry(velocity=velocity, voltage=volts / 100, extra=extra)

    # The robot's end.

    def decode_command(self, packet: bytes) -> BodyVelocity:
        _, steer, speed, _ = COMMAND.unpack(packet)
        steer, speed = self.commanded = within(steer), within(speed)
        self.until = self.reports + round(TIMEOUT_S * self.report_rate)
        return self.wheels.velocity(*(within(speed + each // 2) * self.m_s_per_rpm for each in (steer, -steer)))

    def encode_report(self, t: Telemetry) -> bytes:
        self.reports += 1
        if self.reports > self.until:
            self.commanded = 0, 0
        left, right = (side / self.m_s_per_rpm for side in self.wheels.sides(t.velocity or BodyVelocity()))
        noise = (7 * self.reports % 16 - 7.5) / 16  # real speeds are never whole
        measured = (math.floor(rpm + noise) if abs(rpm) > SLOWEST_RPM else 0 for rpm in (-right, left))
        return packed(REPORT, *self.commanded, *measured, round(100 * (t.voltage or 0.0)), 250, 0)
