# SPDX-License-Identifier: Apache-2.0
"""Leases of helms, STOP, and what pages read about them. No socket, and a fake clock."""

import contextlib
from dataclasses import replace
from types import SimpleNamespace

import pytest
from builtin_interfaces.msg import Time

from drone_bridge.msg import HoldStatus
from drone_bridge.ros.hold.wish_file import FiledWish
from drone_bridge.session.hold_state import ANONYMOUS, HELM_ENDS_AFTER_S, HelmPilot
from drone_bridge.tools.web.announcements import Announcements
from drone_bridge.tools.web.fleet import Fleet
from drone_bridge.tools.web.helm import ASK_S, LEASE_S, MAX_AGE_S, NEUTRAL, HelmRefusedError
from drone_bridge.tools.web.helm_leases import CONFIRMED_WITHIN_S, ELSEWHERE, HELM_ENDS_WITHIN_S, HelmLeases
from drone_bridge.tools.web.stop_requests import HELM_TAKEN_S, MAX_WANTED, STOP_TIMEOUT_S, StopRequests
from drone_bridge.tools.web.vehicles import SteeredVehicle
from drone_bridge.tools.web.wishes import RUN_S, Wishes

TOPIC, NODE = "/dronegui/cmd_vel_stamped", "/dronegui/dronegui_bridge"
DRONE = SteeredVehicle(TOPIC, "dronegui_bridge", holds=(f"{NODE}/hold",))
REPORTING = replace(DRONE, reporters=(NODE,))
FOREIGN = SteeredVehicle(TOPIC, "somebodys_bridge")
ROVER = SteeredVehicle("/rover/cmd_vel_stamped", "robot_bridge", holds=("/rover/robot_bridge/hold",))
GONE = [{"topic": TOPIC, "name": "dronegui"}]
ANNE, BEN = 1, 2
FORWARD = (1.0, 0.0, 0.0, 0.0)


class Pages:
    """Two pages. `done` has their requests to vehicles, `told` what Anne's page has read."""

    def __init__(self):
        self.now_s, self.done, self.wishes, self.answers, self.notices, self.filed = 100.0, [], [], [], [], []
        self.asked = []  # of other servers' pilots
        self.writer = SimpleNamespace(problem="", keep=self.filed.append)
        wishes = Wishes()
        ask, notify = lambda *asked: self.asked.append(asked), lambda *notice: self.notices.append(notice)
        self.helms = HelmLeases(wishes, self._command, ask, notify, self._announce)
        self.helms.names |= {ANNE: "Anne", BEN: "Ben"}
        self.stops = StopRequests(self.helms, wishes, self._ask, self._wish, self.writer)
        self.announcements = Announcements(self.helms, self.stops)
        self.see(DRONE)

    def _announce(self):
        self.told = self.announcements.for_page(ANNE, self.now_s)

    def _command(self, topic, motion, stamp):
        self.done.append("neutral" if motion == NEUTRAL else motion)

    def _ask(self, topic, is_held, answer):
        self.answers.append(answer)
        self.done.append(("hold" if is_held else "resume", topic))

    def _wish(self, node, id_, reason):
        self.wishes.append(id_)
        self.done.append(("wish" if id_ else "no wish", node))

    def see(self, *vehicles):
        self.stops.set_vehicles(vehicles, self.now_s)

    def stop(self, *topics):
        """Press STOP as `Pilots` does; without topics STOP all. Return whether there may be such a vehicle."""
        is_known = self.stops.stop("Anne", topics or None, self.now_s, 50.0)
        self.stops.resend(self.now_s)
        self._announce()
        return is_known

    def resume(self, topic=None):
        self.stops.resume(ANNE, topic, self.now_s)

    def report(self, run="1", wish="", before=0, releases=0, **held):
        """The reporting drone's node reports its hold."""
        status = HoldStatus(run=run, wish=wish, releases_before_wish=before, releases=releases, **held)
        self.stops.set_status(NODE, status, self.now_s)

    def hold(self, since_s=1, **held):
        """The reporting drone's node reports a hold, or none."""
        self.report(held=since_s is not None, since=Time(sec=since_s or 0), **held)

    def take(self, page=ANNE):
        self.helms.take(page, TOPIC, self.now_s)

    def steer(self, **motion):
        token, is_held = self.helms.leases.token(self.now_s), self.stops.is_held(TOPIC, self.now_s)
        self.helms.steer(ANNE, token, motion, self.now_s, None, is_held=is_held)

    def tick(self, seconds=0.1):
        self.now_s += seconds
        self.helms.tick(self.now_s)
        self.stops.tick(self.now_s, 50.0)

    def take_done(self):
        done, self.done = self.done, []
        return done

    @property
    def drone(self):
        return self.told["vehicles"][0]

    @property
    def held(self):
        return self.drone["held"]


@pytest.fixture
def pages():
    return Pages()


@pytest.fixture
def reporting(pages):
    pages.see(REPORTING)
    return pages


# Helms.


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(lambda pages: pages.steer(), id="neutral"),
        pytest.param(lambda pages: pages.helms.release(ANNE, pages.now_s), id="release"),
        pytest.param(lambda pages: pages.helms.leave(ANNE, pages.now_s), id="leave"),
        pytest.param(lambda pages: pages.tick(0.01), id="silence"),
        pytest.param(lambda pages: pages.tick(LEASE_S + 1.0), id="suspension"),
    ],
)
def test_the_vehicle_stops_when_the_pilot_lets_go_or_is_lost(pages, way):
    pages.take()
    pages.steer(x=1)
    pages.tick(MAX_AGE_S)
    assert pages.take_done() == ["neutral", FORWARD]
    way(pages)
    assert pages.take_done() == ["neutral"]


def test_a_silent_pilot_is_replaced_by_neutral_until_the_lease_ends(reporting):
    reporting.take()
    for seconds in (MAX_AGE_S + 0.1, 0.1, LEASE_S):
        reporting.tick(seconds)
    assert reporting.take_done() == ["neutral"] * 4
    assert (reporting.drone["pilot"], [page for page, _ in reporting.notices]) == (None, [ANNE])
    reporting.tick()
    assert reporting.done == []


def test_a_pilot_who_steers_all_the_time_is_not_replaced(pages):
    pages.take()
    for _ in range(30):
        pages.steer(x=1)
        pages.tick(MAX_AGE_S - 0.01)
    assert pages.done == ["neutral", *[FORWARD] * 30]


def test_a_refused_command_is_replaced_by_neutral(pages):
    pages.take()
    with pytest.raises(HelmRefusedError):
        pages.steer(x="fast")
    assert pages.done == ["neutral"] * 2


def test_pages_read_who_steers_and_who_asks_and_the_pilots_answer(pages):
    pages.take(BEN)
    assert (pages.drone["pilot"], pages.drone["pilot_name"]) == ("other", "Ben")
    pages.helms.ask(ANNE, TOPIC, pages.now_s)
    assert pages.drone["asked"] == [{"number": ANNE, "name": "Anne", "is_you": True, "left_s": ASK_S}]
    pages.helms.keep(BEN, pages.now_s)
    assert (pages.drone["asked"], pages.notices) == ([], [(ANNE, "Ben keeps the helm.")])
    pages.now_s += ASK_S
    pages.helms.ask(ANNE, TOPIC, pages.now_s)
    pages.helms.hand_over(BEN, ANNE, pages.now_s)
    assert (pages.drone["pilot"], pages.done) == ("you", ["neutral"] * 2)
    pages.helms.ask(BEN, TOPIC, pages.now_s)
    pages.helms.leave(BEN, pages.now_s)
    pages.see(DRONE)
    assert pages.drone["asked"] == []
    pages.helms.names[BEN] = "Ben"
    pages.helms.ask(BEN, TOPIC, pages.now_s)
    pages.now_s += ASK_S
    pages.take(BEN)
    assert (pages.drone["pilot"], pages.notices[-1][0]) == ("other", ANNE)


def test_a_pilot_whose_vehicle_has_disappeared_is_at_no_helm(pages):
    pages.take()
    pages.see()
    pages.see(DRONE)
    assert pages.drone["pilot"] is None


def test_a_vehicle_held_since_a_helm_ended_follows_a_new_one_but_not_later(reporting):
    reporting.hold()
    reporting.take()
    reporting.steer(x=1)
    assert reporting.done[-1] == FORWARD
    reporting.resume(TOPIC)
    with pytest.raises(HelmRefusedError, match="Release the stick"):
        reporting.steer(x=1)
    reporting.steer()
    reporting.now_s += HELM_TAKEN_S + 0.1
    for since_s, reason in ((5, "on hold"), (None, "Release the stick")):
        reporting.hold(since_s)
        with pytest.raises(HelmRefusedError, match=reason):
            reporting.steer(x=1)


# Pilots of other servers.


@pytest.mark.parametrize(
    ("pilot", "name"),
    [({"pilot": "7", "pilot_name": "Anne"}, "Anne on another page"), ({"pilot": ANONYMOUS.id, "pilot_name": "a"}, "a")],
)
def test_a_vehicle_with_a_pilot_elsewhere_can_not_be_taken_until_they_left(reporting, pilot, name):
    reporting.report(**pilot)
    assert (reporting.drone["pilot"], reporting.drone["pilot_name"]) == ("other", name)
    with pytest.raises(HelmRefusedError, match=name):
        reporting.stops.check_free(TOPIC, reporting.now_s)
    reporting.tick(RUN_S + 0.1)
    reporting.stops.check_free(TOPIC, reporting.now_s)  # its bridge is silent
    reporting.report(**pilot)
    reporting.report(held=True, reason="the helm ended")
    reporting.stops.check_free(TOPIC, reporting.now_s)
    assert reporting.drone["pilot"] is None


def test_of_two_servers_the_pilot_whom_a_vehicle_does_not_follow_loses_the_helm(reporting):
    reporting.take()
    reporting.take_done()
    reporting.report(pilot="7", pilot_name="Ben")
    assert reporting.drone["pilot_name"] == "Ben on another page"
    assert reporting.notices == [(ANNE, "Ben on another page is at the helm: ask for it.")]
    reporting.tick(LEASE_S + 1.0)
    assert reporting.done == []


@pytest.mark.parametrize("answer", ["hand over", "keep", "silence"])
def test_a_person_at_another_server_asks_the_pilot_for_the_helm(reporting, answer):
    pages, asked = reporting, {"number": ELSEWHERE, "name": "Ben on another page", "is_you": False, "left_s": ASK_S}
    pages.take()
    pages.helms.asked_elsewhere(TOPIC, "Ben", pages.now_s)
    assert pages.drone["asked"] == [asked]
    if answer == "keep":
        pages.helms.keep(ANNE, pages.now_s)
        pages.helms.asked_elsewhere(TOPIC, "Ben", pages.now_s)
    elif answer == "hand over":
        pages.helms.hand_over(ANNE, ELSEWHERE, pages.now_s)
    for _ in range(int(ASK_S / MAX_AGE_S) + 1):
        with contextlib.suppress(HelmRefusedError):
            pages.steer()
        pages.tick(MAX_AGE_S)
    assert (pages.drone["pilot"], pages.drone["asked"]) == ("you" if answer == "keep" else None, [])
    assert [page for page, _ in pages.notices if page != ELSEWHERE] == [ANNE] * (answer == "silence")


def test_a_page_asks_the_pilot_of_another_server(reporting):
    reporting.helms.ask(BEN, TOPIC, reporting.now_s, "Anne on another page")
    assert reporting.asked == [(TOPIC, HelmPilot(reporting.helms.id, "Ben"))]
    assert [page for page, _ in reporting.notices] == [BEN]


def test_a_page_reads_that_its_helm_is_not_confirmed_or_why_not_followed(reporting):
    def refused(**report):
        if report:
            reporting.report(**report)
        reporting.tick()
        return reporting.drone["refused_helm"]

    reporting.take()
    assert refused() == ""
    reporting.now_s += CONFIRMED_WITHIN_S
    own = {"pilot": reporting.helms.id, "pilot_name": "Anne"}
    assert refused() == refused(helm="a person is at the helm") == "the vehicle does not confirm it"
    assert refused(**own) == ""
    late = "a person is at the helm, and its commands are refused: it is late."
    assert refused(helm=late, **own) == "each command is refused: it is late."
    assert (
        refused(held=True, pilot="") == refused(held=True, **own) == ""
    )  # a STOP ends it, and the next command takes it


# STOP.


@pytest.mark.parametrize("topics", [[], [TOPIC]])
def test_stop_unanswered_within_a_second_is_a_problem_until_answered(pages, topics):
    pages.stop(*topics)
    pages.tick(STOP_TIMEOUT_S)
    assert pages.held["problem"] == ""
    pages.tick()
    assert pages.held["problem"] == "no confirmation yet"
    pages.answers[-1]("the link is down")
    assert (pages.held["problem"], pages.held["is_sure"]) == ("the link is down", False)
    pages.answers[-1]("")
    assert (pages.held["problem"], pages.held["is_sure"]) == ("", True)


@pytest.mark.parametrize(
    ("vehicle", "done", "done_later"), [(DRONE, ["neutral", ("hold", TOPIC)], []), (FOREIGN, ["neutral"], ["neutral"])]
)
def test_vehicle_without_reports_gets_neutral_and_repeated_calls(pages, vehicle, done, done_later):
    pages.see(vehicle)
    pages.stop(TOPIC)
    pages.tick()
    assert pages.take_done() == done * 2
    for answer in pages.answers:
        answer("")
    pages.tick()
    assert pages.done == done_later


def test_wish_is_published_and_filed_until_reported_and_ends_with_a_resume(reporting):
    reporting.stop(TOPIC)
    reporting.tick()
    assert reporting.done == [("wish", NODE)] * 2  # nothing else, as the rest follows from the state
    id_, again = reporting.wishes
    filed = [FiledWish(TOPIC, id_, "Anne pressed STOP")]
    assert (id_, reporting.filed) == (again, [filed])
    reporting.report(wish=id_, held=True)
    reporting.tick()
    assert reporting.done == [("wish", NODE)] * 2
    assert (reporting.held["is_sure"], reporting.filed) == (True, [filed])  # as a bridge that restarts needs it
    reporting.resume(TOPIC)
    assert reporting.done[2:] == [("no wish", NODE), ("resume", TOPIC)]
    assert reporting.filed == [filed, []]  # only on changes


def test_release_by_other_means_ends_the_wish_and_releases_nothing(reporting):
    reporting.take()
    reporting.stop(TOPIC)
    reporting.report(wish=reporting.wishes[-1], held=True, before=4, releases=4)
    reporting.take_done()
    reporting.report(wish=reporting.wishes[-1], held=False, before=4, releases=5)
    reporting.tick()
    assert (reporting.done, reporting.held, reporting.filed[-1]) == ([("no wish", NODE)], None, [])
    with pytest.raises(HelmRefusedError, match="Release the stick"):
        reporting.steer(x=1)


def test_the_hold_of_a_bridge_is_known_once_it_is_a_vehicle_of_its_own(reporting):
    reporting.report(held=True, reason="the service hold was called")
    reporting.see(replace(REPORTING, topic=f"{NODE}/cmd_vel_stamped"))
    assert reporting.held["why"] == "the service hold was called"


def test_a_held_server_beside_a_bridge_stops_no_stick(pages):
    pages.see(replace(REPORTING, reporters=(NODE, "/other")))
    pages.report()
    pages.take()
    for is_held in (True, False):
        pages.report(held=not is_held)
        pages.stops.set_status("/other", HoldStatus(run="2", held=True), pages.now_s)
        assert (pages.held is None) is is_held
    pages.report()
    pages.steer()
    pages.tick(2.0)
    pages.take()
    pages.steer(x=1)
    assert FORWARD in pages.done


def test_a_wish_outlives_a_restarted_bridge_that_says_that_it_is_not_held(reporting):
    reporting.stop(TOPIC)
    reporting.report(run="1", wish=reporting.wishes[-1], held=True)
    reporting.take_done()
    reporting.report(run="2", held=False)
    assert (reporting.held["why"], reporting.drone["runs"]) == ("you pressed STOP", {NODE: "2"})
    reporting.tick()
    assert reporting.done == [("wish", NODE)]
    assert len(set(reporting.wishes)) == 1


def test_a_hold_or_a_wish_that_can_t_be_kept_is_reported_on_the_page(reporting):
    reporting.report(held=True, reason="the service hold was called", problem="its disk is full")
    assert (reporting.held["why"], reporting.held["unkept"]) == ("the service hold was called", "its disk is full")
    reporting.take()
    reporting.helms.release(ANNE, reporting.now_s)
    reporting.report(held=True, reason="Anne pressed STOP")  # who has this name on another server
    assert reporting.held["why"] == "Anne pressed STOP on another page"
    reporting.stop()
    assert reporting.held["unkept"] == ""
    reporting.writer.problem = "the disk is full"
    reporting.tick(STOP_TIMEOUT_S + 0.1)
    assert reporting.held["unkept"] == "the disk is full"
    assert "the disk is full" in reporting.told["all_stopped"]


def test_vehicle_not_yet_found_by_a_new_server_is_stopped_once_found(pages):
    pages.see()
    assert not pages.stop("/no_vehicle", f"/{'long' * 99}/cmd_vel_stamped")
    assert pages.stop("/no_vehicle", "/new/cmd_vel_stamped")
    pages.see(replace(REPORTING, topic="/new/cmd_vel_stamped"))
    assert pages.done == [("wish", NODE)]


def test_vehicles_that_never_were_are_bounded_and_those_that_were_stopped(pages):
    pages.see()
    pages.stop(*(f"/{number}/cmd_vel_stamped" for number in range(2 * MAX_WANTED)))
    pages.stop(TOPIC)
    pages.see(REPORTING)
    assert (len(pages.told["unanswered"]), pages.done) == (MAX_WANTED, [("wish", NODE)])


def test_vehicles_that_were_are_bounded_and_a_stopped_one_is_stopped_on_return(pages):
    pages.stop(TOPIC)
    for number in range(3 * MAX_WANTED):
        pages.see(replace(DRONE, topic=f"/made_up_{number}/cmd_vel_stamped"))
    assert len(pages.stops._seen) <= MAX_WANTED + 1
    pages.done.clear()
    pages.see(REPORTING)
    assert pages.done == [("wish", NODE)]


def test_stop_all_includes_vehicles_that_come_later_until_all_are_resumed(pages):
    def held_after_return():
        pages.see()
        pages.see(REPORTING, ROVER)
        return [each["held"] and each["held"]["why"] for each in pages.told["vehicles"]]

    pages.see()
    pages.stop()
    assert held_after_return() == ["you pressed STOP"] * 2
    assert pages.take_done() == [("wish", NODE), "neutral", ("hold", ROVER.topic)]
    pages.resume(TOPIC)
    assert held_after_return() == [None, "you pressed STOP"]
    assert pages.told["all_stopped"] == "you pressed STOP all"
    pages.resume()
    assert (held_after_return(), pages.told["all_stopped"]) == ([None, None], None)
    pages.see()
    pages.stop()
    assert held_after_return() == ["you pressed STOP"] * 2


def test_the_end_of_a_wish_for_all_is_read_though_no_vehicle_is_there(pages):
    pages.see()
    pages.stop()
    pages.resume()
    assert pages.told["all_stopped"] is None


def test_vehicle_lost_without_an_answer_is_named_and_stopped_on_return(pages):
    pages.stop()
    assert pages.told["unanswered"] == []
    pages.see()
    assert pages.told["unanswered"] == GONE
    pages.now_s += 60.0
    pages.see(DRONE)
    assert (pages.told["unanswered"], pages.held["problem"]) == ([], "no confirmation yet")
    assert pages.done == ["neutral", ("hold", TOPIC)] * 2


@pytest.mark.parametrize("vehicle", [DRONE, FOREIGN])
def test_a_vehicle_that_has_answered_or_has_no_hold_may_go(pages, vehicle):
    pages.see()
    pages.stop()
    pages.see(vehicle)
    for answer in pages.answers:
        answer("")
    pages.see()
    assert pages.told["unanswered"] == []


def test_a_page_reads_since_when_and_why_a_vehicle_is_held(reporting):
    def held():
        return [reporting.held[name] for name in ("since", "why")]

    reporting.hold(5, is_inherited=True)
    assert held() == [5.0, "from before this launch"]
    reporting.hold(None)
    assert reporting.held is None
    reporting.take(BEN)
    reporting.helms.release(BEN, reporting.now_s)
    assert held() == [None, "Ben left the helm"]
    reporting.hold(6, reason="the helm ended")
    assert held() == [6.0, "the helm ended"]
    reporting.see()
    reporting.see(REPORTING)
    assert reporting.held is None
    reporting.stop()
    reporting.hold(300, is_inherited=True)  # its bridge was restarted
    assert held() == [50.0, "you pressed STOP"]


# Resume.


def test_resume_ends_the_stop_of_a_vehicle_that_is_gone(pages):
    pages.stop()
    pages.see()
    pages.resume(TOPIC)
    assert pages.told["unanswered"] == []
    pages.see(DRONE)
    assert pages.held is None


def test_resume_without_a_vehicle_ends_the_hold_of_all(pages):
    pages.see(REPORTING, replace(ROVER, reporters=("/rover/robot_bridge",)))
    pages.stop(TOPIC)
    pages.stops.set_status("/rover/robot_bridge", HoldStatus(held=True), pages.now_s)
    pages.take_done()
    pages.resume()
    assert pages.done == [("no wish", NODE), ("resume", TOPIC), ("resume", ROVER.topic)]


def test_a_resume_that_is_refused_is_reported_and_not_repeated(reporting):
    reporting.report(wish="7", held=True, reason="Anne pressed STOP")
    reporting.resume(TOPIC)
    reporting.answers[-1]("the request may be stale.")
    reporting.tick(HELM_ENDS_WITHIN_S)
    assert reporting.done == [("resume", TOPIC)]
    assert reporting.notices == [(ANNE, "The vehicle is still on hold: the request may be stale.")]


def test_an_end_of_the_helm_that_is_not_confirmed_in_time_becomes_a_wish(released):
    assert [released.held[name] for name in ("since", "why", "is_sure")] == [None, "you left the helm", False]
    assert not released.stops.is_idle
    released.tick(HELM_ENDS_AFTER_S + CONFIRMED_WITHIN_S)
    assert released.done == []
    released.tick()
    released.tick()
    assert released.done == [("wish", NODE)] * 2
    assert [released.held[name] for name in ("why", "problem")] == ["you left the helm", "no confirmation yet"]
    released.report(wish=released.wishes[-1], held=True, reason="Anne left the helm")
    assert (released.held["why"], released.held["is_sure"]) == ("you left the helm", True)


def test_a_late_report_of_the_helm_that_was_taken_does_not_count_as_its_end(released):
    released.report(helm="a person is at the helm", pilot=released.helms.id, pilot_name="Anne")
    released.tick(HELM_ENDS_AFTER_S + CONFIRMED_WITHIN_S + 0.1)
    released.tick()
    assert released.done == [("wish", NODE)] * 2
    assert released.held["why"] == "you left the helm"


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(lambda pages: pages.report(held=True, reason="the helm ended"), id="held"),
        pytest.param(lambda pages: pages.report(pilot="7", pilot_name="Anne"), id="another pilot"),
        pytest.param(lambda pages: pages.resume(TOPIC), id="resumed"),
        pytest.param(lambda pages: pages.take(), id="taken again"),
        pytest.param(lambda pages: pages.see(), id="gone"),
    ],
)
def test_a_helm_that_has_ended_for_sure_needs_no_wish(released, way):
    way(released)
    released.tick(HELM_ENDS_AFTER_S + CONFIRMED_WITHIN_S + 0.1)
    assert ("wish", NODE) not in released.done


@pytest.fixture
def released(reporting):
    """Pages whose pilot has just released the helm: its end at the bridge would hold the vehicle again."""
    reporting.take()
    reporting.helms.release(ANNE, reporting.now_s)
    reporting.take_done()
    return reporting


def test_resume_waits_until_a_just_released_helm_has_ended_at_the_bridge(released):
    released.resume(TOPIC)
    released.tick(HELM_ENDS_WITHIN_S - 0.1)
    assert released.done == []
    assert not released.stops.is_idle
    for _ in range(3):
        released.tick()
    assert released.done == [("resume", TOPIC)]


def test_a_helm_that_ends_while_the_vehicle_is_stopped_commands_nothing(reporting):
    """Neutral would start a helm."""
    reporting.take()
    reporting.stop(TOPIC)
    reporting.take_done()
    reporting.helms.release(ANNE, reporting.now_s)
    assert reporting.done == []


def test_a_stop_while_a_resume_waits_for_the_end_of_a_helm_wins(released):
    for request in (released.stop, released.resume, released.stop):
        request(TOPIC)
    released.tick(HELM_ENDS_WITHIN_S)
    assert ("resume", TOPIC) not in released.done


@pytest.mark.parametrize(("reason", "is_released"), [("the helm ended", True), ("the service hold was called", False)])
def test_a_resume_that_waits_for_the_end_of_a_helm_ends_no_newer_hold(released, reason, is_released):
    released.resume(TOPIC)
    released.report(held=True, reason=reason)
    released.tick(HELM_ENDS_WITHIN_S)
    assert released.done == [("resume", TOPIC)] * is_released
    assert [text for _, text in released.notices] == [f"The vehicle is still on hold: {reason}."] * (not is_released)


def test_a_resume_right_after_stop_waits_for_the_end_of_a_helm_only(released):
    released.stop(TOPIC)
    released.resume(TOPIC)
    released.report(wish=released.wishes[0], held=True, reason="Anne pressed STOP")  # in transit meanwhile
    released.tick(HELM_ENDS_WITHIN_S)
    assert released.done[-1] == ("resume", TOPIC)


def test_who_stays_at_the_helm_is_resumed_at_once(reporting):
    reporting.take()
    reporting.stop(TOPIC)
    reporting.resume(TOPIC)
    assert reporting.done[-1] == ("resume", TOPIC)


# Announcements.


def test_commanders_are_named_also_before_their_names_are_known():
    names = ["web_bridge", "driver", "drone_bridge_topic_12", "_NODE_NAME_UNKNOWN_"]
    publishers = [SimpleNamespace(node_name=name) for name in names]
    node = SimpleNamespace(get_name=lambda: "web_bridge", get_publishers_info_by_topic=lambda _: publishers)
    found = Fleet._commanders(SimpleNamespace(_node=node, _publishers=[TOPIC]), TOPIC, {TOPIC: []})
    assert found == {TOPIC: ("a new node", "driver", "drone-bridge topic")}


def test_a_full_stick_is_the_vehicles_own_maximum_at_most():
    sent = []
    vehicle = SteeredVehicle(TOPIC, "create2_bridge", targets=("/create2_bridge/pilot",))
    fleet = SimpleNamespace(vehicles=[vehicle], _publishers={vehicle.targets[0]: SimpleNamespace(publish=sent.append)})
    for limit in (1.0, 0.4):
        Fleet.command(fleet, TOPIC, FORWARD, Time(), limit, 1.0, pilot=HelmPilot("7", "Anne"))
    assert [(each.id, each.name, each.twist.linear.x) for each in sent] == [("7", "Anne", 0.5), ("7", "Anne", 0.4)]


def test_pages_read_the_speed_at_full_deflection_and_each_change_of_it(pages):
    for speed_m_s in (1.0, 0.4):
        pages.announcements.set_max_speed(speed_m_s)
        assert pages.drone["max_speed"] == speed_m_s
    pages.see(replace(DRONE, node="create2_bridge"))
    pages.announcements.set_max_speed(1.0)
    assert pages.drone["max_speed"] == 0.5


def test_the_end_of_a_goal_has_its_age_also_for_a_page_that_opens_later(pages):
    pages.announcements.set_goal(TOPIC, {"by": "Anne", "state": "asked"}, pages.now_s)
    pages.announcements.set_goal(TOPIC, {"state": "done"}, pages.now_s)
    pages.now_s += 3600.0
    goal = pages.announcements.for_page(BEN, pages.now_s)["vehicles"][0]["goal"]
    assert (goal["by"], goal["state"], goal["age_s"]) == ("Anne", "done", 3600.0)
