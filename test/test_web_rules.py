# SPDX-License-Identifier: Apache-2.0
"""Who may connect to the page, and what waits for a viewer who is slow."""

import pytest

from drone_bridge.tools.web.access import Access, is_loopback
from drone_bridge.tools.web.address import links, qr_code
from drone_bridge.tools.web.outbox import LARGE_BYTES, MAX_CONTROL_BYTES, MAX_SMALL, Outbox, OverflowingError

HERE = Access.of("127.0.0.1", steer=False)
BEYOND = Access.of("0.0.0.0", steer=False, secret="s3cret")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_on_this_machine_all_is_allowed_without_a_secret(host):
    assert is_loopback(host)
    access = Access.of(host, steer=False)
    assert access.may_change
    assert not access.secret
    assert access.refusal("/", f"[{host}]:8765" if ":" in host else f"{host}:8765", None) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "example.org", ""])
def test_beyond_this_machine_viewing_needs_a_secret_and_steering_has_to_be_allowed(host):
    access = Access.of(host, steer=False)
    assert len(access.secret) >= 20
    assert access.secret not in repr(access)
    assert not access.may_change
    assert Access.of(host, steer=True).may_change
    assert Access.of(host, steer=True).secret != access.secret


@pytest.mark.parametrize(
    "path", ["/", "/?secret=", "/?secret=wrong", "/?secret", "/s3cret", "/?a=1&secret=s3cre", "/?é"]
)
def test_a_wrong_secret_is_refused(path):
    assert "secret" in BEYOND.refusal(path, "192.0.2.7:8765", None)


def test_the_right_secret_is_let_in_under_any_name():
    assert BEYOND.refusal("/?secret=s3cret", "robot.lan:8765", "http://robot.lan:8765") is None


@pytest.mark.parametrize("host", ["evil.example:8765", "", "[", "127.0.0.1.evil.example"])
def test_a_foreign_name_that_points_here_is_refused(host):
    assert "this machine only" in HERE.refusal("/", host, None)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "http://127.0.0.1:9999", "https://127.0.0.1:8765"]
)
def test_other_pages_are_refused(origin):
    assert "may not connect" in HERE.refusal("/", "127.0.0.1:8765", origin)
    assert "may not connect" in BEYOND.refusal("/?secret=s3cret", "192.0.2.7:8765", origin)


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8765", "https://app.foxglove.dev", None])
def test_our_page_and_foxglove_and_programs_are_let_in(origin):
    assert HERE.refusal("/", "127.0.0.1:8765", origin) is None


def test_links_hold_the_secret():
    assert links(HERE, 8765) == ["http://127.0.0.1:8765/"]
    assert all(link.endswith(":8765/?secret=s3cret") for link in links(BEYOND, 8765))
    assert links(Access.of("::1", steer=False), 1)[0] == "http://[::1]:1/"


def test_the_first_link_is_a_picture():
    pytest.importorskip("segno", reason="rosdep has no key for it")
    assert len(qr_code(links(BEYOND, 8765)[0]).splitlines()) > 10


def data(subscription, size, filling=b"x"):
    return b"\x01" + bytes([subscription, 0, 0, 0]) + filling * (size - 5)


def emptied(outbox):
    return list(iter(outbox.pop, None))


def test_of_pictures_only_the_newest_waits_and_each_camera_gets_its_turn():
    outbox = Outbox()
    for filling in b"abc":
        for camera in (1, 2):
            outbox.put(data(camera, LARGE_BYTES, bytes([filling])))
    assert emptied(outbox) == [data(1, LARGE_BYTES, b"c"), data(2, LARGE_BYTES, b"c")]
    assert outbox.dropped == 4


def test_small_messages_go_before_pictures_in_order_and_what_is_said_about_channels_before_all():
    outbox = Outbox()
    picture, small, other = data(1, LARGE_BYTES), data(2, 20), data(3, 30)
    for frame in (picture, small, other, '{"op": "advertise"}', b"\x03answer"):
        outbox.put(frame)
    assert emptied(outbox) == ['{"op": "advertise"}', b"\x03answer", small, other, picture]


def test_the_queue_is_bounded():
    outbox = Outbox()
    for number in range(MAX_SMALL + 10):
        outbox.put(data(1, 13, bytes([number % 256])))
    assert len(emptied(outbox)) == MAX_SMALL
    assert outbox.dropped == 10
    outbox.put("x" * MAX_CONTROL_BYTES)
    with pytest.raises(OverflowingError):
        outbox.put("x")
