# SPDX-License-Identifier: Apache-2.0
"""What a link has done, as it is told on /diagnostics once a second."""

from diagnostic_msgs.msg import DiagnosticStatus

from drone_bridge.bridges.statistics import LinkStatistics


def values_of(status):
    return {pair.key: pair.value for pair in status.values}


def test_durations_are_means_of_one_period_and_counts_grow_for_ever():
    statistics = LinkStatistics(state="connected", peer="somebody")
    for seconds in (0.001, 0.003):
        statistics.took("round trip", seconds)
        statistics.counts["frames"] += 1
    first = statistics.report("a link", ("frames",), ("lost connections",))
    assert (first.name, first.hardware_id, first.level, first.message) == (
        "a link",
        "somebody",
        DiagnosticStatus.OK,
        "connected",
    )
    assert values_of(first)["round trip (ms)"] == "2.00"
    assert values_of(first)["lost connections"] == "0"
    statistics.counts["lost connections"] += 1
    second = statistics.report("a link", ("frames",), ("lost connections",))
    assert (second.level, second.message) == (DiagnosticStatus.WARN, "connected; lost connections growing")
    assert values_of(second)["frames"] == "2"
    assert values_of(second)["frames per second"] == "0.0"
    assert "round trip (ms)" not in values_of(second)


def test_a_duration_may_come_while_those_of_its_period_are_reported():
    """As from the IO thread, which has got hold of the period's durations just before the report took them."""
    statistics = LinkStatistics()
    durations_s = statistics.durations_s

    class Name(str):
        def __format__(self, _):
            durations_s.setdefault("another", (0.5, 1))
            return str(self)

    statistics.took(Name("round trip"), 0.002)
    assert values_of(statistics.report("a link", (), ()))["round trip (ms)"] == "2.00"
