# SPDX-License-Identifier: Apache-2.0
"""A bridge and another controller of one GUI: sessions, the GUI and its drone in virtual time."""

import json

import pytest
from session_talk import notes
from test_controller_session import GUI, Talk, outcome

from drone_bridge.ar_drone.flight import STEP_RATE, ArDroneFlight, FlightPhase
from drone_bridge.dronegui.codec import Controls, FlightState
from drone_bridge.dronegui.session.controller import OVERRULED
from drone_bridge.dronegui.session.follow_watch import FollowWatch
from drone_bridge.dronegui.vehicle.device import Gui, GuiDialect
from drone_bridge.dronegui.vehicle.emulator.navdata import blocks
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.session import Send

BRIDGE, OTHER = ("127.0.0.1", 50000), ("127.0.0.1", 50001)
FORWARD = Shares(pitch=0.1)


class Scene(Talk):
    """Bridge in flight, with navdata delayed by `late_s`."""

    def __init__(self, late_s=0.0):
        super().__init__()
        self.late_s = late_s
        self.flight = ArDroneFlight()
        self.gui = Gui(self.flight, GuiDialect(is_bootstrapped=True))
        self.navdata, self.other = [], None
        self.open()
        self.fly(0.5 + late_s)
        self.ask("takeoff")
        self.fly(4.0 + late_s)
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
                datagrams = [self.gui.navdata(block) for block in blocks(self.flight, step)]
                self.navdata += [(self.now_s + self.late_s, datagram) for datagram in datagrams]
            while self.navdata and self.navdata[0][0] <= self.now_s:
                self.take(self.session.receive(self.navdata.pop(0)[1], GUI, self.now_s))
            self.run(1 / STEP_RATE)
        return self.actions[before:]

    def follow_us(self):
        """Steer and stop, as in any flight."""
        for wanted in (FORWARD, None, FORWARD):
            self.pilot.wanted = wanted
            self.fly(2.0)
        assert numbers(self.actions).count(1) == 1

    def send_other(self, seq=1e6, **state):
        full = {"take_off": False, "reset": False, "hover": False, "roll": 0, "pitch": 0, "yaw": 0, "gas": 0, **state}
        self.gui.receive(json.dumps({"seq": seq, "state": full}).encode(), OTHER, self.flight.time)


@pytest.fixture
def scene():
    """Return a scene in which the drone follows the bridge."""
    scene = Scene()
    scene.follow_us()
    return scene


def numbers(actions):
    return [json.loads(action.data)["seq"] for action in actions if isinstance(action, Send)]


PATIENCE_S = 5.0  # confirm_timeout


@pytest.mark.parametrize("theirs", [{"hover": True}, {"pitch": 0.3}])
def test_packet_with_a_higher_number_locks_out_the_bridge_briefly(scene, theirs):
    """After that the drone hovers until a person resumes steering."""
    scene.send_other(**theirs)
    scene.pilot.wanted = None if theirs.get("pitch") else FORWARD
    scene.fly(PATIENCE_S - 0.5)
    assert scene.flight.is_hovering == bool(theirs.get("hover"))
    actions = scene.fly(1.5)
    assert (numbers(actions).count(1), len(notes(actions, OVERRULED))) == (1, 1)
    assert scene.flight.is_hovering
    assert scene.session.problems[2]
    scene.pilot.wanted = FORWARD
    scene.fly(10.0)
    assert scene.flight.is_hovering
    scene.take(scene.session.steer_again(scene.now_s))
    scene.fly(1.0)
    assert not scene.flight.is_hovering
    assert scene.session.problems[2] == ""


def test_without_another_controller_what_follows_a_lost_packet_1_is_obeyed(scene):
    """The way to the GUI was broken, as it may be for one direction of a network."""
    hear, scene.gui.receive = scene.gui.receive, lambda *packet: None
    scene.pilot.wanted = None
    actions = scene.fly(PATIENCE_S + 2.0)
    assert (numbers(actions).count(1), scene.flight.is_hovering) == (1, False)
    scene.gui.receive = hear
    scene.fly(0.5)
    assert scene.flight.is_hovering


def test_a_resume_after_a_hold_steers_again_and_taking_no_hold_does_not(scene):
    scene.send_other(hover=True)
    scene.fly(PATIENCE_S + 1.0)
    scene.pilot.rank, scene.pilot.wanted = Rank.HOLD, None
    scene.fly(0.5)
    scene.pilot.rank, scene.pilot.wanted = Rank.COMMAND, FORWARD
    scene.fly(0.5)
    assert not scene.flight.is_hovering


@pytest.mark.parametrize("theirs", [{"hover": True}, {"pitch": 0.3}])
def test_a_landing_gets_through(theirs):
    scene = Scene()
    scene.send_other(**theirs)
    scene.ask("land")
    actions = scene.fly(PATIENCE_S + 2.0)
    assert outcome(actions)[0]
    assert scene.flight.phase in (FlightPhase.LANDING, FlightPhase.LANDED)


def test_a_controller_that_goes_on_is_not_fought(scene):
    """It may be a safety pilot's. A requested landing is tried once."""
    scene.other = {"hover": True}
    actions = scene.fly(60.0)
    assert (numbers(actions).count(1), len(notes(actions, OVERRULED))) == (1, 1)
    scene.ask("land")
    actions = scene.fly(20.0)
    assert numbers(actions).count(1) == 1


@pytest.mark.parametrize("late_s", [0.0, pytest.param(0.6, marks=pytest.mark.exhaustive), 2.5])
@pytest.mark.parametrize("period_s", [0.5, 1.0, 4.0, 12.0])
def test_no_flight_of_its_own_is_taken_for_another_controllers(late_s, period_s):
    scene = Scene(late_s)
    for number in range(round(60.0 / period_s)):
        scene.pilot.wanted = FORWARD if number % 2 else None
        scene.fly(period_s / 2)
    assert notes(scene.actions, OVERRULED) == []
    assert numbers(scene.actions).count(1) == 1


@pytest.mark.parametrize("late_s", [0.0, 2.5])
def test_nearly_zero_axes_neither_hide_nor_fake_another_controller(late_s):
    scene = Scene(late_s)
    for wanted in (FORWARD, None, FORWARD):
        scene.pilot.wanted = wanted
        scene.fly(4.0)
    blips = [Shares(), FORWARD] * 20
    for scene.pilot.wanted in blips:
        scene.fly(0.4)
    assert notes(scene.actions, OVERRULED) == []
    scene.send_other(hover=True)
    for scene.pilot.wanted in blips:
        scene.fly(0.4)
    assert len(notes(scene.actions, OVERRULED)) == 1


def test_axes_next_to_zero_show_nothing(scene):
    scene.pilot.wanted = Shares()
    scene.send_other(hover=True)
    assert notes(scene.fly(2 * PATIENCE_S), OVERRULED) == []


@pytest.mark.parametrize("state", [FlightState.FLYING, FlightState.HOVERING])
def test_a_drone_that_reports_one_state_for_both_shows_nothing(state):
    watch = FollowWatch()
    for second in range(60):
        watch.sent(Controls() if second % 20 < 10 else Controls(hover=False, roll=0.5), float(second))
        watch.shown(state, float(second))
        assert not watch.is_overruled(PATIENCE_S)
