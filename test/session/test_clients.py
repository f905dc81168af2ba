# SPDX-License-Identifier: Apache-2.0
"""Who of several peers on streams has a place: in no time."""

import math

from drone_bridge.session.clients import REFUSED, Admission, Clients
from drone_bridge.session.session import Close, Note


def add(clients, *peers, now_s=0.0):
    return [clients.add(peer, None, now_s) for peer in peers]


def speak(clients, client, now_s):
    clients.heard(client, now_s, has_spoken=True, is_inside_message=False)


def test_who_says_nothing_has_its_time_for_a_first_message():
    clients = Clients(2, first_message_s=5.0)
    (mute,) = add(clients, "mute")
    assert clients.due_s == 5.0
    assert clients.overdue(4.9) == []
    assert clients.overdue(5.0) == [(mute, "has not completed a first message within 5 s")]


def test_a_trickle_of_bytes_extends_no_message():
    clients = Clients(2, first_message_s=5.0, whole_message_s=3.0)
    (slow,) = add(clients, "slow")
    speak(clients, slow, 1.0)
    assert clients.due_s == math.inf
    for now_s in (10.0, 11.0, 12.0):
        clients.heard(slow, now_s, has_spoken=False, is_inside_message=True)
    assert clients.overdue(13.0) == [(slow, "has not completed a message within 3 s")]


def test_a_first_message_that_has_begun_gains_no_time_by_that():
    clients = Clients(2, first_message_s=5.0, whole_message_s=3.0)
    (slow,) = add(clients, "slow")
    clients.heard(slow, 4.0, has_spoken=False, is_inside_message=True)
    assert clients.due_s == 5.0


def test_each_message_has_its_own_time():
    clients = Clients(2, whole_message_s=3.0)
    (busy,) = add(clients, "busy")
    for now_s in (1.0, 3.5, 6.0):
        clients.heard(busy, now_s, has_spoken=True, is_inside_message=True)
        assert clients.due_s == now_s + 3.0


def test_a_stall_of_our_own_costs_nobody_its_time():
    clients = Clients(3, first_message_s=5.0, whole_message_s=3.0)
    mute, slow, idle = add(clients, "mute", "slow", "idle")
    clients.heard(slow, 1.0, has_spoken=True, is_inside_message=True)
    speak(clients, idle, 1.0)
    clients.resume(100.0)
    assert [client.deadline_s for client in (mute, slow, idle)] == [105.0, 103.0, math.inf]
    assert idle.heard_s == 100.0


def test_a_full_house_has_room_at_the_cost_of_the_mute_then_of_the_one_that_was_silent_for_longest():
    clients = Clients(3)
    first, _, third = add(clients, "first", "mute", "third")
    assert Clients(4).admit("next", 0.0) == Admission()
    speak(clients, third, 1.0)
    speak(clients, first, 2.0)
    assert clients.admit("next", 2.0).loser == "mute"
    clients.remove("mute")
    assert clients.admit("next", 2.0) == Admission()
    speak(clients, *add(clients, "fourth"), 2.5)
    assert clients.admit("next", 2.6) == Admission(
        loser="third", reason="was silent for 1.6 s, and is replaced by next"
    )
    assert len(clients) == 3  # until the caller has ended that conversation
    speak(clients, third, 2.6)
    sentence = "next was refused: 3 clients are connected already."
    assert clients.admit("next", 2.7) == Admission([Note(REFUSED, sentence, is_ongoing=True), Close("next")])


def test_an_only_client_may_be_silent_for_as_long_as_the_caller_allows_and_a_mute_one_for_less():
    clients = Clients(1, keeps_place_s=lambda: 10.0, mute_keeps_place_s=2.0)
    (only,) = add(clients, "only")
    sentence = "next was refused: only is connected, and only one peer is served."
    refused = Admission([Note(REFUSED, sentence, is_ongoing=True), Close("next")])
    assert clients.admit("next", 1.9) == refused
    assert clients.admit("next", 2.0).loser == "only"
    speak(clients, only, 3.0)
    assert clients.admit("next", 12.9) == refused
    assert clients.admit("next", 13.0).loser == "only"


def test_who_has_gone_has_no_place():
    clients = Clients(1)
    add(clients, "one")
    assert ("one" in clients, len(clients)) == (True, 1)
    assert clients.remove("one").peer == "one"
    assert clients.remove("one") is None
    assert (clients.all(), clients.due_s) == ((), math.inf)
