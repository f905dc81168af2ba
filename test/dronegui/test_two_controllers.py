# SPDX-License-Identifier: Apache-2.0
"""A bridge and another controller of one GUI: sessions, the GUI and its drone in virtual time."""

import json

import pytest
from test_controller_session import GUI, URGENT, Talk, outcome

from drone_bridge.ar_drone.flight import STEP_RATE, ArDroneFlight, FlightPhase
from drone_bridge.dronegui.codec import LatePacket
from drone_bridge.dronegui.vehicle.device import Gui, GuiDialect
from drone_bridge.dronegui.vehicle.emulator.navdata import blocks
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.session import Send

BRIDGE, OTHER = ("127.0.0.1", 50000), ("127.0.0.1", 50001)
FORWARD = Shares(pitch=0.1)


class Scene(Talk):
    """Bridge in flight."""

    def __init__(self):
        super().__init__()
        self.flight = ArDroneFlight()
        self.gui = Gui(self.flight, GuiDialect(is_bootstrapped=True))
        self.other, self.lost_left = None, 0
        self.flight.phase, self.flight.position[2] = FlightPhase.FLYING, 1.0
        self.open()
        self.fly(0.5)

    def take(self, actions):
        self.actions += actions
        for action in actions:
            if isinstance(action, Send):
                self.deliver(action.data)
        return actions

    def deliver(self, datagram):
        """Receive a datagram of the bridge, or lose it."""
        self.lost_left, is_lost = max(0, self.lost_left - 1), self.lost_left > 0
        if not is_lost:
            self.gui.receive(datagram, BRIDGE, self.flight.time)

    def kill(self):
        """Send the last words, as by another process."""
        for datagram in self.session.last_words().neutral:
            self.deliver(datagram)

    def fly(self, seconds):
        """Advance the time of the drone, its GUI, the bridge and the other controller, at 100 Hz."""
        before = len(self.actions)
        for step in range(round(STEP_RATE * seconds)):
            self.flight.advance(1 / STEP_RATE)
            if self.other and step % 5 == 0:
                self.send_other(**self.other)
            if self.gui.navdata_is_due(self.flight.time):
                for block in blocks(self.flight, step):
                    self.take(self.session.receive(self.gui.navdata(block), GUI, self.now_s))
            self.run(1 / STEP_RATE)
        return self.actions[before:]

    def send_other(self, seq=1e6, **state):
        full = {"take_off": False, "reset": False, "hover": False, "roll": 0, "pitch": 0, "yaw": 0, "gas": 0, **state}
        self.gui.receive(json.dumps({"seq": seq, "state": full}).encode(), OTHER, self.flight.time)


@pytest.fixture
def scene():
    """Return a scene in which the drone follows the bridge."""
    scene = Scene()
    scene.pilot.wanted = FORWARD
    scene.fly(0.2)
    assert not scene.flight.is_hovering
    return scene


def numbers(actions):
    return [json.loads(action.data)["seq"] for action in actions if isinstance(action, Send)]


def holds(scene):
    scene.pilot.rank, scene.pilot.wanted = Rank.HOLD, None


def holds_hover(scene):
    scene.is_hover_held = True


def releases_the_stick(scene):
    scene.pilot.wanted = None


def cuts_the_motors(scene):
    scene.ask("emergency")


def cuts_the_motors_and_ends(scene):
    scene.ask("emergency")
    scene.take(scene.session.end(scene.now_s))


def cuts_the_motors_and_is_killed(scene):
    scene.lost_left = len(URGENT) + 1
    scene.ask("emergency")
    scene.kill()
    scene.run = lambda seconds: None


def lands(scene):
    scene.ask("land")


def ends(scene):
    scene.take(scene.session.end(scene.now_s))


def loses_the_link(scene):
    scene.lose()


def is_killed(scene):
    scene.kill()
    scene.run = lambda seconds: None


def stray_packet(scene):
    scene.send_other(pitch=-0.3)


def stray_packet_and_loss(scene):
    scene.send_other(pitch=-0.3)
    scene.lost_left = 1


def third_controller(scene):
    """It has lower numbers, and goes on."""
    scene.send_other(pitch=-0.3)
    scene.other = {"seq": 2, "pitch": 0.3}


def stall(scene):
    scene.send_other(pitch=-0.3)
    scene.stall(0.5)


def reconnection(scene):
    scene.lose()
    scene.send_other(pitch=-0.3)
    scene.open_again(0.1)


@pytest.mark.parametrize("hindered", [stray_packet, stray_packet_and_loss, third_controller, stall, reconnection])
@pytest.mark.parametrize(
    ("act", "phases"),
    [
        (holds, ()),
        (holds_hover, ()),
        (releases_the_stick, ()),
        (ends, ()),
        (loses_the_link, ()),
        (is_killed, ()),
        (lands, (FlightPhase.LANDING, FlightPhase.LANDED)),
        (cuts_the_motors, (FlightPhase.EMERGENCY,)),
        (cuts_the_motors_and_ends, (FlightPhase.EMERGENCY,)),
        (cuts_the_motors_and_is_killed, (FlightPhase.EMERGENCY,)),
    ],
)
def test_each_stop_gets_through_by_itself(scene, hindered, act, phases):
    """Within two packets. No detector is needed that the GUI ignores the bridge."""
    hindered(scene)
    scene.fly(0.3)
    assert not scene.flight.is_hovering
    act(scene)
    scene.fly(0.1)
    assert scene.flight.phase in phases if phases else scene.flight.is_hovering


@pytest.mark.parametrize("theirs", [{"hover": True}, {"pitch": 0.3}])
@pytest.mark.parametrize("stop", ["hover", "hold"])
def test_after_a_packet_with_a_higher_number_a_person_s_stop_gets_through(scene, theirs, stop):
    """And whoever resumes steers."""
    scene.send_other(**theirs)
    scene.fly(5.0)
    assert scene.flight.is_hovering == bool(theirs.get("hover"))  # the bridge is ignored
    scene.pilot.rank, scene.is_hover_held = Rank.HOLD if stop == "hold" else Rank.COMMAND, stop == "hover"
    scene.pilot.wanted = None
    scene.fly(0.5)
    assert scene.flight.is_hovering
    scene.pilot.rank, scene.is_hover_held, scene.pilot.wanted = Rank.COMMAND, False, FORWARD
    scene.fly(0.5)
    assert not scene.flight.is_hovering


def test_a_controller_with_lower_numbers_never_gets_in(scene):
    third_controller(scene)
    holds(scene)
    scene.fly(0.1)
    received, receive = [], scene.gui.receive
    scene.gui.receive = lambda data, source, now_s: received.append((source, receive(data, source, now_s)))
    for scene.pilot.rank in (Rank.COMMAND, Rank.HOLD) * 4:
        scene.pilot.wanted = FORWARD if scene.pilot.rank is Rank.COMMAND else None
        scene.fly(0.17)
    theirs = [type(event) for source, event in received if source == OTHER]
    assert len(theirs) > 20
    assert set(theirs) == {LatePacket}


@pytest.mark.parametrize("is_going_on", [False, True])
@pytest.mark.parametrize(
    ("name", "phases"),
    [("land", (FlightPhase.LANDING, FlightPhase.LANDED)), ("emergency", (FlightPhase.EMERGENCY,))],
)
def test_a_press_gets_through_once(scene, name, phases, is_going_on):
    """A controller that goes on may be a safety pilot's: otherwise it is not fought."""
    scene.other = {"pitch": 0.1} if is_going_on else None
    scene.send_other(pitch=0.1)
    before = numbers(scene.fly(20.0))
    assert 1 not in before
    actions = [*scene.ask(name), *scene.fly(0.3)]
    assert scene.flight.phase in phases
    assert numbers([*actions, *scene.fly(20.0)]).count(1) == len(URGENT)


def test_a_takeoff_gets_through():
    scene = Scene()
    scene.ask("land")
    scene.fly(10.0)
    scene.send_other(hover=True)
    scene.ask("takeoff")
    assert outcome(scene.fly(5.0))[0]
