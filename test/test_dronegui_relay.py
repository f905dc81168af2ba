# SPDX-License-Identifier: Apache-2.0
"""Through ROS: an operator, dronegui_server, topics, dronegui_bridge, and the GUI of a drone."""

import json
import math
import signal
import socket
from pathlib import Path

import pytest
from dronegui_operator import FLYING, HOVERING, LANDED, DroneGuiOperator
from dronegui_peer import DroneGuiPeer
from ports import free_port
from processes import Process
from ros_session import wait_until
from vanishing import kill

CAPTURE = (Path(__file__).parent / "captures" / "gui_to_controller_navdata.jsonl").read_bytes().splitlines()
AXES = {"roll": 0.1234567890123456, "pitch": -0.75, "yaw": 1 / 3, "gas": -1.0}
AT_ONCE = 10  # blocks
UNOFFERED = "(the node that|no node) offers /dronegui_bridge/takeoff"  # as DDS knows it still or not


@pytest.fixture
def operator(closing):
    return closing(DroneGuiOperator())


@pytest.fixture
def gui(closing):
    """A GUI that does what the test says, and nothing of its own accord."""
    return closing(DroneGuiPeer())


class Relay:
    """Both nodes, for an operator and a GUI; `navdata_port` is the one that the GUI sends to."""

    def __init__(self, operator, gui_port, domain):
        self.navdata_port = free_port()
        self._gui_port = gui_port
        self._operator = operator
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.bridge = self.server = None

    def start(self, remap=(), **parameters):
        self.start_bridge()
        self.server = Process.node(
            "dronegui_server",
            port=0,
            navdata_port=self._operator.navdata_port,
            remap=remap,
            **parameters,
        )
        line = self.server.wait_for_line(r"Waiting for control packets on 127\.0\.0\.1:(\d+)")
        self._operator.call(int(line[1]))
        self.server.wait_for_line("The drone's services are available")

    def start_bridge(self):
        self.bridge = Process.node("dronegui_bridge", port=self._gui_port, navdata_port=self.navdata_port)
        self.bridge.wait_for_line("Listening for navdata")

    def send_navdata(self, *datagrams):
        """Send as the GUI does."""
        for datagram in datagrams:
            self._socket.sendto(datagram, ("127.0.0.1", self.navdata_port))

    def carry_navdata(self):
        """Wait until navdata gets through, and forget it."""
        mark = b'{"type": "mark"}'
        wait_until(
            lambda: self.send_navdata(mark) or not self._operator.hears_nothing_for(0.1), "navdata through the relay"
        )
        self._operator.forget()

    def close(self):
        self._socket.close()
        for process in (self.server, self.bridge):
            if process:
                process.end()


@pytest.fixture
def relay(operator, gui, domain, closing):
    return closing(Relay(operator, gui.port, domain))


def test_recorded_navdata_arrives_byte_for_byte_and_in_order(relay, operator):
    relay.start()
    operator.keep_sending()
    relay.carry_navdata()
    for first in range(0, len(CAPTURE), AT_ONCE):
        blocks = CAPTURE[first : first + AT_ONCE]
        relay.send_navdata(*blocks)
        assert [operator.receive() for _ in blocks] == blocks


def test_recorded_navdata_arrives_by_standard_topics_too(relay, operator):
    """As it would of any drone of ROS: all numbers to the wire's precision."""
    relay.start(remap=("dronegui/navdata:=unheard",))
    operator.keep_sending()
    demos = [block for line in CAPTURE if (block := json.loads(line))["type"] == "demo"]
    seen = 0
    for sent in demos:
        numbers = {name: value for name, value in sent.items() if name not in ("type", "ctrl_state", "num_frames")}

        def is_it(demo, numbers=numbers):
            return all(
                abs(math.remainder(demo.get(name, math.nan) - value, 360_000 if name == "psi" else math.inf)) < 1e-6
                for name, value in numbers.items()
            )

        def arrives(sent=sent, is_it=is_it):
            relay.send_navdata(json.dumps(sent).encode())
            while not operator.hears_nothing_for(0.02):
                pass
            return operator.last and "ctrl_state" in operator.last and is_it(operator.last)  # known a little later

        wait_until(arrives, f"{sent}")
        assert operator.last["ctrl_state"] >> 16 in (
            {LANDED} if sent["ctrl_state"] >> 16 == LANDED else {FLYING, HOVERING}
        )
        seen += 1
    assert seen == len(demos) > 30


def test_controls_arrive_to_the_last_digit(relay, operator, gui):
    relay.start()
    operator.keep_sending(hover=False, **AXES)
    packet = gui.wait(lambda packet: not packet.state["hover"] and packet.state["gas"])
    assert {axis: packet.state[axis] for axis in AXES} == AXES
    operator.keep_sending(hover=True, **AXES)
    gui.wait_for_next(lambda packet: packet.is_hover)
    operator.keep_sending(hover=False)
    gui.wait_for_next(lambda packet: packet.is_following())  # level, and not hovering


def test_a_failure_looks_to_the_other_end_as_without_the_relay(relay, operator, gui, ros):
    relay.start()
    operator.keep_sending(hover=False, pitch=-0.5)
    gui.wait(lambda packet: packet.is_following(pitch=-0.5))
    operator.stop()  # the operator hangs: no GUI would mind, but a drone shall not fly on
    gui.wait_for_next(lambda packet: packet.is_hover)
    operator.keep_sending(hover=False, pitch=-0.25)
    gui.wait_for_next(lambda packet: packet.is_following(pitch=-0.25))
    relay.carry_navdata()
    told = relay.server.count_lines(UNOFFERED)
    kill(relay.bridge)  # the drone's side is gone: so is navdata
    relay.send_navdata(CAPTURE[0])
    assert operator.hears_nothing_for(0.3)
    relay.server.wait_for_count(UNOFFERED, told + 1)
    relay.start_bridge()
    gui.wait_for_next(lambda packet: packet.is_following(pitch=-0.25))
    relay.carry_navdata()
    kill(relay.server)
    gui.wait_for_next(lambda packet: packet.is_hover)
    operator.stop()


def test_a_flight_through_ros(operator, domain, start_child):
    """By a fresh GUI: reset, take-off, a way forward, and a landing by the same button."""
    port = free_port()
    relay = Relay(operator, port, domain)
    emulator = Process.module(
        "drone_bridge.dronegui.emulator",
        *("--port", port, "--navdata-port", relay.navdata_port, "--navdata-source-port", "0"),
    )
    try:
        emulator.wait_for_line("listening on")
        relay.start()
        operator.press("reset")
        emulator.wait_for_line("^reset: the GUI asks the drone for navdata")
        operator.state(LANDED)
        operator.press("take_off")
        operator.state(HOVERING)
        operator.keep_sending(hover=False, pitch=-0.5)
        demo = operator.demo(lambda demo: demo["vx"] > 500)
        assert demo["ctrl_state"] == FLYING << 16
        operator.stop()
        operator.state(HOVERING)  # which the bridge makes of silence
        operator.press("take_off")
        operator.state(LANDED)
        emulator.wait_for_line("^landing -> landed")
    finally:
        relay.close()
        emulator.end()


def test_an_operator_s_press_does_not_make_a_drone_that_was_landed_at_the_gui_take_off(operator, domain, start_child):
    """The server still takes it for flying, as the operator does, and the GUI that was started again does not know."""
    port = free_port()
    relay = Relay(operator, port, domain)
    ports = ("--port", port, "--navdata-port", relay.navdata_port, "--navdata-source-port", "0")
    emulator = Process.module("drone_bridge.dronegui.emulator", *ports, "--bootstrapped")
    try:
        emulator.wait_for_line("listening on")
        relay.start()
        operator.keep_sending()
        operator.state(LANDED)
        operator.press("take_off")
        operator.state(HOVERING)
        for line in ("the GUI is closed", "the GUI is started again"):
            emulator.send(signal.SIGURG)
            emulator.wait_for_line(f"^{line}")
        emulator.send(signal.SIGUSR2)  # "Land"
        emulator.wait_for_line("^landing -> landed")
        operator.press("take_off")
        relay.server.wait_for_line("land was refused: It is not known whether the drone flies: ")
        operator.press("reset")
        relay.server.wait_for_line("reset was refused: It is not known whether the drone flies: ")
        operator.stop()
        assert emulator.count_lines("landed -> taking off") == 1
        assert emulator.count_lines("^reset:") == 0
    finally:
        relay.close()
        emulator.end()
