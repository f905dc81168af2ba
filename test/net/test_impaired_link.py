# SPDX-License-Identifier: Apache-2.0
"""One direction of an impaired link: delay, rate, loss, queue and cuts as configured."""

import impaired_link
import pytest


def direction(**impairment):
    return impaired_link.Direction(impaired_link.Impairment(**{"loss": 0.0, **impairment}), seed=1)


def test_packets_arrive_in_order_after_the_delay_and_within_the_rate():
    link = direction(delay_s=0.02, bits_per_s=1e6)
    packets = [bytes([number]) * 1250 for number in range(5)]  # each takes 10 ms
    for packet in packets:
        link.offer(packet, now_s=100.0)
    assert link.next_arrival_s == pytest.approx(100.03)
    assert link.take_arrived(100.029) == []
    assert link.take_arrived(100.0501) == packets[:3]
    assert link.take_arrived(101.0) == packets[3:]
    assert link.next_arrival_s is None


def test_packet_loss_has_the_configured_rate_and_is_reproducible():
    def arrived():
        link = direction(loss=0.02)
        for number in range(10_000):
            link.offer(number.to_bytes(2, "big"), now_s=float(number))
        return link.take_arrived(1e6)

    first = arrived()
    assert 0.015 < 1 - len(first) / 10_000 < 0.025
    assert arrived() == first


def test_the_queue_is_bounded():
    link = direction(bits_per_s=1e6, queue_bytes=10_500)
    for _ in range(100):
        link.offer(bytes(1000), now_s=0.0)
    assert len(link.take_arrived(1e6)) == 10
    assert link.dropped == 90


def test_a_cut_loses_packets_in_flight_and_those_sent_until_it_is_restored():
    link = direction()
    link.offer(b"on its way", now_s=0.0)
    link.cut()
    link.offer(b"during the cut", now_s=0.01)
    assert link.take_arrived(1.0) == []
    link.is_cut = False
    link.offer(b"after it", now_s=2.0)
    assert link.take_arrived(3.0) == [b"after it"]
    assert (link.arrived, link.lost) == (1, 2)
