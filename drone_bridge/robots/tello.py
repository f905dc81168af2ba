# SPDX-License-Identifier: Apache-2.0
"""Tello by its SDK: text in datagrams to port 8889, answered by ok or error, its state ten times per second, and H.264.

The state is sent to port 8890 of the host that has sent `command`, the video to 11111 after `streamon`. Without a
command for 15 s, a Tello lands. Commands are positive right, forward, up and clockwise. In its state, axes are forward,
right and down, and angles positive with the nose up, the right side down, and clockwise. Contrary to the document,
speeds are in dm/s, and accelerations in 0.001 g. Speeds are taken to be along the axes of the drone when it was
switched on. If yours are along its body, set `is_world = False`: a capture of a flight that turns by 90 degrees, and
then flies forward, shows it. Programs also fly steps, such as `forward 50`, and query values. Its end refuses flips,
curves and mission pads.
"""

import math
from collections.abc import Iterator

from drone_bridge.robot_class import (
    Answer,
    BodyVelocity,
    Camera,
    Meaning,
    Move,
    Refusal,
    Request,
    Robot,
    Step,
    Telemetry,
    Udp,
)

FULL, MILLI_G = 100, 9.80665e-3
FARTHEST = 1000  # cm: where the range of tof ends, by the SDK. It is 6553 without an echo
#: Words of steps, by axis. Answers of the drone's end, by the SDK.
STEPS = ("forward", "back"), ("left", "right"), ("up", "down")
ANSWERS = {"speed?": "{speed}", "battery?": "{bat}", "time?": "{time}", "height?": "{h}", "temp?": "{templ}~{temph}C",
           "attitude?": "pitch:{pitch};roll:{roll};yaw:{yaw};", "baro?": "{baro}", "tof?": "{tof}0mm", "wifi?": "90",
           "acceleration?": "agx:{agx};agy:{agy};agz:{agz};", "sdk?": "20", "sn?": "drone_bridge",
           **dict.fromkeys(("command", "streamon", "streamoff"), "ok")}  # fmt: skip
STILL = 15  # states without a change of the motors' time, whose unit is 1 s, after which they stand: 1.5 s


class Tello(Robot):
    name, summary, model = "tello", "a Tello drone", "drone"
    control, state = Udp(8889), Udp(8890, listen=True)
    camera = Camera(  # focal lengths and center by a published calibration: others differ by some percent
        "h264", Udp(11111, listen=True), b"streamon", b"streamoff", 960, 720, (921.2, 919.0), (459.9, 351.2)
    )
    # At rc 100 in slow mode, the default: bounds from above, so that it is never too fast. x, y: that mode's limit in
    # the drone's manual; z, yaw: no document.
    max_speeds = {"x": 4.0, "y": 4.0, "z": 2.0, "yaw": 2.0}
    # Bounds from below. x, y: the SDK's `speed` ends there; z, yaw: no document. A published model: 1.7, 0.8, 1.43.
    served_speeds = {"x": 1.0, "y": 1.0, "z": 0.5, "yaw": 1.0}
    topics = ("odom", "velocity", "imu/data", "height", "range", "flying", "battery_state",
              "temperature: sensor_msgs/Temperature")  # fmt: skip
    reckons, robot_stops_after_s, lands_itself, land_unattended_s = True, 15.0, True, 15.0
    answered = False  # but some firmware answers rc, too
    requests = {
        **{name: Request(name.encode(), timeout_s=20.0) for name in ("takeoff", "land")},
        "emergency": Request(b"emergency", timeout_s=2.0),  # which a Tello may leave unanswered
    }
    is_world = True  # whether vgx and vgy are along fixed axes

    def __init__(self) -> None:
        self.is_greeted = False
        self.motors_s: float | None = None
        self.is_flying: bool | None = None
        self.still = self.flown = 0
        self.told, self.speed = dict[str, int](), FULL  # at the drone's end: its state, and speed of steps, cm/s
        self.with_charge = ""  # once reported

    def handshake(self) -> Iterator[Step]:
        yield b"command", lambda heard: heard.strip() == b"ok"

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        speeds = {"y": -velocity.left, "x": velocity.forward, "z": velocity.up, "yaw": -velocity.turn}
        shares = (FULL * speed / self.max_speeds[axis] for axis, speed in speeds.items())
        return "rc {} {} {} {}".format(*(round(max(min(share, FULL), -FULL)) for share in shares)).encode()

    def decode_report(self, packet: bytes) -> Answer:
        text = packet.decode("ascii").strip()
        reason = "" if text == "ok" else f"the drone answered {text!r}{self.with_charge}"
        return Answer("", not reason, reason)

    def decode_state(self, packet: bytes) -> Telemetry:
        texts = dict(pair.split(":") for pair in packet.decode("ascii").strip().split(";") if pair)
        state = {name: float(text) for name, text in texts.items() if name != "mpry"}
        charge = state["bat"] / 100
        self.with_charge = f", with {charge:.0%} of its charge"
        self.watch_motors(state["time"], is_up=state["h"] > 0)
        roll, pitch, yaw = (math.radians(state[name]) for name in ("roll", "pitch", "yaw"))
        ahead, right = self.turned(state["vgx"] / 10, state["vgy"] / 10, -yaw)
        return Telemetry(
            yaw=-yaw,
            roll=roll,
            pitch=-pitch,
            velocity=BodyVelocity(ahead, -right, -state["vgz"] / 10),
            acceleration=(state["agx"] * MILLI_G, -state["agy"] * MILLI_G, -state["agz"] * MILLI_G),
            height=state["tof" if state["tof"] <= FARTHEST else "h"] / 100,
            charge=charge,
            is_flying=self.is_flying,
            extra={"temperature": self.message(state["temph"])},
        )

    def turned(self, ahead: float, right: float, angle: float) -> tuple[float, float]:
        cos, sin = (math.cos(angle), math.sin(angle)) if self.is_world else (1.0, 0.0)
        return cos * ahead - sin * right, sin * ahead + cos * right

    def watch_motors(self, seconds: float, is_up: bool) -> None:
        self.still += 1
        if self.motors_s not in (None, seconds) or (self.motors_s is None and is_up):
            self.is_flying, self.still = True, 0
        elif self.still > STILL:
            self.is_flying = False
        self.motors_s = seconds

    def message(self, degrees: float) -> object:
        from sensor_msgs.msg import Temperature  # only the bridge has ROS

        return Temperature(temperature=degrees)

    # The drone's end.

    def decode_command(self, packet: bytes) -> Meaning | tuple[Meaning, ...]:
        word, *numbers = packet.decode("ascii").split()
        if word == "rc":
            right, ahead, up, clockwise = (int(number) / FULL for number in numbers)
            if max(map(abs, (right, ahead, up, clockwise))) > 1:
                raise ValueError(f"{packet[:40]!r} is out of range")
            x, y, z, yaw = self.served_speeds.values()
            return BodyVelocity(x * ahead, -y * right, z * up, turn=-yaw * clockwise)
        self.is_greeted |= word == "command"
        try:
            if word in ANSWERS:
                return ANSWERS[word].format(speed=self.speed, **self.told).encode()
            return (BodyVelocity(), b"ok") if word == "stop" else self.step(word, *map(int, numbers))
        except (LookupError, TypeError, ValueError):
            return b"error" if word.endswith("?") else Refusal(word, "it is impossible, or missing", b"error")

    def step(self, word: str, first: int, *others: int) -> Move | bytes:
        if word in ("cw", "ccw") and 1 <= first <= 3600:
            return Move(turn=math.radians(first if word == "ccw" else -first), turn_speed=self.served_speeds["yaw"])
        if word == "speed" and 10 <= first <= FULL:
            self.speed = first
            return b"ok"
        size = max(0, first)
        way = (first,) if word == "go" else (*(size * ((word == a) - (word == b)) for a, b in STEPS), self.speed)
        x, y, z, speed = (*way, *others)
        if not (20 <= max(map(abs, (x, y, z))) <= 500 and 10 <= speed <= FULL):
            raise ValueError(f"{word} is out of range")
        return Move(x / 100, y / 100, z / 100, speed=speed / 100)

    def encode_answer(self, answer: Answer) -> bytes:
        return b"ok" if answer.is_success else f"error {answer.reason}".encode("ascii", "replace")

    def encode_report(self, t: Telemetry) -> bytes | None:
        self.flown += bool(t.is_flying)
        v, yaw, height = t.velocity or BodyVelocity(), -(t.yaw or 0.0), 100 * (t.height or 0.0)
        vgx, vgy = self.turned(10 * v.forward, -10 * v.left, yaw)
        x, y, z = t.acceleration or (0.0, 0.0, 9.80665)
        pitch, roll = -math.degrees(t.pitch or 0.0), math.degrees(t.roll or 0.0)
        state = {"pitch": pitch, "roll": roll, "yaw": math.degrees(yaw)}
        state |= {"vgx": vgx, "vgy": vgy, "vgz": -10 * v.up, "templ": 60, "temph": 62, "tof": height, "h": height}
        state |= {"bat": 100 * (t.charge or 0.0), "baro": 0, "time": self.flown // 10}
        state |= {"agx": x / MILLI_G, "agy": -y / MILLI_G, "agz": -z / MILLI_G}
        self.told = {name: round(value) for name, value in state.items()}
        text = "".join(f"{name}:{value};" for name, value in self.told.items())
        return f"{text}\r\n".encode() if self.is_greeted else None
