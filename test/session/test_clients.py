# SPDX-License-Identifier: Apache-2.0
"""Clients: places of peers on streams, with a fake clock."""

import math
from unittest.mock import ANY

from drone_bridge.session.clients import REFUSED, Admission, Clients
from drone_bridge.session.session import Close, Note


def add(clients, *peers, now_s=0.0):
    return [clients.add(peer, None, now_s) for peer in peers]


def speak(clients, client, now_s):
    clients.data_received(client, now_s, has_sent_message=True, is_inside_message=False)


def test_a_client_times_out_without_a_first_message():
    clients = Clients(2, first_message_s=5.0)
    (mute,) = add(clients, "mute")
    assert clients.due_s == 5.0
    assert clients.overdue(4.9) == []
    assert clients.overdue(5.0) == [(mute, ANY)]


def test_a_trickle_of_bytes_does_not_extend_the_timeout_of_a_message():
    clients = Clients(2, first_message_s=5.0, whole_message_s=3.0)
    (slow,) = add(clients, "slow")
    speak(clients, slow, 1.0)
    assert clients.due_s == math.inf
    for now_s in (10.0, 11.0, 12.0):
        clients.data_received(slow, now_s, has_sent_message=False, is_inside_message=True)
    assert clients.overdue(13.0) == [(slow, ANY)]


def test_an_incomplete_first_message_does_not_extend_its_timeout():
    clients = Clients(2, first_message_s=5.0, whole_message_s=3.0)
    (slow,) = add(clients, "slow")
    clients.data_received(slow, 4.0, has_sent_message=False, is_inside_message=True)
    assert clients.due_s == 5.0


def test_each_message_has_its_own_timeout():
    clients = Clients(2, whole_message_s=3.0)
    (busy,) = add(clients, "busy")
    for now_s in (1.0, 3.5, 6.0):
        clients.data_received(busy, now_s, has_sent_message=True, is_inside_message=True)
        assert clients.due_s == now_s + 3.0


def test_a_stall_of_this_process_restarts_the_timeouts():
    clients = Clients(3, first_message_s=5.0, whole_message_s=3.0)
    mute, slow, idle = add(clients, "mute", "slow", "idle")
    clients.data_received(slow, 1.0, has_sent_message=True, is_inside_message=True)
    speak(clients, idle, 1.0)
    clients.resume(100.0)
    assert [client.deadline_s for client in (mute, slow, idle)] == [105.0, 103.0, math.inf]
    assert idle.received_s == 100.0


def test_new_client_replaces_one_without_messages_or_the_longest_silent():
    clients = Clients(3)
    first, third = add(clients, "first", "third")
    assert clients.admit("next", 0.0) == Admission()
    speak(clients, third, 0.5)
    add(clients, "mute", now_s=1.0)
    speak(clients, first, 2.0)
    assert clients.admit("next", 2.0).loser == "mute"
    clients.remove("mute")
    assert clients.admit("next", 2.0) == Admission()
    speak(clients, *add(clients, "fourth"), 2.5)
    assert clients.admit("next", 2.6) == Admission(loser="third", reason=ANY)
    assert len(clients) == 3  # until the caller has ended that connection
    speak(clients, third, 2.6)
    refused = Note(REFUSED, "10.0.0.2:5 was refused: 3 clients are connected already.", is_ongoing=True)
    assert clients.admit(("10.0.0.2", 5), 2.7) == Admission([refused, Close(("10.0.0.2", 5))])


def test_single_client_times_out_sooner_without_a_first_message():
    clients = Clients(1, keeps_place_s=lambda: 10.0, mute_keeps_place_s=2.0)
    (only,) = add(clients, "only")
    refused = Admission([Note(REFUSED, ANY, is_ongoing=True), Close("next")])
    assert clients.admit("next", 1.9) == refused
    assert clients.admit("next", 2.0).loser == "only"
    speak(clients, only, 3.0)
    assert clients.admit("next", 12.9) == refused
    assert clients.admit("next", 13.0).loser == "only"


def test_a_disconnected_client_has_no_place():
    clients = Clients(1)
    add(clients, "one")
    assert ("one" in clients, len(clients)) == (True, 1)
    assert clients.remove("one").peer == "one"
    assert clients.remove("one") is None
    assert (clients.all(), clients.due_s) == ((), math.inf)
