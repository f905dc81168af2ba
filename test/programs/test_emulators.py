# SPDX-License-Identifier: Apache-2.0
"""All emulators as programs: each way to start and to interrupt them, and unread output."""

import os
import re
import signal
import socket
import subprocess
import sys

import pytest
from processes import TIMEOUT_S, executable

from drone_bridge.kind import OWN, kinds

MAINS = {kinds()[name].emulator.name: kinds()[name].emulator.main for name in OWN}
LISTENING = ("testbed", "robot", "simulator")  # over TCP
each = pytest.mark.parametrize("name", MAINS)
each_listening = pytest.mark.parametrize("name", LISTENING)


def options(name, port=0):
    """What keeps it from ports of its own choice."""
    return ["--port", port or (1 if name == "telemetry" else 0), *(["--no-discovery"] if name == "robot" else [])]


@pytest.mark.parametrize(
    ("name", "how"), [("robot", "executable"), ("telemetry", "command"), ("testbed", "module"), ("dronegui", "module")]
)
def test_help_names_the_command_that_started_it(name, how):
    module = MAINS[name].partition(":")[0].removesuffix(".__main__")
    command, program = {
        "executable": ([executable(f"{name}_emulator")], f"{name}_emulator"),
        "command": ([executable("drone-bridge"), "emulate", name], f"drone-bridge emulate {name}"),
        "module": ([sys.executable, "-m", module], f"python3 -m {module}"),
    }[how]  # fmt: skip
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert done.stdout.startswith(f"usage: {program} [options]")


@each_listening
def test_it_continues_while_its_output_is_not_read(name, free_port):
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [executable(f"{name}_emulator"), *map(str, options(name, free_port))],
        stdout=writing,
        stderr=writing,
        start_new_session=True,
    )
    os.close(writing)
    try:
        said = b""
        while b"listening" not in said:
            said += (piece := os.read(reading, 1000))
            assert piece
        os.close(reading)
        for _ in range(3):  # each of them is worth a line or two
            with socket.create_connection(("127.0.0.1", free_port), TIMEOUT_S) as client:
                client.settimeout(TIMEOUT_S)
                if name == "testbed":  # which speaks first
                    assert client.recv(48)
                client.sendall(b"\x00" * 64)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 0
    finally:
        process.kill()
        process.wait()


@each_listening
def test_a_port_in_use_is_reported_with_a_remedy(name, start_child):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        child = start_child(executable(f"{name}_emulator"), *options(name, port))
        assert child.wait() == 2
    assert re.match(rf"{name}: .*\b{port} is in use by .*\(process {os.getpid()}\)", child.lines[-1])
    assert "by --port." in child.lines[-1]


@each
def test_any_number_of_signals_ends_it_cleanly(name, start_child):
    child = start_child(executable(f"{name}_emulator"), *options(name))
    child.wait_for_line(".")
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        child.send(number)
    assert child.wait() == 0
    assert child.count_lines("Traceback|KeyboardInterrupt") == 0
