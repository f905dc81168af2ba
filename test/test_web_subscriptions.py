# SPDX-License-Identifier: Apache-2.0
"""Subscriptions that the Foxglove server drops because they come too early."""

import json

import pytest

from drone_bridge.tools.web.subscriptions import MAX_ATTEMPTS, Subscriptions

REFUSED = '{"op":"status","level":2,"message":"Unknown channel ID: 7"}'


def subscribe(**channels):
    wanted = [{"id": int(name.removeprefix("n")), "channelId": channel} for name, channel in channels.items()]
    return json.dumps({"op": "subscribe", "subscriptions": wanted})


def test_only_dropped_subscriptions_are_requested_again():
    subscriptions = Subscriptions()
    subscriptions.note(subscribe(n1=7, n2=8))
    assert subscriptions.request_again() is None
    assert subscriptions.refuses(REFUSED)
    assert json.loads(subscriptions.request_again()) == json.loads(subscribe(n1=7))
    assert subscriptions.request_again() is None


def test_cancelled_subscriptions_are_not_requested_again():
    subscriptions = Subscriptions()
    subscriptions.note(subscribe(n1=7))
    assert subscriptions.refuses(REFUSED)
    subscriptions.note('{"op":"unsubscribe","subscriptionIds":[1]}')
    assert subscriptions.request_again() is None
    assert not subscriptions.refuses(REFUSED)


def test_viewers_are_told_of_a_channel_that_never_comes():
    subscriptions = Subscriptions()
    subscriptions.note(subscribe(n1=7))
    for _ in range(MAX_ATTEMPTS - 1):
        assert subscriptions.refuses(REFUSED)
        assert subscriptions.request_again()
    assert not subscriptions.refuses(REFUSED)
    assert subscriptions.request_again() is None


@pytest.mark.parametrize(
    "frame",
    [
        '{"op":"subscribe"}',
        '{"op":"subscribe","subscriptions":7}',
        '{"op":"subscribe","subscriptions":[{"id":"one","channelId":7}]}',
        '["subscribe"]',
        "subscribe",
        '{"op":"unsubscribe","subscriptionIds":{}}',
        "[" * 100_000 + "subscribe",
    ],
)
def test_messages_other_than_requests_are_left_to_the_server(frame):
    subscriptions = Subscriptions()
    subscriptions.note(frame)
    assert not subscriptions.refuses(REFUSED)


def test_other_messages_of_the_server_pass():
    subscriptions = Subscriptions()
    subscriptions.note(subscribe(n1=7))
    assert not subscriptions.refuses('{"op":"status","level":1,"message":"Something else"}')
    assert not subscriptions.refuses('{"op":"advertise","channels":[{"id":7,"topic":"Unknown channel ID: 7"}]}')
