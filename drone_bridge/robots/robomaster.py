# SPDX-License-Identifier: Apache-2.0
"""RoboMaster EP by its plain-text SDK: commands over TCP to port 40923, and its state in datagrams to our port 40924.

A text ends with a semicolon, and each command is answered by ok. Axes are forward, right and clockwise, in m, m/s,
degrees and degrees/s, as known drivers have them; not yet tried with a real robot. Maxima are those of the document.
None states a watchdog, and the maker's own driver stops the robot by a timer of the computer. Programs also drive by
ways and wheels, and query the chassis. Its end answers error to all else, such as its gimbal. They first connect to a
port for events, too, of which its end has none.
"""

import math
from collections.abc import Iterator

from drone_bridge.robot_class import (
    Answer,
    BodyVelocity,
    Delimited,
    Meaning,
    Move,
    Refusal,
    Request,
    Robot,
    Step,
    Tcp,
    Telemetry,
    Udp,
)

LIMITS = {  # by the document: m/s, m, degrees/s, degrees and rpm
    "chassis speed": {"x": 3.5, "y": 3.5, "z": 600.0},
    "chassis move": {"x": 5.0, "y": 5.0, "z": 1800.0, "vxy": 3.5, "vz": 600.0},
    "chassis wheel": dict.fromkeys(("w1", "w2", "w3", "w4"), 1000.0),
}
#: Signs of the wheels, right ones first, in the way ahead, to the left, and in a turn. By a published simulation: m/s
#: of a wheel for 1 rpm, and half of its wheelbase and track, m.
MIXES, M_S, REACH_M = ((1, 1, 1, 1), (1, -1, -1, 1), (1, -1, 1, -1)), math.tau * 0.05 / 60, 0.2
MODES = "chassis_lead", "free"
GRIPPER = {f"robotic_gripper {name}": f"{name}_gripper" for name in ("open", "close")}
PERIODS = {"1": 10, "5": 2, "10": 1}  # reports between pushes, by their frequency, Hz
STILL = 0.01  # m/s and rad/s
BATTERY = 100  # commands for each question for its charge
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
    topics, answered, silent_ports = ("odom", "battery_state"), True, (40925,)
    requests = {
        "open_gripper": Request(b"robotic_gripper open 1;"),
        "close_gripper": Request(b"robotic_gripper close 1;"),
    }

    def __init__(self) -> None:
        self.position: tuple[float, float] | None = None
        self.yaw: float | None = None
        self.commands = 0
        self.told = {"robot mode": "free", "version": "version 00.00.00.00"}  # at the robot's end: its answers
        self.pushed = dict[str, int]()
        self.reports = 0

    def handshake(self) -> Iterator[Step]:
        yield b"command;", is_ok
        yield PUSH, is_ok
        yield b"robot mode chassis_lead;", bool  # else the chassis may turn with its gimbal only; some have none

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        self.commands += 1
        question = b"robot battery ?;" if self.commands % BATTERY == 1 else b""
        return self.speed(velocity) + question

    def speed(self, velocity: BodyVelocity) -> bytes:
        numbers = velocity.forward, -velocity.left, -math.degrees(velocity.turn)
        return b"chassis speed x %.3f y %.3f z %.2f;" % numbers

    def last_words(self) -> tuple[bytes, bytes]:
        return self.speed(BodyVelocity()), b"quit;"

    def encode_goodbye(self) -> bytes:
        return b"quit;"

    def decode_report(self, packet: bytes) -> Answer | Telemetry | None:
        words = packet.decode("ascii").replace("chassis push", "").strip("; \n").split()
        if words[:1] == ["position"]:
            self.position = float(words[1]), -float(words[2])
        elif words[:1] == ["attitude"]:
            self.yaw = -math.radians(float(words[3]))
        elif "push" in words or words[:1] == ["status"]:
            return None  # another client has asked for it
        elif len(words) == 1 and words[0].isdigit():
            return Telemetry(charge=int(words[0]) / 100)
        else:
            return Answer("", words == ["ok"], " ".join(words)) if words else None
        # Each is of another push, and goes on from the last client's. A position alone would have the yaw 0.
        return Telemetry(self.position and (*self.position, 0.0), self.yaw) if self.yaw is not None else Telemetry()

    # The robot's end.

    def decode_command(self, packet: bytes) -> tuple[Meaning, ...]:
        words = packet.decode("ascii").strip("; \n").split()
        if not words or not words[0].replace("_", "").isalpha():
            raise ValueError(f"unknown command {packet[:40]!r}")
        what = " ".join(words[:2])
        try:
            return self.obey(what, words[2:])
        except (LookupError, ValueError):  # not executed
            reason = "its values are not possible" if what in LIMITS else "this end does not have it"
            return (b"error;" if "?" in words else Refusal(what, reason, b"error;"),)

    def obey(self, what: str, words: list[str]) -> tuple[Meaning, ...]:
        if what == "quit":
            self.pushed = {}
            return BodyVelocity(), b"ok;"
        if words == ["?"] or what == "version":
            return (f"{self.told[what]};".encode(),)
        if gripper := GRIPPER.get(what):
            return (self.all_requests[gripper],)
        if what == "robot mode":
            self.told[what] = MODES[MODES.index(words[0])]
        elif what == "chassis push":
            self.push(dict(zip(words[::2], words[1::2], strict=True)))
        elif what != "command":
            return self.move(what, {name: float(text) for name, text in zip(words[::2], words[1::2], strict=True)})
        return (b"ok;",)

    def move(self, what: str, n: dict[str, float]) -> tuple[Meaning, ...]:
        limits = LIMITS[what]
        if not all(abs(number) <= limits[name] for name, number in n.items()):
            raise ValueError(f"{n} is out of range")
        if what == "chassis wheel":
            ahead, left, turn = (sum(sign * n[f"w{w}"] for w, sign in enumerate(mix, 1)) / 4 for mix in MIXES)
            return BodyVelocity(M_S * ahead, M_S * left, turn=M_S * turn / REACH_M), b"ok;"
        x, y, turn = n.get("x", 0.0), -n.get("y", 0.0), -math.radians(n.get("z", 0.0))
        if what == "chassis speed":
            return BodyVelocity(x, y, turn=turn), b"ok;"
        speeds = n.get("vxy", 0.5), math.radians(n.get("vz", 30.0))
        if min(speeds) <= 0:
            raise ValueError(f"{speeds} are its speeds")
        return (Move(x, y, 0.0, turn, *speeds),)

    def push(self, given: dict[str, str]) -> None:
        pushed, of_all = self.pushed.copy(), given.pop("freq", "")
        for name in ("position", "attitude", "status"):
            rate = of_all or given.pop(f"{name[0]}freq", "")
            if switch := given.pop(name, "on" if of_all or (rate and pushed.get(name)) else ""):
                pushed[name] = {"on": PERIODS[rate or "5"], "off": 0}[switch]
        if given:
            raise LookupError(f"no {given}")
        self.pushed = pushed

    def encode_answer(self, answer: Answer) -> bytes:
        return b"ok;" if answer.is_success else b"error;"

    def encode_report(self, t: Telemetry) -> bytes | None:
        if not t.position:
            return None
        x, y, yaw, v = t.position[0], -t.position[1], -math.degrees(t.yaw or 0.0), t.velocity or BodyVelocity()
        place, self.reports = f"{x:.3f} {y:.3f}", self.reports + 1
        self.told |= {
            "chassis position": f"{place} {yaw:.3f}",
            "chassis attitude": f"0.000 0.000 {yaw:.3f}",
            "chassis status": f"{max(map(abs, (*v.linear, v.turn))) < STILL:d}{10 * ' 0'}",  # whether it is at rest
        }
        parts = v.forward, v.left, REACH_M * v.turn
        rpm = (round(sum(row[w] * part for row, part in zip(MIXES, parts, strict=True)) / M_S) for w in range(4))
        speeds = f"{v.forward:.3f} {0.0 - v.left:.3f} {0.0 - math.degrees(v.turn):.3f}"
        self.told["chassis speed"] = f"{speeds} {' '.join(map(str, rpm))}"
        if t.charge is not None:
            self.told["robot battery"] = f"{100 * t.charge:.0f}"
        pushed = self.told | {"chassis position": place}
        due = (name for name, period in self.pushed.items() if period and self.reports % period == 0)
        text = " ".join(f"{name} {pushed[f'chassis {name}']} ;" for name in due)
        return f"chassis push {text}".encode() if text else None
