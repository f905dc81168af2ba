# SPDX-License-Identifier: Apache-2.0
"""The campaigns (`make soak`, `kills`, `signals`, `stalls`) for a moment, and that they would find something."""

import importlib
import signal
import socket
import sys
import time
from pathlib import Path

import pytest
from processes import TIMEOUT_S
from ros_session import wait_until

from drone_bridge.kind import kinds, load
from drone_bridge.robot import codec as robot

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmark"))
campaign, children, programs, relay = map(importlib.import_module, ("campaign", "children", "programs", "relay"))

READERS = {name: load(kind.commands) for name, kind in kinds().items()}
DRIVING = robot.DriverConnection().send(robot.SkidSteerUpdate(0, 5, 5))
STOPPED = robot.DriverConnection().send(robot.SkidSteerUpdate(0, 0, 0))


# For a moment.


@pytest.mark.parametrize(
    ("name", "only", "count"),
    [("soak", "dronegui_bridge", 2), ("kills", "recorder", 1), ("signals", "fleet", 1), ("stalls", "web_bridge", 1)],
)
def test_a_campaign(name, only, count, tmp_path):
    run = campaign.Campaign(campaign.read_options([name, "--only", only, "--count", str(count)]), tmp_path)
    tally = run.run()
    assert not tally.failures, "\n".join(tally.failures)
    assert tally.count == count
    assert f" | `make {name}` | " in run.table()


def test_a_soak_that_is_terminated_leaves_nothing_running(start_child, tmp_path):
    run = start_child(sys.executable, campaign.__file__, "soak", "--only", "dronegui_b", env={"TMPDIR": str(tmp_path)})
    outputs = tmp_path.glob
    wait_until(lambda: any("Listening" in file.read_text() for file in outputs("*/*/*.bridge.*")), "a bridge")
    started = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    assert run.stop(signal.SIGTERM) == campaign.INTERRUPTED
    assert [pid for pid in started if Path(f"/proc/{pid}").exists()] == []
    assert list(outputs("*")) == []
    assert "Traceback" not in run.output


# That it would find something.


@pytest.mark.parametrize(
    ("last", "found"),
    [
        ((104_000, 20, 5), []),
        ((120_000, 20, 5), ["has grown by 19.5 MiB since the first third"]),
        ((100_000, 21, 5), ["1 descriptors more than at first"]),
        ((100_000, 20, 7), ["2 threads more than at first"]),
    ],
)
def test_growth_is_found(last, found):
    assert campaign.grown([(99_000, 20, 5), (100_000, 22, 9), (100_000, 20, 5), last]) == found


def commands_of(*said, **options):
    commands = relay.CommandLog(**options)
    commands._commands = list(said)
    return commands


@pytest.mark.parametrize(
    ("said", "moved_s"),
    [
        ([(0.0, False), (1.0, False), (1.4, False), (1.5, True)], 0.4),
        ([(0.0, False), (1.5, True)], 0.0),
        ([(0.0, True), (1.5, True), (1.6, False)], None),
        ([(0.0, False)], None),
    ],
)
def test_a_missing_neutral_command_is_found(said, moved_s):
    became = commands_of(*said).becomes_neutral(1.0, 0.0, 0.0)
    assert became == (moved_s if moved_s is None else pytest.approx(moved_s))


@pytest.mark.parametrize(("is_neutral", "moved_s"), [(True, 0.5), (False, None)])
def test_of_a_vehicle_that_has_not_asked_since_the_next_answer_counts(monkeypatch, is_neutral, moved_s):
    """As one that the machine has held up: without an answer a testbed's drone does not move."""
    commands = commands_of((1.0, False), (1.5, False), is_asked=True)
    monkeypatch.setattr(commands, "wait", lambda *_: commands._commands.append((4.0, is_neutral)))
    assert commands.becomes_neutral(1.0, 2.5, 0.0) == moved_s


@pytest.mark.parametrize(
    ("output", "is_pythons"),
    [
        ("Fatal Python error: init_import_site: Failed to import the site module\nKeyboardInterrupt\n", True),
        ('Traceback:\n  File "lib/drone_bridge/robot_bridge", line 3\n    import signal\nKeyboardInterrupt\n', True),
        ('Traceback:\n  File "drone_bridge/robot/bridge/node.py", line 9\nKeyboardInterrupt\n', False),
        ('Traceback:\n  File "drone_bridge/ros/program.py", line 40\nKeyboardInterrupt\n', False),
        ("ValueError: no such thing\n", False),
        ("", False),
    ],
)
def test_only_interrupts_before_the_programs_first_lines_are_pythons_own(output, is_pythons):
    assert campaign.is_from_pythons_start(output) is is_pythons


def test_programs_heed_interrupts_although_a_shell_has_this_one_ignore_them(tmp_path):
    before, of_term = signal.signal(signal.SIGINT, signal.SIG_IGN), signal.getsignal(signal.SIGTERM)
    try:
        children.heed_signals()
        program = programs.Program("sleeper", [sys.executable, "-S", "-c", "import time; time.sleep(60)"], tmp_path, 1)
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, of_term)
    program.send(signal.SIGINT)
    assert program.wait() != 0


# The relay.


@pytest.fixture
def far():
    """The vehicle's listener."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(TIMEOUT_S)
        yield listener


@pytest.fixture
def between(far):
    """A relay in front of it, with what it hears."""
    middle = relay.StreamRelay(far.getsockname()[1], READERS["robot"], relay.CommandLog())
    middle.start()
    yield middle
    middle.close()


def connected(far, between):
    near = socket.create_connection(("127.0.0.1", between.port), TIMEOUT_S)
    vehicle, _ = far.accept()
    vehicle.settimeout(TIMEOUT_S)
    return near, vehicle


def closes(end):
    try:
        return not end.recv(1)
    except ConnectionResetError:
        return True


def test_a_relay_passes_on_both_ways_and_hears_commands(far, between):
    near, vehicle = connected(far, between)
    with near, vehicle:
        near.sendall(DRIVING + STOPPED)
        assert vehicle.recv(100) == DRIVING + STOPPED
        vehicle.sendall(b"hello")
        assert near.recv(100) == b"hello"
        assert [is_neutral for _, is_neutral in between._commands.since(0.0)] == [False, True]


def test_invalid_output_is_found(far, between):
    near, vehicle = connected(far, between)
    with near, vehicle:
        near.sendall(b"\x00\x01\x05\xff" * 10)
        vehicle.recv(100)
    assert between._commands.malformed


@pytest.mark.parametrize("fault", [relay.GARBAGE, relay.TRUNCATED, relay.TRICKLE, relay.FLOOD])
def test_faults_change_what_the_bridge_reads_and_end_the_connection(far, between, fault):
    near, vehicle = connected(far, between)
    with near, vehicle:
        between.spoil(fault)
        vehicle.sendall(b"hello, hello")
        read = near.recv(12) + (near.recv(12) if fault == relay.FLOOD else b"")
        assert read
        assert read != b"hello, hello"
        between.heal()
        deadline_s = time.monotonic() + TIMEOUT_S
        while not closes(near):
            assert time.monotonic() < deadline_s
    again = connected(far, between)
    again[1].sendall(b"hello")
    assert again[0].recv(100) == b"hello"
    for end in again:
        end.close()


def test_a_half_open_connection_says_nothing_and_stays(far, between):
    near, vehicle = connected(far, between)
    with near, vehicle:
        between.spoil(relay.HALF_OPEN)
        vehicle.sendall(b"hello")
        near.settimeout(0.3)
        with pytest.raises(TimeoutError):
            near.recv(1)


@pytest.mark.parametrize("fault", [relay.CUT, relay.UNREACHABLE])
def test_a_cut_ends_connections(far, between, fault):
    near, vehicle = connected(far, between)
    with near, vehicle:
        between.spoil(fault)
        assert closes(near)


def test_datagrams_are_passed_on_spoiled_and_held_back():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bridge:
        bridge.bind(("127.0.0.1", 0))
        bridge.settimeout(TIMEOUT_S)
        middle = relay.DatagramRelay(
            bridge.getsockname()[1], READERS["telemetry"], relay.CommandLog(), vehicle_begins=True
        )
        middle.start()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as vehicle:
            vehicle.connect(("127.0.0.1", middle.port))
            vehicle.send(b"hello")
            data, source = bridge.recvfrom(100)
            assert data == b"hello"
            bridge.sendto(b'{"thrust":0.1,"pitch":0.0,"roll":0.0,"yaw":0.0}', source)
            assert vehicle.recv(100).startswith(b'{"thrust"')
            assert middle._commands.is_moving
            middle.spoil(relay.TRUNCATED)
            vehicle.send(b"hello")
            assert bridge.recv(100) == b"he"
        middle.close()
