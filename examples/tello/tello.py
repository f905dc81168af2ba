# SPDX-License-Identifier: Apache-2.0
"""Tello by its SDK: text in datagrams to port 8889, answered by ok or error, and its state ten times per second.

The state is sent to port 8890 of the host that has sent `command`. Without a command for 15 s, a Tello lands. On its
axes, right, forward, up and clockwise are positive. Speeds in its state are in dm/s, contrary to the document.
"""

import math
from collections.abc import Iterator

from drone_bridge.robot_class import Answer, BodyVelocity, Request, Robot, Step, Telemetry

FULL, TOP_SPEED, TOP_CLIMB, TOP_TURN = 100, 1.0, 1.0, 1.6  # in slow mode, the default
WORDS = {b"takeoff": "takeoff", b"land": "land"}


class Tello(Robot):
    name, summary, model = "tello", "a Tello drone", "drone"
    transport, port, state_port = "udp", 8889, 8890
    axes, fastest = ("x", "y", "z", "yaw"), BodyVelocity(TOP_SPEED, TOP_SPEED, TOP_CLIMB, turn=TOP_TURN)
    tells, topics = ("battery_state", "height", "flying"), {"temperature": "std_msgs/Float32"}
    requests, answer_s, watchdog_s = {"takeoff": b"takeoff", "land": b"land"}, 20.0, 15.0
    lands_itself, land_unattended_s = True, 15.0

    def __init__(self) -> None:
        self.is_greeted = False

    def handshake(self) -> Iterator[Step]:
        yield b"command", lambda heard: heard.strip() == b"ok"

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        shares = (-velocity.left / TOP_SPEED, velocity.forward / TOP_SPEED, velocity.up / TOP_CLIMB)
        axes = (*shares, -velocity.turn / TOP_TURN)
        return "rc {} {} {} {}".format(*(round(FULL * share) for share in axes)).encode()

    def decode(self, packet: bytes) -> Answer | None:
        text = packet.decode("ascii").strip()
        return Answer("", text == "ok", "" if text == "ok" else text)

    def decode_state(self, packet: bytes) -> Telemetry:
        state = dict(pair.split(":") for pair in packet.decode("ascii").strip().split(";") if pair)
        moving = BodyVelocity(int(state["vgx"]) / 10, -int(state["vgy"]) / 10, -int(state["vgz"]) / 10)
        return Telemetry(
            yaw=-math.radians(int(state["yaw"])),
            velocity=moving,
            charge=int(state["bat"]) / 100,
            height=int(state["h"]) / 100,
            is_flying=int(state["h"]) > 0,
            extra={"temperature": self.message(float(state["temph"]))},
        )

    def message(self, degrees: float) -> object:
        from std_msgs.msg import Float32  # only the bridge has ROS

        return Float32(data=degrees)

    # The drone's end.

    def parse_command(self, packet: bytes) -> BodyVelocity | Request | bytes | None:
        if packet in WORDS:
            return Request(WORDS[packet])
        word, *numbers = packet.decode("ascii").split()
        if word == "command":
            self.is_greeted = True
            return b"ok"
        left, forward, up, turn = (int(number) / FULL for number in numbers)
        if word != "rc" or max(map(abs, (left, forward, up, turn))) > 1:
            raise ValueError(f"{packet[:40]!r} is no command")
        return BodyVelocity(forward * TOP_SPEED, -left * TOP_SPEED, up * TOP_CLIMB, turn=-turn * TOP_TURN)

    def encode_answer(self, answer: Answer) -> bytes:
        return b"ok" if answer.is_success else f"error {answer.reason}".encode("ascii", "replace")

    def encode_state(self, t: Telemetry) -> bytes | None:
        if not self.is_greeted:
            return None
        v, yaw = t.velocity or BodyVelocity(), -round(math.degrees(t.yaw or 0.0))
        state = {"pitch": 0, "roll": 0, "yaw": yaw, "vgx": round(10 * v.forward), "vgy": -round(10 * v.left)}
        state |= {"vgz": -round(10 * v.up), "templ": 60, "temph": 62, "h": round(100 * (t.height or 0.0))}
        state |= {"bat": round(100 * (t.charge or 0.0))}
        return "".join(f"{name}:{value};" for name, value in state.items()).encode() + b"\r\n"
