# SPDX-License-Identifier: Apache-2.0
"""Landing of a drone whose telemetry has ceased, by telemetry_bridge's session, with a fake clock."""

import pytest
from controller_talk import PERIOD_S, A, Talk
from limited_vehicle import LANDS_AFTER_S, LimitedVehicle, landing_state
from session_talk import documents
from telemetry_documents import HOVER

from drone_bridge.motion.limits import LONGEST_LANDING_S
from drone_bridge.session.session import FINAL_REPEATS, Landing
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.telemetry.codec import COMMAND_TOPIC, DRONE_TOPIC, MAX_THRUST
from drone_bridge.telemetry.units import LANDING_DRONE

#: 0.5 m/s.
SINKS = HOVER | {"thrust": -0.2 * MAX_THRUST}
HEIGHT_M = 4.0
#: Time for that height, and a margin.
LANDING_S = HEIGHT_M / 0.5 + 10.0


class LandingTalk(Talk):
    """Session with limits, which get the height of each document."""

    def __init__(self, **options):
        self.vehicle = LimitedVehicle(lambda: self.now_s, sinks=True)
        super().__init__(**options)
        self.session._pilot = TiltPilot(self.vehicle.arbiter, LANDING_DRONE, hovers=False)

    def fly(self, seconds, source=A, height=HEIGHT_M, **values):
        """Send telemetry from a source."""
        for _ in range(round(seconds / PERIOD_S)):
            self.run(PERIOD_S)
            self.hear(source, altimeter__altitude=height, **values)
            self.vehicle.report(height)


def moves(actions, to=A):
    """Return the commands that are not neutral."""
    return [each for each in documents(actions, to) if each != HOVER]


@pytest.fixture
def talk():
    talk = LandingTalk()
    talk.fly(3.0)
    return talk


def test_a_silent_drone_sinks_level_until_it_must_be_on_the_ground(talk):
    assert moves(talk.run(LANDS_AFTER_S - 0.1)) == []
    landing = talk.run(0.2)
    assert moves(landing)[0] == SINKS
    assert landing_state(talk) == (True, Landing.LANDS)
    sinking = moves(talk.run(LANDING_S - 1.0))
    assert sinking == [SINKS] * len(sinking)
    assert len(sinking) == pytest.approx(25.0 * (LANDING_S - 1.0), abs=2)
    talk.run(2.0)
    assert documents(talk.actions, A)[-FINAL_REPEATS:] == [HOVER] * FINAL_REPEATS
    assert moves(talk.run(100.0)) == []
    assert landing_state(talk) == (True, Landing.SILENT)


def test_a_high_drone_sinks_for_a_minute_at_most(talk):
    talk.fly(0.2, height=400.0)
    sinking = moves(talk.run(1000.0))
    assert len(sinking) == pytest.approx(25.0 * LONGEST_LANDING_S, abs=3)


def test_telemetry_ends_a_landing(talk):
    talk.run(LANDS_AFTER_S + 1.0)
    talk.fly(0.2)
    assert talk.session.state == "connected"
    talk.fly(1.0)
    assert not landing_state(talk)[0]
    assert moves(talk.run(0.5)) == []


@pytest.mark.parametrize("values", [{"landed": True}], ids=["landed"])
def test_a_drone_on_the_ground_is_not_landed(talk, values):
    talk.fly(0.2, **values)
    assert moves(talk.run(100.0)) == []
    talk.fly(0.2, **values)
    talk.run(LANDS_AFTER_S + 0.1)
    assert landing_state(talk) == (True, Landing.GROUNDED)


def test_a_sender_of_a_moment_is_not_landed():
    talk = LandingTalk()
    talk.fly(1.0)
    assert moves(talk.run(LANDS_AFTER_S + 0.1)) == []
    assert landing_state(talk) == (True, Landing.SILENT)
    assert moves(talk.run(100.0)) == []


def test_a_called_drone_is_landed_instead_of_called():
    talk = LandingTalk(called=lambda: A)
    talk.take(talk.session.opened(talk.now_s))
    talk.fly(0.2)
    talk.run(LANDS_AFTER_S + 0.1)
    assert landing_state(talk) == (True, Landing.LANDS)
    assert documents(talk.run(5.0), A) == [SINKS] * 125
    calls = documents(talk.run(100.0), A)
    assert calls[-1] == HOVER
    assert len(calls) < 25 * LANDING_S + 60


@pytest.mark.parametrize("before", [True, False])
def test_a_hold_ends_a_landing_and_its_release_continues_it(talk, before):
    if before:
        talk.vehicle.hold.hold("STOP")
    talk.run(LANDS_AFTER_S + 1.0)
    if not before:
        talk.vehicle.hold.hold("STOP")
        assert documents(talk.run(0.2), A)[-FINAL_REPEATS:] == [HOVER] * FINAL_REPEATS
    assert moves(talk.run(2.0)) == []
    talk.vehicle.hold.release(talk.now_s)
    assert moves(talk.run(1.0))[-1] == SINKS


def test_a_drone_that_was_never_heard_is_not_landed():
    talk = LandingTalk()
    talk.take(talk.session.opened(talk.now_s))
    talk.vehicle.report()
    assert moves(talk.run(100.0)) == []
    assert talk.session.landing(talk.now_s) is Landing.DISCONNECTED


def test_a_landing_on_topics_continues_the_commands():
    talk = LandingTalk(by_topics=True)
    talk.take(talk.session.opened(talk.now_s))
    talk.fly(3.0, DRONE_TOPIC)
    talk.run(LANDS_AFTER_S + 1.0)
    assert landing_state(talk) == (True, Landing.LANDS)
    assert all(each["thrust"] < 0.0 for each in documents(talk.run(5.0), COMMAND_TOPIC))
