# SPDX-License-Identifier: Apache-2.0
"""Wishes in isolation: conditions that keep and end a hold."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from drone_bridge.ros.hold.wish_file import EVERY_VEHICLE
from drone_bridge.tools.web.wishes import RUN_S, Report, Wish, Wishes

DRONE, NODE = "/d1/cmd_vel_stamped", "/d1/bridge"


class Node:
    """Node that holds its vehicle, like ros/hold/hold.py, and may be restarted."""

    def __init__(self):
        self._runs = 0
        self.restart()

    def restart(self):
        self._runs += 1
        self.run, self.wish, self.before, self.releases, self.held, self._taken = str(self._runs), "", 0, 0, False, {}

    def take(self, id_):
        if id_ not in self._taken:
            self._taken[id_] = self.releases
            self.held = True
        self.wish, self.before = id_, self._taken[id_]

    def release(self):
        self.releases += self.held
        self.held = False

    @property
    def report(self):
        return Report(self.run, self.wish, self.before, self.releases)


class Talk:
    """One vehicle with its node, and the wish for it."""

    def __init__(self):
        self.wishes, self.node, self._ids, self.now_s = Wishes(), Node(), 0, 50.0
        self.wishes.vehicle_appeared(DRONE, [NODE])

    def make_wish(self, by="Anne"):
        self._ids += 1
        return Wish(str(self._ids), by, 1.0, 1.0)

    def want(self):
        self.wishes.want(DRONE, [NODE], self.make_wish())

    def insist(self):
        """Publish unreached wishes, if they arrive."""
        wish = self.wishes.get(DRONE)
        if wish and not wish.is_reached:
            self.node.take(wish.id)

    def report(self):
        self.now_s += 0.5
        self.wishes.reported(NODE, self.node.report, self.now_s)

    @property
    def is_reached(self):
        return self.wishes.get(DRONE).is_reached


@pytest.fixture
def talk():
    return Talk()


def test_wish_of_another_server_changes_nothing_and_later_release_ends_it(talk):
    talk.want()
    talk.insist()
    talk.report()
    talk.node.take("of another page's server")
    talk.report()
    assert talk.is_reached
    talk.node.release()
    talk.report()
    assert DRONE not in talk.wishes


def test_a_wish_is_reached_once_each_run_that_gave_a_sign_has_it(talk):
    twin, reached = Node(), []
    twin.run = "of a twin"
    talk.want()
    talk.insist()
    for second in range(4):
        if second == 2:
            twin.take(talk.wishes.get(DRONE).id)
        talk.wishes.reported(NODE, twin.report, 50.0 + second)
        talk.wishes.reported(NODE, talk.node.report, 50.0 + second)
        reached.append(talk.is_reached)
    assert reached == [False, False, True, True]


def test_a_run_that_ended_without_the_wish_counts_for_3_s(talk):
    talk.report()
    talk.want()
    talk.node.restart()
    talk.insist()
    reached = [talk.report() or (talk.now_s, talk.is_reached) for _ in range(8)]
    assert [now_s for now_s, is_reached in reached if not is_reached] == [51.0, 51.5, 52.0, 52.5, 53.0, 53.5]


def test_pressed_again_it_is_a_new_wish_of_the_same_person(talk):
    talk.want()
    talk.insist()
    talk.node.release()  # whose report is in transit
    talk.wishes.want(DRONE, [NODE], talk.make_wish("Ben"))
    talk.report()
    assert talk.wishes.get(DRONE).by == "Anne"
    assert not talk.is_reached
    talk.insist()
    talk.report()
    assert talk.node.held
    assert talk.is_reached


def test_a_wish_for_all_has_ids_and_reports_apart_for_each_vehicle(talk):
    talk.wishes.want_all(talk.make_wish())
    talk.wishes.vehicle_appeared(DRONE, [NODE])
    talk.wishes.vehicle_appeared("/d2/cmd_vel_stamped", ["/d2/bridge"])
    talk.insist()
    talk.report()
    assert [wish.is_reached for wish in talk.wishes.all().values()] == [True, False]


# The wish file.


def held_by(wishes, topic):
    """Ids of the wishes in the file that hold a vehicle of this topic."""
    return [wish.id for wish in wishes.filed() if wish.is_for({EVERY_VEHICLE, topic})]


def test_a_wish_for_all_is_in_the_file_for_vehicles_that_were_never_there(talk):
    talk.wishes.want_all(talk.make_wish())
    talk.want()
    assert held_by(talk.wishes, "/d2/cmd_vel_stamped") == ["1"]
    assert held_by(talk.wishes, DRONE) == ["2"]  # one wish per vehicle
    talk.wishes.end(DRONE)
    assert held_by(talk.wishes, DRONE) == []
    assert held_by(talk.wishes, "/d2/cmd_vel_stamped") == ["1"]
    talk.wishes.end_all()
    assert talk.wishes.filed() == []


STEPS = ["want", "insist", "report", "restart", "release", "end", "go"]


@given(st.lists(st.sampled_from(STEPS), max_size=40))
def test_wanted_vehicle_is_always_held_in_the_end_unless_released(steps):
    """Reports and wishes may be lost, late or repeated. The node may be restarted at any time."""
    talk, was_released = Talk(), False
    for step in steps:
        if step in ("want", "insist", "report"):
            getattr(talk, step)()
            was_released &= step != "want"
        elif step == "end":
            talk.wishes.end(DRONE)
        elif step == "go":
            talk.wishes.vehicle_appeared(DRONE, [NODE])
        elif step == "release":
            was_released |= talk.node.held
            talk.node.release()
        else:
            talk.node.restart()
    is_wanted = DRONE in talk.wishes
    talk.now_s += RUN_S  # former runs have ended
    for _ in range(2):
        talk.report()
        talk.insist()
    talk.report()
    if is_wanted and not was_released:
        assert talk.node.held
        assert talk.is_reached
    if DRONE in talk.wishes:
        assert talk.node.held


def test_wish_released_by_two_foreign_nodes_ends_once(talk):
    nodes, other = [NODE, "/d1/other"], Node()
    talk.wishes.vehicle_appeared(DRONE, nodes)
    talk.wishes.want(DRONE, nodes, wish := talk.make_wish())
    for name, node in zip(nodes, (talk.node, other), strict=True):
        node.take(wish.id)
        talk.wishes.reported(name, node.report, 1.0)
    talk.wishes.vehicle_appeared(DRONE, ["/d1/bridge/hold"])  # discovery has briefly lost their reports
    for name, node in zip(nodes, (talk.node, other), strict=True):
        node.release()
        talk.wishes.reported(name, node.report, 1.0)
    talk.wishes.vehicle_appeared(DRONE, nodes)
    assert DRONE not in talk.wishes
