# SPDX-License-Identifier: Apache-2.0
"""What a link has done, as /diagnostics shows it once a second; the silence and the hangs of its peer."""

from types import SimpleNamespace

import pytest
from diagnostic_msgs.msg import DiagnosticStatus

from drone_bridge.ros import diagnostics
from drone_bridge.ros.diagnostics import HANGING, Reports
from drone_bridge.ros.link_statistics import LinkStatistics
from drone_bridge.ros.liveness import Liveness
from drone_bridge.ros.stall_watch import PROCESS


def values_of(status):
    return {pair.key: pair.value for pair in status.values}


def test_durations_are_means_of_one_period_and_counts_grow_for_ever():
    statistics = LinkStatistics(state="connected", peer="somebody")
    for seconds in (0.001, 0.003):
        statistics.took("round_trip", seconds)
        statistics.counts["frames"] += 1
    first = statistics.report("a link", "robot 7", ("frames",), ("lost_connections",))
    assert (first.name, first.hardware_id, first.level, first.message) == (
        "a link",
        "robot 7",
        DiagnosticStatus.OK,
        "connected",
    )
    assert values_of(first)["round_trip_ms"] == "2.00"
    assert values_of(first)["lost_connections"] == "0"
    statistics.counts["lost_connections"] += 1
    second = statistics.report("a link", "robot 7", ("frames",), ("lost_connections",))
    assert (second.level, second.message) == (DiagnosticStatus.WARN, "connected; lost connections growing")
    assert values_of(second)["frames"] == "2"
    assert values_of(second)["frames_per_second"] == "0.0"
    assert "round_trip_ms" not in values_of(second)


def test_what_happened_in_a_period_that_nobody_asked_for_is_not_reported_as_new(clock):
    statistics = LinkStatistics(state="connected")
    statistics.counts.update({"frames": 600, "lost_connections": 1})
    statistics.took("round_trip", 0.5)
    clock[0] += 60.0
    statistics.start_period()
    statistics.counts["frames"] += 10
    clock[0] += 1.0
    status = statistics.report("a link", "", ("frames",), ("lost_connections",))
    assert (status.level, status.message) == (DiagnosticStatus.OK, "connected")
    assert values_of(status)["lost_connections"] == "1"
    assert values_of(status)["frames_per_second"] == "10.0"
    assert "round_trip_ms" not in values_of(status)


def test_a_duration_may_come_while_those_of_its_period_are_reported():
    """As from the IO thread, which has got hold of the period's durations just before the report took them."""
    statistics = LinkStatistics()
    durations_s = statistics.durations_s

    class Name(str):
        def __format__(self, _):
            durations_s.setdefault("another", (0.5, 1))
            return str(self)

    statistics.took(Name("round_trip"), 0.002)
    assert values_of(statistics.report("a link", "", (), ()))["round_trip_ms"] == "2.00"


def test_a_condition_is_reported_for_as_long_as_it_lasts():
    statistics = LinkStatistics(state="connected")
    statistics.begin_condition("drive", "Drive is held by h2.", DiagnosticStatus.ERROR)
    statistics.begin_condition("clock", "Two nodes publish /clock.")
    for _ in range(2):
        status = statistics.report("a link", "", (), ())
        assert status.level == DiagnosticStatus.ERROR
        assert status.message == "connected; Drive is held by h2.; Two nodes publish /clock."
        assert values_of(status)["clock"] == "Two nodes publish /clock."
    statistics.end_condition("drive")
    assert statistics.report("a link", "", (), ()).level == DiagnosticStatus.WARN
    statistics.end_condition("clock")
    assert statistics.report("a link", "", (), ()).level == DiagnosticStatus.OK


class Peer:
    """A session's peer, as its link's thread sees it, and the silence of it that is reported."""

    def __init__(self, reports, clock):
        self.session = SimpleNamespace(is_open=False, heard_s=None, since_s=None)
        self._clock = clock
        reports.statistics.liveness = self.liveness = Liveness(self.session, lambda: clock[0])

    def connects(self):
        self.session.is_open, self.session.heard_s, self.session.since_s = True, None, self._clock[0]
        self.liveness.look()

    def speaks(self):
        self.session.heard_s = self._clock[0]
        self.liveness.look()

    def leaves(self):
        self.session.is_open, self.session.since_s = False, None
        self.liveness.look()


@pytest.fixture
def reports():
    logger = SimpleNamespace(**dict.fromkeys(("info", "warning", "error"), lambda line: None))
    reports = Reports(logger, "connected")
    reports.start_over(silence_limit_s=2.0)
    return reports


@pytest.fixture
def errors(reports, monkeypatch):
    """The errors that are logged."""
    logged = []
    monkeypatch.setattr(reports._logger, "error", logged.append)
    return logged


@pytest.fixture
def peer(reports, clock):
    return Peer(reports, clock)


def test_a_silent_peer_is_a_warning_although_it_is_connected(reports, peer, clock):
    reports.start_over(silence_limit_s=5.0)
    statistics = reports.statistics
    statistics.state, statistics.liveness = "connected", peer.liveness
    peer.connects()
    clock[0] += 5.0
    assert statistics.report("a link", "", (), ()).level == DiagnosticStatus.OK
    clock[0] += 20.0
    status = statistics.report("a link", "", (), ())
    assert (status.level, status.message) == (DiagnosticStatus.WARN, "connected, silent for 25 s")
    assert values_of(status)["peer_silent_s"] == "25.0"
    peer.speaks()
    assert statistics.report("a link", "", (), ()).message == "connected"


class TestLiveness:
    """The silence of a session's peer, whose connections come and go."""

    @pytest.fixture
    def session(self):
        return SimpleNamespace(is_open=False, heard_s=None, since_s=None)

    @pytest.fixture
    def pass_s(self, session):
        """pass_s(seconds, **changes of the session) lets time pass, then the loop looks; returns the silence."""
        time_s = [100.0]
        liveness = Liveness(session, lambda: time_s[0])

        def passed(seconds, *, connects=False, hears=False, leaves=False):
            time_s[0] += seconds
            if connects or leaves:
                session.is_open, session.heard_s, session.since_s = connects, None, time_s[0] if connects else None
            if hears:
                session.heard_s = time_s[0]
            liveness.look()
            return liveness.silence_s

        return passed

    def test_connections_without_a_message_belong_to_one_silence(self, pass_s):
        assert pass_s(1.0, connects=True) == 0.0
        assert pass_s(3.0) == 3.0
        pass_s(0.0, leaves=True)
        assert pass_s(100.0) == 0.0  # nobody is listened to
        assert pass_s(0.0, connects=True) == 3.0
        assert pass_s(2.0) == 5.0
        assert pass_s(0.0, hears=True) == 0.0
        assert pass_s(0.5) == 0.5

    def test_a_connection_ends_for_reports_when_the_loop_looks(self, session):
        liveness = Liveness(session, lambda: 100.0)
        session.is_open, session.since_s = True, 100.0
        assert not liveness.is_open
        liveness.look()
        session.is_open = False
        assert liveness.is_open
        liveness.look()
        assert not liveness.is_open

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
    """A peer that says nothing, and who is heard after it."""

    def test_who_was_silent_is_heard(self, clock):
        said = []
        logger = SimpleNamespace(info=said.append, warning=lambda line: None)
        reports = Reports(logger, "connected")
        reports.start_over(silence_limit_s=2.0)
        statistics, peer = reports.statistics, Peer(reports, clock)
        statistics.peer = "a:1"
        peer.connects()
        clock[0] += 3.0
        for _ in range(3):
            reports.notice_silence()
        assert said == []
        assert statistics.counts["silences"] == 1  # although nobody subscribes to diagnostics
        peer.speaks()
        reports.notice_silence()
        assert said == ["a:1 is heard."]


class TestHangs:
    """A peer that is silent again and again."""

    @pytest.fixture
    def fall_silent(self, reports, peer, clock, monkeypatch):
        """fall_silent() is one connection: it is opened, perhaps something is heard, and it is given up."""
        monkeypatch.setattr(diagnostics, "elapsed_s", lambda: clock[0])

        def fall_silent(*, is_heard):
            peer.connects()
            if is_heard:
                peer.speaks()
                reports.notice_silence()
            clock[0] += 3.0
            reports.notice_silence()
            peer.leaves()
            reports.notice_silence()

        return fall_silent

    def test_one_hang_is_one_however_many_connections_it_lasts(self, reports, fall_silent):
        fall_silent(is_heard=True)
        for _ in range(5):
            fall_silent(is_heard=False)
        assert reports.statistics.counts["silences"] == 1
        assert HANGING not in reports.statistics.conditions

    def test_one_that_is_given_up_between_two_looks_counts_as_well(self, reports, peer, clock):
        for number in (1, 2, 3):
            peer.connects()
            peer.speaks()
            reports.notice_silence()
            clock[0] += 3.0
            peer.leaves()
            peer.connects()
            peer.speaks()
            reports.notice_silence()
            assert reports.statistics.counts["silences"] == number
        assert HANGING in reports.statistics.conditions

    def test_the_third_one_is_an_error_until_it_is_heard_for_a_minute(self, reports, peer, fall_silent, clock, errors):
        for _ in range(2):
            fall_silent(is_heard=True)
            fall_silent(is_heard=False)
            assert HANGING not in reports.statistics.conditions
        for times in (3, 4):
            fall_silent(is_heard=True)
            sentence = f" has fallen silent {times} times"
            assert reports.statistics.conditions[HANGING] == (sentence, DiagnosticStatus.ERROR)
        assert errors == [" has fallen silent 3 times: it hangs, or the network drops out."]
        peer.connects()
        for _ in range(61):
            assert HANGING in reports.statistics.conditions
            peer.speaks()
            reports.notice_silence()
            clock[0] += 1.0
        peer.speaks()
        reports.notice_silence()
        assert HANGING not in reports.statistics.conditions
        fall_silent(is_heard=True)
        assert HANGING not in reports.statistics.conditions
