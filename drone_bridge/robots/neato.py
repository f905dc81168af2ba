# SPDX-License-Identifier: Apache-2.0
"""Neato XV or Botvac, a vacuum cleaner with a lidar, in its test mode: lines of text over its USB port.

Each command is answered by itself, lines such as `LeftWheel_PositionInMM,214`, and Ctrl-Z. A motion is the ways of both
wheels, mm, and the speed of the faster one, so the robot stops at their end. It ignores ways of 0, as those of
`setmotor 0 0 0`, so a way of 1 mm stops it. In test mode, neither a bumper nor a cliff stops it. By its help texts,
Neato's manual, answers of a Botvac in emersonknapp/neato_botvac, and the drivers there and in mikeferguson/neato_robot.
"""

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from drone_bridge.robot_class import (
    Answer,
    BodyVelocity,
    Delimited,
    Lidar,
    Refusal,
    Robot,
    Serial,
    Step,
    Telemetry,
    Wheels,
)

TOP_SPEED, MOVE_S = 0.3, 1.0  # by the help of an XV, and the time of a motion
#: Bits of a distance, without flags, such as that it is doubtful; and what refuses a command.
DISTANCE, NO_TEST = 0x3FFF, b"TestMode must be on to use this command."
MOTION, SCAN = ("lwheeldist", "rwheeldist", "speed"), "AngleInDegrees,DistInMM,Intensity,ErrorCodeHEX"
WHEELS = [f"{side}Wheel_{name}" for name in ("PositionInMM", "Speed") for side in ("Left", "Right")]
BUMPERS = "LSIDEBIT LFRONTBIT LLDSBIT RSIDEBIT RFRONTBIT RLDSBIT"
TABLES = {  # title and names
    "getmotors": ("Parameter,Value", "Brush_RPM Brush_mA Vacuum_RPM Vacuum_mA LeftWheel_RPM LeftWheel_Load% "
                  "LeftWheel_PositionInMM LeftWheel_Speed RightWheel_RPM RightWheel_Load% RightWheel_PositionInMM "
                  "RightWheel_Speed SideBrush_mA"),
    "getcharger": ("Label,Value", "FuelPercent BatteryOverTemp ChargingActive ChargingEnabled ConfidentOnFuel "
                   "OnReservedFuel EmptyFuel BatteryFailure ExtPwrPresent ThermistorPresent BattTempCAvg VBattV VExtV "
                   "Charger_mAH Discharge_mAH"),
    "getdigitalsensors": ("Digital Sensor Name, Value", "SNSR_DC_JACK_IS_IN SNSR_DUSTBIN_IS_IN "
                          f"SNSR_LEFT_WHEEL_EXTENDED SNSR_RIGHT_WHEEL_EXTENDED {BUMPERS}"),
}  # fmt: skip


DISABLE = {"lwheeldisable", "rwheeldisable"}
#: Words of commands that move something else.
MOVING = {"clean", "brush", "brushdisable", "vacuumon", "vacuumspeed", "sidebrushon", "diagtest", "setsystemmode"}


def motion(left: int, right: int, speed: int) -> bytes:
    return b"setmotor lwheeldist %d rwheeldist %d speed %d\n" % (left, right, speed)


def a_line(data: bytes) -> int:
    """See Framing. CR and LF end a command each, so after both, there is an empty one, which is answered, too."""
    return data.replace(b"\r", b"\n").find(b"\n") + 1


class Neato(Robot):
    name, summary = "neato", "a Neato vacuum cleaner with a lidar"
    control = Serial(115200, Delimited(b"\x1a"), commands=a_line)
    max_speeds, robot_stops_after_s = {"x": TOP_SPEED, "yaw": 2 * TOP_SPEED / 0.248}, MOVE_S
    topics = "odom", "battery_state", "scan"
    lidar = Lidar(range_min=0.2, range_max=5.0, scan_s=0.2, mount=(-0.1016, 0.0, 0.0889))
    answered, rate, keeps, report_rate = True, 5.0, ("wheels",), 50.0
    sizes = {"wheel_separation": 0.248}

    def __init__(self) -> None:
        self.wheels = Wheels(self.sizes["wheel_separation"], 0.001, bits=32, max_speed=TOP_SPEED)
        self.is_driven, self.heard = True, dict[str, Any]()  # perhaps by a client before; for the next report
        self.is_testing, self.is_turning, self.told = False, False, Telemetry()  # at the robot's end

    def handshake(self) -> Iterator[Step]:
        yield b"testmode on\n", lambda heard: b"testmode on" in heard.lower()
        yield b"setldsrotation on\n", lambda heard: b"setldsrotation on" in heard.lower() and NO_TEST not in heard

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        left, right = (round(1000 * MOVE_S * side) or 1 for side in self.wheels.sides(velocity))
        was_driven, self.is_driven = self.is_driven, velocity != BodyVelocity()
        move = motion(left, right, max(abs(left), abs(right))) if self.is_driven else motion(0, 0, 0)
        stop = motion(1, 1, 1) if was_driven and not self.is_driven else b""
        return stop + move + b"getdigitalsensors\ngetcharger\ngetldsscan\ngetmotors\n"

    def encode_goodbye(self) -> bytes:
        return b"setldsrotation off\ntestmode off\n"

    def last_words(self) -> tuple[bytes, bytes]:
        return motion(1, 1, 1) + motion(0, 0, 0), self.encode_goodbye()

    def decode_report(self, packet: bytes) -> Answer | Telemetry:
        text = packet.decode("ascii")
        values = {name: rest for name, *rest in (line.split(",") for line in text.splitlines())}
        if NO_TEST in packet:
            return Telemetry(disobeys="it is not in test mode")
        if "LeftWheel_PositionInMM" in values:
            numbers = [int(values[name][0]) for name in WHEELS if name in values]
            speeds = [each / 1000 for each in numbers[2:]]  # not of the first versions
            pose, velocity = self.wheels.counted(*numbers[:2])[:2], self.wheels.velocity(*speeds) if speeds else None
            heard, self.heard = self.heard, {}
            return Telemetry(*pose, velocity, **heard)
        if "LSIDEBIT" in values:
            self.wheels.is_blocked = any(int(values.get(name, "0")[0]) for name in BUMPERS.split())
        if "FuelPercent" in values:
            voltage, charge, charging = (float(values[name][0]) for name in ("VBattV", "FuelPercent", "ChargingActive"))
            self.heard |= {"voltage": voltage, "charge": charge / 100, "is_charging": charging > 0}
        if "AngleInDegrees" in values and float(values["ROTATION_SPEED"][0]) > 0:
            rays = ((int(distance) & DISTANCE, code) for distance, _, code in (values[str(ray)] for ray in range(360)))
            self.heard["scan"] = tuple(mm / 1000 if mm and code == "0" else math.inf for mm, code in rays)
        return Answer("")

    # The robot's end.

    def decode_command(self, line: bytes) -> tuple[BodyVelocity | Refusal | bytes, ...]:
        code, *words = line.decode("ascii").lower().split() or [""]
        moved, told = self.driven(words) if code == "setmotor" and self.is_testing else None, b""
        if code == "testmode":
            self.is_testing = "on" in words
            moved = None if self.is_testing else BodyVelocity()
        elif code in ("setmotor", "setldsrotation") and not self.is_testing:
            told = NO_TEST + b"\r\n"
        elif code == "setldsrotation":
            self.is_turning = "on" in words
        elif code in (*TABLES, "getldsscan"):
            told = self.queried(code).encode()
        answer = line.rstrip() + b"\r\n" + told + b"\x1a"
        others = MOVING.intersection((code, *words))
        if told.startswith(NO_TEST):
            return (Refusal(code, "TestMode must be on", answer),)
        refused = [Refusal(" ".join(dict.fromkeys((code, min(others)))))] if others else []
        return (*refused, answer) if moved is None else (moved, *refused, answer)

    def driven(self, words: list[str]) -> BodyVelocity | Refusal | None:
        """Return the velocity of a motion, given by its numbers alone or with their names."""
        given = dict(zip(MOTION, words, strict=False)) | dict(pairwise(words))
        numbers = [int(each) for name in MOTION if re.fullmatch(r"-?\d+", each := given.get(name, ""))]
        longest = max(map(abs, numbers[:2]), default=0)
        is_motion = len(numbers) == 3 and longest > 0 and 0 < numbers[2] <= 1000 * TOP_SPEED
        if any(numbers) and not is_motion and MOVING.isdisjoint(words):
            return Refusal("setmotor", f"{' '.join(words):.40} is not possible")
        if self.is_driven and not is_motion and DISABLE.isdisjoint(words):
            return None
        self.is_driven = is_motion and longest > 1
        left, right = (numbers[2] / longest / 1000 * way for way in numbers[:2]) if self.is_driven else (0.0, 0.0)
        return self.wheels.velocity(left, right)

    def encode_report(self, t: Telemetry) -> None:
        self.told = t  # until it is polled
        self.wheels.counts(t.position, t.yaw)

    def queried(self, code: str) -> str:
        t, scan = self.told, self.told.scan if self.is_turning else None
        if code == "getldsscan":
            hits = (f"{1000 * each:.0f},100,0" if each < math.inf else "0,0,8035" for each in scan or ())
            rays = (f"{ray},{hit}" for ray, hit in enumerate(hits if scan else ["0,0,0"] * 360))
            return "\r\n".join([SCAN, *rays, f"ROTATION_SPEED,{5 * bool(scan)}.00", ""])
        wheels = *self.wheels.ways, *self.wheels.sides(t.velocity or BodyVelocity())
        values: dict[str, object] = dict(zip(WHEELS, (round(1000 * each) for each in wheels), strict=True))
        values |= {"FuelPercent": round(100 * (t.charge or 0.0)), "VBattV": f"{t.voltage or 0.0:.2f}"}
        values |= {"ChargingActive": int(t.is_charging or False), "SNSR_DUSTBIN_IS_IN": 1}
        title, names = TABLES[code]
        return "\r\n".join([title, *(f"{name},{values.get(name, 0)}" for name in names.split()), ""])
