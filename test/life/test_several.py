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


def steered(number, speed):
    """A person steers by a page, of the second server if it is the last one."""

    def act(user):
        page = user._pages[number]
        yield from user._taken(page)
        page.stick = {"x": speed}
        yield 12.0
        page.request("release")

    return act


SERVERS = "one server", "two servers"
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
    "two people": beside(steered(0, 0.4), published(HELM, Told(-0.4), 12.0, "person")),
    **{f"pages of {of}": beside(steered(0, 0.4), steered(1 + (of != "one server"), -0.4)) for of in SERVERS},
    "a page is lost": beside(steered(0, 0.4), lambda user: user._lost(user._pages[0], 8.0)),
    "a server is lost": beside(steered(0, 0.4), lambda user: user.kill_server()),
    "STOP on another server's page": beside(steered(0, 0.4), lambda user: user.stop()),
}


def delayed(user, seconds, act):
    yield seconds
    yield from act(user)


@pytest.mark.parametrize("case", CASES)
def test_two_actors_at_once(case):
    life, ended = VirtualTime(4), []

    def act(user):
        yield from CASES[case](user)
        ended.append(case)

    with built(life):
        home = Home(life, KINDS["robot"], mean_s=math.inf, limit=0, are_several=True)
        home.begin()
        life.run(8.0)
        home.acts.play(act(home.user))
        while not ended:
            life.run(1.0)
        truth = home.user.truth
    assert not truth.first
    assert sum(truth.checks.values()) > 0


def test_several_by_chance():
    home, fault = live(KINDS["tello"], 11, 0.03, mean_s=math.inf, are_several=True)
    assert not fault
    assert not home.user.truth.first
