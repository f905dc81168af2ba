# SPDX-License-Identifier: Apache-2.0
"""Report of a link on /diagnostics, once per second; silence of its peer."""

from types import SimpleNamespace

import pytest
from diagnostic_msgs.msg import DiagnosticStatus

from drone_bridge.ros.node.link_report import LinkReport
from drone_bridge.ros.node.stall_watch import PROCESS
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.wire.counters import FaultCounter, ProblemCounter, RateCounter

FRAMES, LOST = RateCounter("frames"), FaultCounter("lost_connections")
LOGGER = SimpleNamespace(**dict.fromkeys(("info", "warning", "error"), lambda line: None))


def values_of(status):
    return {pair.key: pair.value for pair in status.values}


@pytest.fixture
def make_report(clock):
    """Return a function that creates the report of an open link, with a frozen clock."""

    def make(silence_limit_s=2.0, logger=LOGGER, **options):
        report = LinkReport(logger, "connected", now_s=lambda: clock[0], **options)
        report.start_over(silence_limit_s)
        report.state = "connected"
        return report

    return make


@pytest.fixture
def report(make_report):
    return make_report()


@pytest.mark.parametrize("is_server", [True, False])
def test_only_a_server_may_wait_for_a_peer(make_report, is_server):
    report = make_report(is_server=is_server)
    report.state = "waiting for a peer"
    status = report.status("a link", "robot 7")
    assert (status.level == DiagnosticStatus.OK, status.message) == (is_server, report.state)
    report.begin_condition("hold", "holding")
    assert report.status("a link", "robot 7").level == DiagnosticStatus.WARN


def test_durations_are_means_of_one_period_and_counts_grow_for_ever(make_report):
    report = make_report()
    for seconds in (0.001, 0.003):
        report.record_duration("round_trip", seconds)
        report.counts["frames"] += 1
    first = report.status("a link", "robot 7")
    assert (first.name, first.hardware_id, first.level, first.message) == (
        "a link",
        "robot 7",
        DiagnosticStatus.OK,
        "connected",
    )
    assert values_of(first)["round_trip_ms"] == "2.00"
    assert values_of(first)[LOST] == "0"
    report.counts[LOST] += 1
    second = report.status("a link", "robot 7")
    assert (second.level, second.message) == (DiagnosticStatus.WARN, "connected; lost connections growing")
    assert values_of(second)["frames"] == "2"
    assert values_of(second)["frames_per_second"] == "0.0"
    assert "round_trip_ms" not in values_of(second)


def test_a_duration_may_come_while_those_of_its_period_are_reported(report):
    """As from the link's thread, which got the period's durations just before the report took them."""
    durations_s = report._period.durations_s

    class Name(str):
        def __format__(self, _):
            durations_s.setdefault("another", (0.5, 1))
            return str(self)

    report.record_duration(Name("round_trip"), 0.002)
    assert values_of(report.status("a link", ""))["round_trip_ms"] == "2.00"


def test_a_condition_is_reported_for_as_long_as_it_lasts(report):
    report.begin_condition("drive", "Drive is held by h2.", DiagnosticStatus.ERROR)
    report.begin_condition("clock", "Two nodes publish /clock.")
    for _ in range(2):
        status = report.status("a link", "")
        assert status.level == DiagnosticStatus.ERROR
        assert status.message == "connected; Two nodes publish /clock.; Drive is held by h2."  # by rank
        assert values_of(status)["clock"] == "Two nodes publish /clock."
    report.end_condition("drive")
    assert report.status("a link", "").level == DiagnosticStatus.WARN
    report.end_condition("clock")
    assert report.status("a link", "").level == DiagnosticStatus.OK


def test_a_problem_is_logged_when_it_begins(make_report):
    said = []
    report = make_report(logger=SimpleNamespace(**{**vars(LOGGER), "warning": said.append}))
    for problem in ("the drone is silent", "the drone is still silent", "", "", "the drone is silent"):
        report.update_condition("navdata", problem, level=DiagnosticStatus.ERROR)
        assert ("navdata" in report.conditions) is bool(problem)
    assert said == ["the drone is silent.", "the drone is silent. (1 line suppressed)"]


class Peer:
    """Peer of a session, with a report that the link's thread updates."""

    def __init__(self, report, clock):
        self.session = SimpleNamespace(is_open=False, received_s=None, since_s=None, state="connected", peer="a:1")
        self._report, self._clock = report, clock

    def connects(self):
        self.session.is_open, self.session.received_s, self.session.since_s = True, None, self._clock[0]
        self._report.follow(self.session)

    def speaks(self):
        self.session.received_s = self._clock[0]
        self._report.follow(self.session)

    def leaves(self):
        self.session.is_open, self.session.since_s = False, None
        self._report.follow(self.session)


@pytest.fixture
def peer(report, clock):
    return Peer(report, clock)


def test_a_silent_peer_is_a_warning_although_it_is_connected(report, peer, clock):
    report.silence.limit_s = 5.0
    peer.connects()
    clock[0] += 5.0
    assert report.status("a link", "").level == DiagnosticStatus.OK
    clock[0] += 20.0
    status = report.status("a link", "")
    silence = Obstacle.SILENT.sentence(peer="a:1", silence="25 s").rstrip(".")
    assert (status.level, status.message) == (DiagnosticStatus.WARN, f"connected; {silence}")
    assert values_of(status)["peer_silent_s"] == "25.0"
    peer.speaks()
    assert report.status("a link", "").message == "connected"


def test_a_silence_is_worded_by_flight_unless_another_obstacle_explains_it(report, peer, clock):
    report.silence.limit_s = 5.0
    report.silence.flies = lambda: True
    peer.connects()
    clock[0] += 6.0
    in_flight = Obstacle.SILENT_IN_FLIGHT.sentence(peer="a:1", silence="6 s")
    assert report.silence_sentence(6.0) == in_flight
    assert report.status("a link", "").message == f"connected; {in_flight.rstrip('.')}"
    report.update_obstacle(Obstacle.NO_REPORT, {"peer": "a:1", "reason": "KeyError"}, is_logged=False)
    why = Obstacle.NO_REPORT.sentence(peer="a:1", reason="KeyError")
    assert report.silence_sentence(6.0) == why
    assert report.status("a link", "").message == f"connected; {why.rstrip('.')}"


class TestConnections:
    """Silence of a session's peer, with changing connections."""

    @pytest.fixture
    def pass_s(self, report, peer, clock):
        """pass_s(seconds, **changes of the session) advances the clock and runs the loop; returns the silence."""

        def passed(seconds, *, connects=False, hears=False, leaves=False):
            clock[0] += seconds
            if connects:
                peer.connects()
            elif leaves:
                peer.leaves()
            elif hears:
                peer.speaks()
            else:
                report.follow(peer.session)
            return report.silence_s

        return passed

    def test_connections_without_a_message_belong_to_one_silence(self, pass_s):
        assert pass_s(1.0, connects=True) == 0.0
        assert pass_s(3.0) == 3.0
        pass_s(0.0, leaves=True)
        assert pass_s(100.0) == 0.0  # nothing is received
        assert pass_s(0.0, connects=True) == 3.0
        assert pass_s(2.0) == 5.0
        assert pass_s(0.0, hears=True) == 0.0
        assert pass_s(0.5) == 0.5

    def test_the_next_link_begins_without_silence(self, report, pass_s):
        pass_s(1.0, connects=True)
        assert pass_s(3.0) == 3.0
        report.start_link()
        assert (report.is_open, report.silence_s) == (False, 0.0)
        assert pass_s(1.0, connects=True) == 0.0

    def test_a_peer_that_takes_the_place_of_another_is_another_connection(self, pass_s):
        pass_s(1.0, connects=True)
        pass_s(2.0, hears=True)
        pass_s(4.0)
        assert pass_s(1.0, connects=True) == 5.0  # until it is heard
        assert pass_s(1.0, hears=True) == 0.0

    def test_nobody_is_silent_while_this_process_stood_still(self, pass_s, monkeypatch):
        pass_s(0.0, connects=True)
        assert pass_s(10.0) == 10.0
        monkeypatch.setattr(PROCESS, "running_s", lambda: 0.5)
        assert pass_s(0.0) == 0.5


class TestSilence:
    """A silent peer, and one that is heard after it."""

    def test_who_was_silent_is_heard(self, make_report, clock):
        said, warned = [], []
        report = make_report(logger=SimpleNamespace(info=said.append, warning=warned.append))
        peer = Peer(report, clock)
        peer.connects()
        clock[0] += 3.0
        for _ in range(3):
            report.notice_silence()
        assert (said, warned) == ([], [Obstacle.SILENT.sentence(peer="a:1", silence="3 s")]), (
            "of one by UDP that was never there, too"
        )
        assert report.counts["silences"] == 1  # without subscribers to diagnostics
        peer.speaks()
        report.notice_silence()
        (line,) = said
        assert "a:1" in line

    def test_a_client_that_a_server_drops_for_its_silence_is_named(self, make_report, clock):
        warned = []
        report = make_report(logger=SimpleNamespace(warning=warned.append))
        peer = Peer(report, clock)
        peer.connects()
        clock[0] += 3.0
        peer.session.peer = ""
        peer.leaves()
        report.notice_silence()
        assert warned == [Obstacle.SILENT.sentence(peer="a:1", silence="3 s")]


class TestSilences:
    """A peer that is silent repeatedly."""

    def test_one_silence_is_one_however_many_connections_it_lasts(self, report, peer, clock):
        peer.connects()
        peer.speaks()
        for _ in range(5):
            report.notice_silence()
            clock[0] += 3.0
            report.notice_silence()
            peer.leaves()
            report.notice_silence()
            peer.connects()
        assert report.counts["silences"] == 1

    def test_one_that_is_given_up_between_two_looks_counts_as_well(self, report, peer, clock):
        for number in (1, 2, 3):
            peer.connects()
            peer.speaks()
            report.notice_silence()
            clock[0] += 3.0
            peer.leaves()
            peer.connects()
            peer.speaks()
            report.notice_silence()
            assert report.counts["silences"] == number


def test_a_counter_is_declared_once_with_its_kind():
    assert RateCounter("frames") == "frames"
    with pytest.raises(ValueError, match="frames is declared as a RateCounter, too"):
        ProblemCounter("frames")
