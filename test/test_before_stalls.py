# SPDX-License-Identifier: Apache-2.0
"""What was asked for before this process stood still: nothing of it is carried out but hold, neutral and landing."""

import time
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist, TwistStamped
from plain_node import PlainNode
from twists import twist

from drone_bridge.dronegui.bridge import flight
from drone_bridge.dronegui.bridge.flight import PACKETS_PER_LEVEL, ButtonPanel, FlightCommands, FlightWatch, Source
from drone_bridge.dronegui.codec import FlightState
from drone_bridge.dronegui.server.buttons import ServiceButtons
from drone_bridge.motion.limits import ObservedMotion
from drone_bridge.msg import CommandAxes, CommandRates
from drone_bridge.ros.command_topics import CommandTopics
from drone_bridge.ros.service_caller import ServiceCaller
from drone_bridge.ros.stall_watch import PROCESS
from drone_bridge.session.requests_in_turn import RequestsInTurn


class Stalls:
    """Whether this process has stood still, and when."""

    def __init__(self):
        self.resumed_s = -1e9

    def running_s(self):
        return time.monotonic() - self.resumed_s

    def stood_still_since(self, moment_s):
        return moment_s <= self.resumed_s

    def happen(self):
        self.resumed_s = time.monotonic()


@pytest.fixture
def stalls(monkeypatch):
    """stalls.happen() has this process stand still, for as long as it takes to say so."""
    stalls = Stalls()
    for name in ("running_s", "stood_still_since"):
        monkeypatch.setattr(PROCESS, name, getattr(stalls, name))
    monkeypatch.setattr(PROCESS, "clock", time.monotonic)
    monkeypatch.setattr(flight, "elapsed_s", time.monotonic)
    return stalls


# A server's presses and requests, which wait for its executor.


@pytest.mark.parametrize("stands_still", [False, True])
def test_presses_of_an_operator(monkeypatch, stalls, stands_still):
    monkeypatch.setattr("drone_bridge.dronegui.server.buttons.elapsed_s", time.monotonic)
    node = PlainNode()
    buttons = ServiceButtons(node, {name: name for name in ("takeoff", "land", "reset", "hover")}, lambda name: None)
    for name in ("takeoff", "reset", "land"):
        buttons.press(name)
    buttons.hold_hover(True)
    if stands_still:
        stalls.happen()
    node.spin()
    assert [name for name, _ in node.called] == [*([] if stands_still else ["takeoff", "reset"]), "land", "hover"]
    assert node.statistics.counts["refused presses"] == (2 if stands_still else 0)


@pytest.mark.parametrize("stands_still", [False, True])
def test_requests_of_an_operator(monkeypatch, stalls, stands_still):
    monkeypatch.setattr("drone_bridge.ros.service_caller.elapsed_s", time.monotonic)
    node, answers = PlainNode(), []
    drone = ServiceCaller(node, {"takeoff": "takeoff", "land": "land"}, 15.0)
    for name in ("takeoff", "land"):
        drone.ask(name, lambda is_success, sentence: answers.append((is_success, sentence)))
    if stands_still:
        stalls.happen()
    node.spin()
    assert [name for name, _ in node.called] == [*([] if stands_still else ["takeoff"]), "land"]
    assert answers[:1] == ([(False, "the server has just stood still")] if stands_still else answers[:1])


def test_requests_that_wait_for_their_turn():
    requests = RequestsInTurn(late_answer_s=2.0)
    for request in ("greeting", "takeoff", "land", "reset"):
        requests.ask(request, timeout_s=10.0)
    assert requests.due(0.0) == "greeting"
    assert requests.forget(lambda request: request != "land") == ["takeoff", "reset"]
    assert requests.answered() == "greeting"  # which is on its way
    assert (requests.due(1.0), requests.answered(), requests.is_idle) == ("land", "land", True)


# A bridge's presses.


def down(panel, count=1):
    """Which buttons are down in the next packets."""
    said = []
    for _ in range(count):
        said.append(panel.down(0.0))
        panel.sent(said[-1], 0.0, was_refused=False)
    return said


def test_a_press_that_no_packet_has_said_yet(stalls):
    panel = ButtonPanel()
    panel.is_open = True
    assert down(panel) == [set()]
    press = panel.press("reset", hold_s=0.0)
    stalls.happen()
    assert down(panel, 5) == 5 * [set()]
    assert (press.is_over, press.was_sent, press.is_outdated) == (True, False, True)


def test_a_press_that_has_begun_is_completed_and_released(stalls):
    panel = ButtonPanel()
    panel.is_open = True
    press = panel.press("take_off", hold_s=0.0)
    assert down(panel) == [{"take_off"}]
    stalls.happen()
    assert down(panel, PACKETS_PER_LEVEL) == [*(PACKETS_PER_LEVEL - 1) * [{"take_off"}], set()]
    down(panel, PACKETS_PER_LEVEL)
    assert press.was_released


#: Of which flight commands, and whether navdata has shown the drone in it since; else a person has said so before.
STATES = [
    ("take_off", FlightState.LANDED, True),
    ("reset", FlightState.HOVERING, True),
    ("land", FlightState.HOVERING, False),
    ("land", FlightState.HOVERING, True),
]


@pytest.mark.parametrize("stands_still", [False, True])
@pytest.mark.parametrize(("name", "state", "is_seen"), STATES)
def test_a_flight_command_that_waits_for_the_link(stalls, name, state, is_seen, stands_still):
    """The button of a landing means a take-off by then, if somebody else has landed the drone."""
    is_refused = stands_still and not (name == "land" and is_seen)
    panel, watch = ButtonPanel(), FlightWatch(lambda: 1.0)

    class Waits:
        async def until(self, condition, timeout_s):
            if not panel.is_open:
                panel.is_open = True
                if is_seen:
                    watch.note(state)
                else:
                    watch.assume(state.is_airborne, Source.PERSON)
                if stands_still:
                    stalls.happen()
                return True
            raise InterruptedError("it is pressed")

    node = SimpleNamespace(
        parameters={"press_time": 0.0, "navdata_timeout": 1.0, "confirm_timeout": 1.0, "bootstrap": False}
    )
    commands = FlightCommands(node, panel, watch, Waits(), lambda _: None, expects_link=lambda: True)
    command = getattr(commands, name)()
    with pytest.raises(ValueError if is_refused else InterruptedError, match=r"stood still|it is pressed"):
        command.send(None)
    assert bool(down(panel)[0]) == (not is_refused)


# Streams of commands.


class Taking(PlainNode):
    """Keeps the callbacks of subscriptions, by topic."""

    def __init__(self):
        super().__init__(frame_prefix="")
        self.observed, self.take = ObservedMotion(time.monotonic), {}

    def make_subscription(self, kind, topic, callback, qos):
        self.take[topic] = callback

    def get_logger(self):
        return None

    def undelivered(self, topic):
        return None


COMMANDS = {
    "cmd_vel": twist(forward=1.0),
    "cmd_vel_stamped": TwistStamped(twist=twist(forward=1.0)),
    "~/helm": TwistStamped(twist=twist(forward=1.0)),
    "cmd_axes": CommandAxes(pitch=1.0),
    "cmd_rates": CommandRates(thrust=1.0),
}


@pytest.mark.parametrize("topic", COMMANDS)
def test_commands_of_every_stream(stalls, topic):
    node = Taking()
    commands = CommandTopics(node, now=Time)
    commands.take_velocities(lambda velocity: (velocity, True))
    for raw in ("cmd_axes", "cmd_rates"):
        commands.take(raw, type(COMMANDS[raw]), lambda message: message)
    node.take[topic](COMMANDS[topic])
    assert commands.arbiter.newest is not None
    commands.arbiter.forget()
    stalls.happen()
    for _ in range(2):
        node.take[topic](COMMANDS[topic])
    assert commands.arbiter.newest is None
    assert "this process stood still" in node.warned[-1]
    stalls.resumed_s -= 1.0  # a second later
    node.take[topic](COMMANDS[topic])
    assert commands.arbiter.newest.command not in (None, Twist())
