# SPDX-License-Identifier: Apache-2.0
"""iRobot Create 2 or Roomba 600 by its Open Interface, over a serial line of 115200 baud.

Commands are opcodes with data. The robot streams a frame of sensor packets each 15 ms: 19, the number of bytes,
packets with their numbers, and a checksum. In passive mode, in which it docks and cleans, it ignores velocities, and so
it does on its charger. Opcode 131 takes it back to safe mode. It has no watchdog: without commands, it drives on.
Programs also drive by an arc or by the motors' power, and query packets instead of a stream.
"""

import math
import struct
from collections.abc import Iterator
from dataclasses import replace

from drone_bridge.robot_class import BodyVelocity, Packets, Refusal, Request, Robot, Serial, Step, Telemetry, Wheels

START, SAFE, FULL, POWER, CLEAN, DRIVE_ARC, DOCK, DRIVE, DRIVE_PWM = 128, 131, 132, 133, 135, 137, 143, 145, 146
DRIVES = {DRIVE_ARC: "Drive", DRIVE: "Drive Direct", DRIVE_PWM: "Drive PWM"}
#: Names of other commands that move something.
REFUSED = {134: "Spot", 136: "Max", 138: "Motors", 144: "PWM Motors", 165: "Buttons", 167: "Schedule"}
QUERY, STREAM, QUERY_LIST, PAUSE, STOP, RESET = 142, 148, 149, 150, 173, 7
#: Commands after which it is in passive mode.
PASSIVE = START, POWER, 134, CLEAN, 136, DOCK
#: Bytes of each command, without those of variable size.
SIZES = dict.fromkeys((7, START, 130, SAFE, FULL, POWER, 134, CLEAN, 136, DOCK, STOP), 1)
SIZES |= {129: 2, DRIVE_ARC: 5, 138: 2, 139: 4, 141: 2, QUERY: 2, 144: 4, DRIVE: 5, DRIVE_PWM: 5, 147: 2, PAUSE: 2}
SIZES |= {162: 3, 163: 5, 164: 5, 165: 2, 167: 16, 168: 4}
#: Bumpers, voltage, charge, capacity, mode, requested velocities, and counts of the encoders, right wheel first.
MODE, CHARGING = 35, 21
NEEDED = 7, 22, 25, 26, MODE, 41, 42, 44, 43
CLIFFS = 9, 10, 11, 12  # left, front left, front right, right
NUMBERS = *NEEDED, CHARGING, *CLIFFS
#: Sensor packets of two bytes, and groups of packets.
WIDE = {19, 20, 22, 23, *range(25, 32), 33, *range(39, 45), *range(46, 52), *range(54, 58)}
SIGNED = {19, 20, 23, 24, *range(39, 43), *range(54, 58)}
GROUPS = {0: (7, 26), 1: (7, 16), 2: (17, 20), 3: (21, 26), 4: (27, 34), 5: (35, 42), 6: (7, 42), 100: (7, 58)}
GROUPS |= {101: (43, 58), 106: (46, 51), 107: (54, 58)}
RADIUS_M, AXLE_M, TOP_SPEED = 0.036, 0.235, 0.5  # by the document
M_PER_COUNT = math.tau * RADIUS_M / 508.8
BEEP = bytes([140, 0, 1, 72, 16, 141, 0])  # define song 0, a note for a quarter of a second, and play it
MODES = {0: "off", 1: "passive", 2: "safe", 3: "full"}


def opcodes(data: bytes) -> int:
    if data[0] in (STREAM, QUERY_LIST):
        return 2 + data[1] if len(data) > 1 else 0
    if data[0] == 140:  # a song of notes with durations
        return 3 + 2 * data[2] if len(data) > 2 else 0
    return SIZES.get(data[0], -1)


def is_valid(frame: bytes) -> bool:
    return sum(frame) & 255 == 0


def sensors(frame: bytes) -> dict[int, int]:
    """Return the values of sensor packets by number. Raise ValueError if one is missing, or was not asked for."""
    values, at = {}, 2
    while at < len(frame) - 1:
        number, end = frame[at], at + 2 + (frame[at] in WIDE)
        values[number], at = int.from_bytes(frame[at + 1 : end], "big", signed=number in SIGNED), end
    if at != len(frame) - 1 or not {*NEEDED} <= values.keys() <= {*NUMBERS}:  # noise may pass a checksum of one byte
        raise ValueError(f"sensor packets {[*values]} instead of {NUMBERS}")
    return values


def is_safe(frame: bytes) -> bool:
    return sensors(frame)[MODE] in (2, 3)


#: As ca_bumper2pc places them. A bumper of both sides is pressed in front.
LEFT, FRONT, RIGHT = (0.086, 0.235, 0.04), (0.25, 0.0, 0.04), (0.086, -0.235, 0.04)
PRESSED = {0: (), 1: (RIGHT,), 2: (LEFT,), 3: (FRONT,)}


class Create2(Robot):
    name, summary = "create2", "an iRobot Create 2"
    control = Serial(115200, Packets(b"\x13", length_at=1, extra=1, checksum=is_valid), commands=opcodes)
    max_speeds, robot_stops_after_s = {"x": TOP_SPEED, "yaw": 2 * TOP_SPEED / AXLE_M}, None
    keeps, report_rate, bumpers = ("wheels",), 1 / 0.015, {"right": RIGHT, "left": LEFT, "front": FRONT}
    topics = ("odom", "battery_state", "bumper/points", "joint_states: sensor_msgs/JointState", "mode: std_msgs/String",
              "bumper: std_msgs/Bool")  # fmt: skip
    stop = bytes([SAFE])
    requests = {
        "dock": Request(lambda end: bytes([DOCK])),  # a function: at the robot's end, they change its mode
        "clean": Request(lambda end: bytes([CLEAN])),
        "beep": Request(BEEP, moves=False),
    }

    def __init__(self) -> None:
        self.wheels, self.mode = Wheels(AXLE_M, M_PER_COUNT, max_speed=TOP_SPEED, radius_m=RADIUS_M), 0
        self.is_streaming, self.streamed = False, b""  # numbers of packets, at the robot's end
        self.values: dict[int, float] = {19: 0.0, 20: 0.0}  # of sensor packets

    def handshake(self) -> Iterator[Step]:
        yield bytes([START, SAFE, STREAM, len(NUMBERS), *NUMBERS]), is_safe

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        left, right = self.wheels.sides(velocity)
        return struct.pack(">Bhh", DRIVE, round(1000 * right), round(1000 * left))

    def encode_goodbye(self) -> bytes:
        return bytes([STOP])

    def decode_report(self, frame: bytes) -> Telemetry:
        values = sensors(frame)
        bumpers, mv, charge, capacity, mode, right, left, *counts = (values[number] for number in NEEDED)
        charging = values.get(CHARGING, 0)
        self.wheels.is_blocked = bumpers & 15 > 0  # at a cliff it stops by itself, and leaves its mode
        position, yaw, _ = self.wheels.counted(counts[1], counts[0])
        speeds = self.wheels.velocity(left / 1000, right / 1000)  # as requested, not measured
        extra = self.messages(MODES.get(mode, "unknown"), bumpers & 3 > 0)
        why = "a wheel has dropped" if bumpers & 12 else "after it was lifted, at a cliff, or on its charger"
        why = "" if mode in (2, 3) else f"it is not in safe mode, {'on its charger' if charging else why}"
        found = zip(CLIFFS, (LEFT, FRONT, FRONT, RIGHT), strict=True)
        contacts = {*PRESSED[bumpers & 3], *(place for number, place in found if values.get(number))}
        battery = mv / 1000, charge / capacity if capacity else None
        is_charging = charging in (1, 2, 3)  # reconditioning, fully, or trickling
        told = Telemetry(position, yaw, speeds, *battery, is_charging=is_charging, extra=extra, disobeys=why)
        return replace(told, contacts=tuple(contacts))

    def messages(self, mode: str, is_bumped: bool) -> dict[str, object]:
        from std_msgs.msg import Bool, String  # only the bridge has ROS

        states = {"joint_states": self.wheels.joint_states()}
        return states | {"mode": String(data=mode), "bumper": Bool(data=is_bumped)}

    # The robot's end.

    def decode_command(
        self, packet: bytes
    ) -> BodyVelocity | Refusal | bytes | tuple[BodyVelocity, Request | Refusal] | None:
        code = packet[0]
        self.mode = {**dict.fromkeys(PASSIVE, 1), SAFE: 2, FULL: 3, STOP: 0, RESET: 0}.get(code, self.mode)
        if code == STREAM:
            self.streamed = packet[2:]
        if code in (STREAM, PAUSE):
            self.is_streaming = packet[1] > 0
        if code in (QUERY, QUERY_LIST):
            return b"".join(map(self.sensor, packet[1 if code == QUERY else 2 :]))
        if code in (*PASSIVE, STOP, RESET):
            name, begins = {DOCK: "dock", CLEAN: "clean"}.get(code), REFUSED.get(code)
            also = self.all_requests[name] if name else Refusal(begins) if begins else None
            return (BodyVelocity(), also) if also else BodyVelocity()
        if code in REFUSED:
            return Refusal(REFUSED[code])
        return self.driven(code, packet) if code in DRIVES else None

    def driven(self, code: int, packet: bytes) -> BodyVelocity | Refusal | None:
        if self.mode < 2:
            return Refusal(DRIVES[code], f"its mode is {MODES[self.mode]}") if any(packet[1:3]) else None
        first, second = struct.unpack(">hh", packet[1:])
        if code == DRIVE_ARC and abs(second) == 1:  # in place
            return BodyVelocity(turn=second * first / 500 / AXLE_M)
        if code == DRIVE_ARC:  # the radius of a turn, or more: straight ahead
            return BodyVelocity(first / 1000, turn=first / second if 0 < abs(second) <= 2000 else 0.0)
        right, left = (TOP_SPEED * each / (500 if code == DRIVE else 255) for each in (first, second))
        return self.wheels.velocity(left, right)

    def sensor(self, number: int) -> bytes:
        if number in GROUPS:
            first, last = GROUPS[number]
            return b"".join(map(self.sensor, range(first, last + 1)))
        size, value = 1 + (number in WIDE), self.mode if number == MODE else round(self.values.get(number, 0))
        if number in (19, 20):  # since the last time
            self.values[number] -= value
        return (value % (1 << 8 * size)).to_bytes(size, "big")

    def encode_report(self, t: Telemetry) -> bytes | None:
        before = self.wheels.ways
        left, right = self.wheels.counts(t.position, t.yaw)
        moved = self.wheels.velocity(*(now - then for now, then in zip(self.wheels.ways, before, strict=True)))
        sides = [round(1000 * side) for side in self.wheels.sides(t.velocity or BodyVelocity())]
        battery = 1000 * (t.voltage or 0.0), 2696 * (t.charge or 0.0), 2696
        touched = self.touched(t.contacts)
        bumpers = 3 if "front" in touched else ("right" in touched) + 2 * ("left" in touched)
        values = bumpers, *battery, self.mode, *reversed(sides), right, left, 2 * bool(t.is_charging), 0, 0, 0, 0
        since = {19: self.values[19] + 1000 * moved.forward, 20: self.values[20] + math.degrees(moved.turn)}
        self.values = dict(zip(NUMBERS, values, strict=True)) | since
        content = b"".join(bytes([number]) + self.sensor(number) for number in self.streamed)
        frame = bytes([19, len(content)]) + content
        return frame + bytes([-sum(frame) & 255]) if self.is_streaming else None
