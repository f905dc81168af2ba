# SPDX-License-Identifier: Apache-2.0
"""The first minute of each kind, and its return: it is flown or driven, stops, and is switched off and on.

Nothing of that is worth a warning, but what is true of a vehicle that is off.
"""

import math
from types import SimpleNamespace

import house
import pytest
from home import Home
from intent import CMD_VEL, STAMPED
from kinds import KINDS
from pilot import LONGEST_S
from record import told
from std_srvs.srv import SetBool
from vehicle import Told
from virtual_time import VirtualTime

#: Velocities, and the time of each, s.
WAY = (Told(0.3), 3.0), (Told(0.2, turn=0.3), 2.0), (Told(turn=-0.5), 1.0)
#: Warnings that are meant: of a robot without a watchdog, and of an AR.Drone without its control port, as here.
MEANT = "has no watchdog", "settings can't be read back"
#: Warnings about a vehicle that is off, or has just returned.
TRUE_OF_AN_OUTAGE = (
    "can't be reached", "has been silent for", "was silent for", "closed the connection", "own pose began again",
    "No telemetry was received", "has sent no navdata", "sends no navdata", "has not answered ESET",
)  # fmt: skip
OFF_S = 10.0
FLIGHT, LANDING = (("take_off", {"height": 1.0}), ("go_to", {"to": (1.0, 0.5, 1.5)})), ("land", {})


def minute(home, successes):
    """Fly or send it somewhere, command it on both topics, and leave it."""
    follow, allows = home.pilot.follow, home.vehicle.allows
    yield 3.0
    if allows("fly"):
        successes.append((yield from follow(*FLIGHT, LANDING)))
        successes.append((yield from follow(FLIGHT[0])))
    for topic in (CMD_VEL, STAMPED):
        for velocity, seconds in WAY:
            yield from home.user.stream(topic, velocity, seconds)
    yield 2.0
    if allows("fly") or allows("go"):
        successes.append((yield from follow(LANDING if allows("fly") else ("go_to", {"to": (1.0, 0.5, 0.0)}))))
    successes.append(True)


def outage(vehicle):
    vehicle.switch_off(closes=True)
    yield OFF_S
    vehicle.switch_on()


def returns(home, said):
    """Switch the vehicle off and on, and then start the bridge anew. Drive it after each, and take what was said."""
    for name, events in {"outage": outage(home.vehicle), "restart": home.nature.restart_bridge()}.items():
        yield from home.nature.disturb(name, events)
        yield home.vehicle.RECONNECTS_S
        said[name] = untrue(home, TRUE_OF_AN_OUTAGE if name == "outage" else ())
        yield from home.user.stream(CMD_VEL, Told(0.2), 3.0)
        yield 3.0
        said[f"after the {name}"] = untrue(home, ("the drone is on the ground",))


def untrue(home, allowed):
    """Return the warnings since the last call that are neither meant nor allowed."""
    warnings = [line for _, level, line in home.lines if level != "info"]
    home.lines.clear()
    return [line for line in warnings if not any(each in line for each in (*MEANT, *allowed))]


@pytest.mark.parametrize("kind", KINDS)
def test_first_minute_and_a_return_have_no_warning_that_is_untrue(kind):
    life, successes, said = VirtualTime(1), [], {}
    with house.built(life):
        home = Home(life, KINDS[kind], mean_s=math.inf, limit=0)
        home.pilot.cancels_s = (LONGEST_S,)
        home.begin()
        home.acts.play(minute(home, successes))
        life.run(120.0)
        assert successes, told(home)
        assert all(successes), told(home)
        assert untrue(home, ()) == []
        home.acts.play(returns(home, said))
        life.run(150.0)
        assert [*said.values()] == [[], [], [], []]


def test_diagnostics_show_a_hold_and_a_resume_at_once():
    life, shown = VirtualTime(1), []
    with house.built(life):
        home = Home(life, KINDS["robot"], mean_s=math.inf, limit=0)
        home.begin()
        seen = SimpleNamespace(put=lambda message: shown.append(message.status[0].message), is_latched=False)
        home.graph.subscriptions["/diagnostics"].append(seen)
        life.run(5.3)
        for held in (True, False, True, False):
            home.graph.call(home.topic("~/hold"), SetBool.Request(data=held), lambda response: None)
            life.run(0.05)
            assert ("holding" in shown[-1]) is held
