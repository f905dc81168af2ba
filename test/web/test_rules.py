# SPDX-License-Identifier: Apache-2.0
"""Access to the page, and the queue of a slow viewer."""

import re
import sys
import threading
import time
from unittest.mock import Mock

import pytest
from patience import wait_until
from std_srvs.srv import SetBool

from drone_bridge.stop_signals import LAUNCHED
from drone_bridge.tools.web import bag_list as played_recordings
from drone_bridge.tools.web import recorder_process as recordings
from drone_bridge.tools.web.access import Access, is_loopback
from drone_bridge.tools.web.address import NewLinks, links, qr_code
from drone_bridge.tools.web.node import WebBridge
from drone_bridge.tools.web.outbox import (
    FRAGMENT_BYTES,
    LARGE_BYTES,
    MAX_CONTROL_BYTES,
    MAX_LARGE_BYTES,
    MAX_SMALL_BYTES,
    MAX_SUBSCRIPTIONS,
    OVERHEAD_BYTES,
    Outbox,
    OutgoingMessage,
)
from drone_bridge.tools.web.recorder_process import Recording

HERE = Access.of("127.0.0.1", steer=False)
BEYOND = Access.of("0.0.0.0", steer=False, secret="s3cret")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1", "::ffff:127.0.0.1"])
def test_on_this_machine_all_is_allowed_without_a_secret(host):
    assert is_loopback(host)
    access = Access.of(host, steer=False)
    assert access.may_change(host, host, None)
    assert not access.may_change(host, host, "192.0.2.9")  # through a proxy
    assert not access.secret
    assert access.refusal("/", f"[{host}]:8765" if ":" in host else f"{host}:8765", None) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "example.org", ""])
def test_remote_viewing_needs_a_secret_and_steering_has_to_be_allowed(host):
    access = Access.of(host, steer=False)
    assert len(access.secret) >= 20
    assert access.secret not in repr(access)
    assert not access.may_change("192.0.2.7", "192.0.2.9", None)
    assert Access.of(host, steer=True).may_change("192.0.2.7", "192.0.2.9", None)
    assert Access.of(host, steer=True).secret != access.secret


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "192.0.2.7", "::ffff:192.0.2.7"])
def test_local_viewer_may_steer_but_not_one_through_the_proxy(address):
    assert BEYOND.may_change(address, address, None)
    assert BEYOND.may_change("192.0.2.7", "127.0.0.1", None)
    assert BEYOND.may_change("192.0.2.7", "::ffff:127.0.0.1", None)
    assert not BEYOND.may_change("192.0.2.7", "::ffff:192.0.2.9", None)
    assert not BEYOND.may_change(address, address, "192.0.2.9")


@pytest.mark.parametrize(
    "path",
    ["/", "/?secret=", "/?secret=wrong", "/?secret", "/s3cret", "/?a=1&secret=s3cre", "/?é", "//[", f"/?{'a=1&' * 8}a"],
)
def test_a_wrong_secret_is_refused(path):
    assert "secret" in BEYOND.refusal(path, "192.0.2.7:8765", None)


def test_the_right_secret_is_let_in_under_any_name():
    assert BEYOND.refusal("/?secret=s3cret", "robot.lan:8765", "http://robot.lan:8765") is None


@pytest.mark.parametrize("host", ["evil.example:8765", "", "[", "127.0.0.1.evil.example"])
def test_a_foreign_name_that_points_here_is_refused(host):
    assert "this machine" in HERE.refusal("/", host, None)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://127.0.0.1:9999", "https://127.0.0.1"])
def test_other_pages_are_refused(origin):
    assert "may not connect" in HERE.refusal("/", "127.0.0.1:8765", origin)
    assert "may not connect" in BEYOND.refusal("/?secret=s3cret", "192.0.2.7:8765", origin)


@pytest.mark.parametrize(
    "origin", ["http://127.0.0.1:8765", "https://127.0.0.1:8765", "https://app.foxglove.dev", None]
)
def test_our_page_and_foxglove_and_programs_are_let_in(origin):
    assert HERE.refusal("/", "127.0.0.1:8765", origin) is None


def test_links_hold_the_secret():
    assert links(HERE, 8765) == ["http://127.0.0.1:8765/"]
    assert all(link.endswith(":8765/?secret=s3cret") for link in links(BEYOND, 8765))
    assert links(Access.of("::1", steer=False), 1)[0] == "http://[::1]:1/"


@pytest.mark.parametrize("host", ["::", "::0", "0:0:0:0:0:0:0:0", "0.0.0.0", ""])
def test_links_to_all_interfaces_name_this_machine(host):
    assert links(Access.of(host, steer=False), 1)[0].startswith(links(BEYOND, 1)[0].partition("?")[0])


def test_the_first_link_is_a_picture():
    pytest.importorskip("segno", reason="rosdep has no key for it")
    assert len(qr_code(links(BEYOND, 8765)[0]).splitlines()) > 10


class Box(Outbox):
    """Outbox with subscriptions 1 to 9 to the channels 11 to 19."""

    def __init__(self):
        self.woken = 0
        super().__init__(self._count)
        for number in range(1, 10):
            assert self.subscribe(number, 10 + number) == ""

    def _count(self):
        self.woken += 1

    def receive(self, subscription, data):
        self.put(10 + subscription, data, 0)

    def empty(self):
        """Return the sent messages, as (subscription, data)."""
        return [(frame.subscription, frame.data) for frame in iter(self.pop, None)]


PICTURE = b"x" * LARGE_BYTES


def test_a_network_that_appears_later_has_a_link(monkeypatch):
    address = ["127.0.0.1"]
    monkeypatch.setattr("drone_bridge.tools.web.address._outward_address", lambda: address[0])
    new = NewLinks(BEYOND, 8765)
    assert new.take()[0].startswith("http://127.0.0.1:8765/")
    assert new.take() == []
    address[0] = "192.0.2.7"
    assert new.take()[0].startswith("http://192.0.2.7:8765/")
    address[0] = "127.0.0.1"
    assert new.take() == []


@pytest.mark.parametrize(("host", "is_gone"), [("192.0.2.7", True), ("127.0.0.1", False), ("0.0.0.0", False)])
def test_an_address_that_has_gone_is_logged(host, is_gone):
    node = Mock(_access=Access.of(host, steer=False), **{"_links.take.return_value": []})
    WebBridge._print_links(node)
    assert [host in each.args[0] for each in node._on_refusal.call_args_list] == [True] * is_gone


def test_of_pictures_only_the_newest_waits_and_each_camera_gets_its_turn():
    outbox = Box()
    for filling in (b"a", b"b", b"c"):
        for camera in (1, 2):
            outbox.receive(camera, filling * LARGE_BYTES)
    assert outbox.empty() == [(1, b"c" * LARGE_BYTES), (2, b"c" * LARGE_BYTES)]
    assert outbox.woken == 1


def test_cameras_take_turns_where_not_all_pictures_have_room():
    """They arrive simultaneously, and the viewer reads one for ten of each."""
    outbox, sent = Box(), []
    for number in range(60):
        for camera in (1, 2, 3):
            outbox.receive(camera, b"x" * (MAX_LARGE_BYTES // 3))
        if number % 10 == 9:
            sent.append(outbox.pop().subscription)
    assert sorted(sent) == [1, 1, 2, 2, 3, 3]


def test_small_messages_precede_pictures_and_channel_news_precede_all():
    outbox = Box()
    outbox.receive(1, PICTURE)
    outbox.receive(2, b"small")
    outbox.receive(3, b"other")
    for frame in ('{"op": "advertise"}', b"\x03answer"):
        assert outbox.put_control(frame)
    said = [(None, '{"op": "advertise"}'), (None, b"\x03answer")]
    assert outbox.empty() == [*said, (2, b"small"), (3, b"other"), (1, PICTURE)]


def test_frame_header_has_subscription_and_time_whole_or_in_pieces():
    header = bytes([1, 7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0])
    assert OutgoingMessage(b"small", 7, 9).content() == header + b"small"
    data = bytes(range(256)) * 3000
    pieces = list(OutgoingMessage(data, 7, 9).fragments())
    assert b"".join(pieces) == header + data
    assert max(map(len, pieces)) <= FRAGMENT_BYTES


def test_what_waits_is_bounded_and_one_picture_of_any_size_may():
    outbox = Box()
    for number in range(MAX_SMALL_BYTES // OVERHEAD_BYTES):
        outbox.receive(1, b"%08d" % number)
    assert outbox.put_control("x" * (MAX_CONTROL_BYTES - OVERHEAD_BYTES))
    assert not outbox.put_control("x")
    _, *small = outbox.empty()
    assert small[-1] == (1, b"%08d" % number)
    assert len(small) == MAX_SMALL_BYTES // (OVERHEAD_BYTES + 8)
    huge, half = b"x" * (2 * MAX_LARGE_BYTES), b"x" * (MAX_LARGE_BYTES // 2)
    for camera, picture, waiting in ((1, huge, [1]), (1, huge, [1]), (2, PICTURE, [1]), (1, half, [1]), (2, half, [1])):
        outbox.receive(camera, picture)
        assert list(outbox._large) == waiting
    outbox.receive(2, PICTURE)
    outbox.receive(1, huge)  # there is no room for it, and the message that it replaces is stale
    assert outbox.empty() == [(2, PICTURE)]
    assert (outbox._large_bytes, outbox._small_bytes, outbox._control_bytes) == (0, 0, 0)


def test_what_waits_goes_with_the_subscription():
    outbox = Box()
    outbox.receive(1, PICTURE)
    assert outbox.unsubscribe(1) == 11
    assert outbox.unsubscribe(1) is None
    outbox.receive(1, PICTURE)
    outbox.receive(2, PICTURE)
    outbox.withdraw(12)
    assert outbox.empty() == []
    assert outbox.channels() == list(range(13, 20))


def test_a_channel_is_subscribed_to_once_and_a_number_given_once():
    outbox = Box()
    assert "already exists" in outbox.subscribe(20, 11)
    assert "already exists" in outbox.subscribe(1, 30)
    for number in range(10, MAX_SUBSCRIPTIONS + 1):
        assert outbox.subscribe(number, 10 + number) == ""
    assert f"{MAX_SUBSCRIPTIONS} subscriptions" in outbox.subscribe(100_000, 100_000)


def test_recording_to_an_unwritable_folder_is_refused_by_name(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("os.access", lambda path, mode: False)
    node = Mock()
    call = RecordCall(node, Recording(node), True)
    assert not call.response.success
    assert str(tmp_path) in call.response.message


class RecordCall:
    """Call of the service that starts and stops a recording, executed as the node's executor does."""

    def __init__(self, node, recording, is_on):
        self._node, self._update = node, recording.update
        _, _, service = node.create_service.call_args.args
        self._serving = service(SetBool.Request(data=is_on), SetBool.Response())
        self.response = None
        self.turn()

    def turn(self):
        """Run the node's callbacks once. Return whether there is a response."""
        if self.response is None:
            self._update()
            if self._node.create_timer.called:
                _, poll = self._node.create_timer.call_args.args
                poll()
            try:
                self._serving.send(None)
            except StopIteration as done:
                self.response = done.value
        return self.response is not None


@pytest.fixture
def record(monkeypatch, tmp_path):
    """Start or stop a recording by the service, whose recorder is a given command."""
    node = Mock(executor=None)
    node.get_topic_names_and_types.return_value = []
    recording = Recording(node)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(LAUNCHED, raising=False)
    monkeypatch.setattr(recordings, "get_package_prefix", lambda _: str(tmp_path))
    monkeypatch.setattr(recordings, "original_output", lambda: (None, None))
    program = tmp_path / "lib" / "drone_bridge" / "recorder"
    program.parent.mkdir(parents=True)

    def call(is_on, script=""):
        if script:
            make_folder = """mkdir -p "$(echo "$3" | cut -d'"' -f 2)" """
            program.write_text(f"#!/bin/sh\n{script.replace('RECORDS', make_folder)}\n")
            program.chmod(0o755)
        return RecordCall(node, recording, is_on)

    def request(is_on, script=""):
        calling = call(is_on, script and f"RECORDS; {script}")
        wait_until(calling.turn, "a response")
        return calling.response.success, calling.response.message

    request.call, request.node, request.close = call, node, recording.close
    yield request
    recording.close()


@pytest.mark.parametrize(("status", "is_logged"), [(1, False), (-9, True)])
def test_the_end_of_a_recorder_that_logs_the_reason_itself_is_logged_once(status, is_logged):
    """As on a full disk, with status 1."""
    node = Mock()
    recording = Recording(node)
    recording._child = Mock(poll=lambda: status, returncode=status)
    recording.update()
    assert (node.get_logger().error.called, recording._child) == (is_logged, None)


@pytest.mark.parametrize(("status", "is_complete"), [(0, True), (1, False)])
def test_a_recording_that_fails_at_its_end_is_reported_as_incomplete(record, tmp_path, status, is_complete):
    ready = tmp_path / "ready"
    success, message = record(True, f"trap 'exit {status}' INT; touch {ready}; while :; do sleep 0.05; done")
    assert (success, message.startswith("Recording into")) == (True, True)
    wait_until(ready.exists, "the recorder")
    success, message = record(False)
    assert (success, message.startswith("Recorded into")) == (is_complete, is_complete)
    assert str(tmp_path / "drone_bridge_bags") in message


def test_a_recording_begins_once_the_recorder_records(record, tmp_path):
    begin = tmp_path / "begin"
    starting = record.call(True, f"while ! [ -e {begin} ]; do sleep 0.05; done; RECORDS; sleep 60")
    told = record.node.create_publisher.return_value.publish
    assert not any(starting.turn() for _ in range(9))
    assert record(True)[1].startswith("Already recording into")
    assert told.call_args.args[0].data == ""
    begin.touch()
    wait_until(starting.turn, "a response")
    assert (starting.response.success, told.call_args.args[0].data != "") == (True, True)


def test_a_recorder_that_ends_before_it_records_is_a_failure(record):
    starting = record.call(True, "exit 1")
    wait_until(starting.turn, "a response")
    assert not starting.response.success
    assert record(False) == (False, "There is no recording.")


def test_the_node_works_while_a_recording_is_completed(record, tmp_path):
    ready, finish = tmp_path / "ready", tmp_path / "finish"
    on_stop = f"while ! [ -e {finish} ]; do sleep 0.05; done; exit 0"
    record(True, f"trap '{on_stop}' INT; touch {ready}; while :; do sleep 0.05; done")
    wait_until(ready.exists, "the recorder")
    stopping = record.call(False)
    assert not stopping.turn()
    for is_on in (True, False):
        success, message = record(is_on)
        assert not success
        assert "being completed" in message
    assert not stopping.turn()
    finish.touch()
    wait_until(stopping.turn, "a response")
    assert stopping.response.success
    record.node.get_logger().error.assert_not_called()
    assert record(False) == (False, "There is no recording.")


def test_a_recorder_that_does_not_end_is_killed(record, tmp_path, monkeypatch):
    monkeypatch.setattr(recordings, "STOP_TIMEOUT_S", 0.2)
    for way in ("service", "end of the node"):
        ready = tmp_path / way.replace(" ", "_")
        record(True, f"trap '' INT; touch {ready}; while :; do sleep 0.05; done")
        wait_until(ready.exists, "the recorder")
        if way == "service":
            assert not record(False)[0]
        else:
            record.call(False)
            record.close()
        assert record(False) == (False, "There is no recording.")


def test_a_recorder_that_can_t_be_started_is_an_answer_and_no_end_of_the_node(record):
    success, message = record(True)
    assert (success, message) == (False, "The recorder can't be started: No such file or directory.")
    assert record(False) == (False, "There is no recording.")


def test_a_recorder_ends_with_its_node(record, tmp_path):
    ready = tmp_path / "ready"
    record(True, f'echo "${LAUNCHED}" >{ready}.new; mv {ready}.new {ready}; exec sleep 60')
    wait_until(ready.exists, "the recorder")
    assert ready.read_text().strip()


@pytest.fixture
def played(monkeypatch, tmp_path):
    """Play a recording by a program of the test, and return the answer."""
    (tmp_path / "bag").mkdir()
    (tmp_path / "bag" / "bag.mcap").touch()
    program = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(program))
    shown = played_recordings.Recordings("127.0.0.1", tmp_path)

    def play(script):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        answers = []
        shown.play("bag", lambda *answer: answers.append(answer))
        wait_until(lambda: answers, "an answer")
        return answers[0]

    play.close = shown.close
    yield play
    shown.close()


def test_a_player_that_does_not_end_does_not_keep_the_node(played, monkeypatch):
    monkeypatch.setattr(played_recordings, "STOP_TIMEOUT_S", 0.2)
    link = "http://127.0.0.1:1/"
    assert played(f"trap '' TERM; echo Open in a browser: {link}; while :; do sleep 0.05; done") == (link, "")
    began_s = time.monotonic()
    played.close()
    assert time.monotonic() - began_s < 20.0


def test_requests_to_play_while_one_is_executed_are_refused(monkeypatch, tmp_path):
    shown, is_ready, answers = played_recordings.Recordings("127.0.0.1", tmp_path), threading.Event(), []
    monkeypatch.setattr(shown, "file", lambda _: is_ready.wait() and None)
    before = threading.active_count()

    def play():
        shown.play("bag", lambda *answer: answers.append(answer))

    try:
        for _ in range(50):
            play()
        assert threading.active_count() <= before + 1
        assert len(answers) == 49
    finally:
        is_ready.set()
    wait_until(lambda: len(answers) == 50, "the answer of the first request")
    play()
    wait_until(lambda: len(answers) == 51 and answers[-1] == answers[-2], "the answer of a later request")
    assert answers[-1] != answers[0]


def test_no_player_starts_after_the_end_of_the_node(played):
    played.close()
    assert played("sleep 5") == ("", "'bag' is not played: the node ends.")


def test_only_the_compressed_topic_of_an_image_is_recorded():
    node = Mock()
    node.get_topic_names_and_types.return_value = [
        (name, []) for name in ("/a/image", "/a/image/compressed", "/b/image", "/a/image_info")
    ]
    pattern = re.compile(Recording(node)._raw_images())
    found = [name for name, _ in node.get_topic_names_and_types() if pattern.search(name)]
    assert found == ["/a/image"]
    node.get_topic_names_and_types.return_value = [("/b/image", [])]
    assert Recording(node)._raw_images() == ""
