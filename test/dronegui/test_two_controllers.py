# SPDX-License-Identifier: Apache-2.0
"""A bridge and another controller of one GUI: sessions, the GUI and its drone in virtual time."""

import json

import pytest
from test_controller_session import GUI, Talk, outcome

from drone_bridge.ar_drone.flight import STEP_RATE, ArDroneFlight, FlightPhase
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
        self.other = None
        self.open()
        self.fly(0.5)
        self.ask("takeoff")
        self.fly(4.0)
        assert self.flight.phase is FlightPhase.FLYING

    def take(self, actions):
        self.actions += actions
        for action in actions:
            if isinstance(action, Send):
                self.gui.receive(action.data, BRIDGE, self.flight.time)
        return actions

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
    scene.fly(2.0)
    assert not scene.flight.is_hovering
    return scene


def numbers(actions):
    return [json.loads(action.data)["seq"] for action in actions if isinstance(action, Send)]


@pytest.mark.parametrize("theirs", [{"hover": True}, {"pitch": 0.3}])
@pytest.mark.parametrize("stop", ["hover", "hold"])
def test_after_a_packet_with_a_higher_number_a_person_s_stop_gets_through(scene, theirs, stop):
    """And whoever resumes steers."""
    scene.send_other(**theirs)
    scene.pilot.wanted = None if theirs.get("pitch") else FORWARD
    scene.fly(5.0)
    assert scene.flight.is_hovering == bool(theirs.get("hover"))  # the bridge is ignored
    scene.pilot.rank, scene.is_hover_held = Rank.HOLD if stop == "hold" else Rank.COMMAND, stop == "hover"
    scene.pilot.wanted = None
    scene.fly(0.5)
    assert scene.flight.is_hovering
    scene.pilot.rank, scene.is_hover_held, scene.pilot.wanted = Rank.COMMAND, False, FORWARD
    scene.fly(0.5)
    assert not scene.flight.is_hovering


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
    scene.ask(name)
    actions = scene.fly(0.3)
    assert scene.flight.phase in phases
    assert numbers([*actions, *scene.fly(20.0)]).count(1) == 1


def test_a_takeoff_gets_through():
    scene = Scene()
    scene.ask("land")
    scene.fly(10.0)
    scene.send_other(hover=True)
    scene.ask("takeoff")
    assert outcome(scene.fly(5.0))[0]
