# SPDX-License-Identifier: Apache-2.0
"""What the methods of a Robot return: wrong results are named, and a method that does not return is."""

import time
from types import SimpleNamespace

import pytest

from drone_bridge.robot_class import BodyVelocity, Robot, Udp, hang, returned
from drone_bridge.robot_class.hang import watch_methods
from drone_bridge.robot_class.robot import unstoppable
from drone_bridge.ros.process import watchdog


def exits(*_):
    raise SystemExit(2)


WRONG = {
    "encode_command": [None, "text", 7],
    "encode_goodbye": [None, "text"],
    "last_words": [b"one", (b"one",), (b"one", "two")],
    "decode_report": [b"bytes", {}],
    "decode_command": ["text", 0.3, (BodyVelocity(), "ok")],
    "encode_report": ["text"],
    "encode_answer": [None],
}


def robot(**methods):
    return type("Wrong", (Robot,), {"name": "wrong", "control": Udp(1), **methods})


@pytest.mark.parametrize(("name", "result"), [(name, result) for name, results in WRONG.items() for result in results])
def test_a_wrong_result_is_named_with_its_method(name, result):
    end = robot(**{name: lambda *_: result})()
    with pytest.raises(
        returned.WrongResultError, match=rf"^Wrong.{name}\(\) must return .*, and returned .* \(test_returned.py:\d+\)$"
    ):
        getattr(end, name)(*[b""] * (name not in ("encode_goodbye", "last_words")))


def test_results_for_a_further_link_are_checked_as_well():
    state = {"state": Udp(2, listen=True)}
    with pytest.raises(returned.WrongResultError, match=r"^Wrong.decode_state\(\) must return Telemetry"):
        robot(**state, decode_state=lambda *_: {})().decode_state(b"")
    with pytest.raises(ValueError, match=r"Wrong.decode_state\(\) has called sys.exit\(2\)"):
        robot(**state, decode_state=exits)().decode_state(b"")


@pytest.mark.parametrize("steps", [["hello"], [("hello", len)], [(b"hello", True)], [(b"hello",)]])
def test_a_wrong_step_of_the_handshake_is_named(steps):
    with pytest.raises(returned.WrongResultError, match=r"^Wrong.handshake\(\) must return steps"):
        list(robot(handshake=lambda _: iter(steps))().handshake())


def test_bytes_of_other_types_become_bytes():
    end = robot(encode_command=lambda *_: bytearray(b"v"), handshake=lambda _: iter([memoryview(b"hello")]))()
    assert (end.encode_command(BodyVelocity()), list(end.handshake())) == (b"v", [b"hello"])
    assert type(end.encode_command(BodyVelocity())) is bytes


@pytest.mark.parametrize("name", ["encode_command", "decode_report", "decode_command"])
def test_an_exit_rejects_the_packet(name):
    with pytest.raises(ValueError, match=rf"Wrong.{name}\(\) has called sys.exit\(2\)"):
        getattr(robot(**{name: exits})(), name)(b"")


@pytest.mark.parametrize("result", [b"", None, "text"])
def test_a_robot_without_a_neutral_packet_is_unstoppable(result):
    def encode_command(end, velocity):
        return b"v" if velocity.forward else result

    assert "Wrong.encode_command() " in unstoppable(robot(encode_command=encode_command))
    assert unstoppable(robot(encode_command=lambda end, velocity: b"v")) == ""


@pytest.mark.parametrize(("last_words", "is_refused"), [(lambda _: b"halt", True), (lambda _: int("x"), False)])
def test_wrong_last_words_refuse_the_start(last_words, is_refused):
    reason = unstoppable(robot(encode_command=lambda *_: b"v", last_words=last_words))
    assert ("Wrong.last_words() must return " in reason) == is_refused == bool(reason)


def test_a_method_that_does_not_return_ends_the_node_by_name(monkeypatch):
    said, ended = [], []
    monkeypatch.setattr(watchdog, "end", lambda: ended.append(True))
    logger = SimpleNamespace(fatal=said.append)
    each_second, timers = [], []
    monkeypatch.setattr(hang.threading, "Timer", lambda *options: timers.append(options) or SimpleNamespace(start=int))
    node = SimpleNamespace(get_logger=lambda: logger, each_second=each_second.append)
    watch_methods(node)
    ((delay_s, in_start),) = timers
    assert watchdog.limit_s() < delay_s < 2 * watchdog.limit_s(), "set_up calls methods before the reports begin"

    def decode_report(end, packet):
        in_start()
        monkeypatch.setattr(time, "monotonic", lambda: called_s + watchdog.limit_s() + 1.0)
        assert returned.stuck(watchdog.limit_s()) == "Wrong.decode_report"
        each_second[0]()

    called_s = time.monotonic()
    robot(decode_report=decode_report)().decode_report(b"")
    assert ["Wrong.decode_report() has not returned" in each for each in said] == [True] == ended
    assert returned.stuck(0.0) == ""


@pytest.fixture
def clock(monkeypatch):
    """Return the time, s, which a method can advance."""
    now_s = [time.monotonic()]
    monkeypatch.setattr(returned.time, "monotonic", lambda: now_s[0])
    returned._slow.clear()
    yield now_s
    returned._slow.clear()


def test_a_slow_method_is_named_with_its_duration(clock):
    def encode_command(end, velocity):
        clock[0] += 0.3
        return b"v"

    slow = robot(encode_command=encode_command)
    for _ in range(returned.SLOW_CALLS):
        assert not returned.slow_method(), "once, it may have been the machine"
        slow().encode_command(BodyVelocity())
    assert returned.slow_method() == "Wrong.encode_command() took 0.30 s, and has 0.10 s"
    clock[0] += returned.SLOW_S
    assert not returned.slow_method()
