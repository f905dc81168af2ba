# SPDX-License-Identifier: Apache-2.0
"""Two actors at once, each case as short as it can be. `make lives SEVERAL=1` lets them come by chance."""

import math

import pytest
from actors import PILOT
from home import Home, live
from house import built
from intent import CMD_VEL, HELM
from kinds import KINDS
from vehicle import ZERO, Told
from virtual_time import VirtualTime

SECONDS = 45.0


def beside(first, second):
    """Return acts of which the second begins while the first goes on."""

    def act(user):
        user._acts.play(first(user))
        yield 2.0
        yield from second(user)
        yield 6.0

    return act


def published(topic, velocity, seconds, name="program", rate=20.0, offset_s=0.0):
    return lambda user: user.publish(name, topic, rate, [(velocity, seconds)], offset_s)


def stalled(user):
    user._acts.play(user.stalled(2.0))
    yield 0.5
    yield from user.publish("person", HELM, 20.0, [(Told(0.4), 0.6)])


def goal(user):
    """A goal is sent, reached, and held."""
    user._rng.choice = lambda values: values[-1]
    yield from user.goal()


BACKWARDS = published(CMD_VEL, Told(-0.3), 12.0)
CASES = {
    **{
        f"helm with a clock {offset_s:+} s off": beside(
            BACKWARDS, published(topic, Told(0.4), 4.0, "person", 20.0, offset_s)
        )
        for topic, offset_s in ((HELM, 0.2), (PILOT, 0.2), (HELM, -1.0), (PILOT, 3600.0))
    },
    "helm in a stall": beside(BACKWARDS, stalled),
    "two programs": beside(published(CMD_VEL, Told(0.3), 15.0), published(CMD_VEL, Told(-0.3), 13.0, "other")),
    "two programs of other rates": beside(
        published(CMD_VEL, Told(0.3), 15.0, rate=50.0), published(CMD_VEL, Told(-0.3), 13.0, "other", 10.0)
    ),
    "a program beside a goal under way": beside(goal, published(CMD_VEL, Told(0.2), 30.0)),
    "a program beside a reached goal": beside(
        goal, lambda user: delayed(user, 10.0, published(CMD_VEL, Told(0.2), 15.0))
    ),
    "an idle program beside a goal": beside(published(CMD_VEL, ZERO, 30.0), goal),
    "two people": beside(published(PILOT, Told(0.4), 12.0, "anna"), published(PILOT, Told(-0.4), 12.0, "bert")),
    "two people, one without a name": beside(
        published(HELM, Told(0.4), 12.0, "anna"), published(PILOT, Told(-0.4), 12.0, "bert")
    ),
}


def delayed(user, seconds, act):
    yield seconds
    yield from act(user)


@pytest.mark.parametrize("case", CASES)
def test_two_actors_at_once(case):
    life = VirtualTime(4)
    with built(life):
        home = Home(life, KINDS["robot"], mean_s=math.inf, limit=0, are_several=True)
        home.begin()
        life.run(20.0)
        home.acts.play(CASES[case](home.user))
        life.run(SECONDS)
        truth = home.user.truth
    assert not truth.first
    assert sum(truth.checks.values()) > 0


@pytest.mark.parametrize("kind", ["robot", "tello"])
def test_several_by_chance(kind):
    home, fault = live(KINDS[kind], 11, 0.05, mean_s=math.inf, are_several=True)
    assert not fault
    assert not home.user.truth.first
