# SPDX-License-Identifier: Apache-2.0
"""Programs of others fly the emulated AR.Drone, with their own codecs of commands, navdata and video.

Their ports are constants, so each place of tests has an address of its own.
"""

import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import place
import pytest
from processes import Process
from repository import CAPTURES

pytestmark = pytest.mark.exhaustive

CLIENTS = Path(__file__).parent / "clients"
NODE = shutil.which("node")


@pytest.fixture
def flown(start_child):
    """Return a function that runs a program, and returns its lines by their first word."""

    def fly(*command, options=()):
        host = f"127.0.0.{2 + place.number()}"
        with Process.module("drone_bridge.ardrone.vehicle.emulator", "--host", host, *options) as drone:
            drone.wait_for_line("listening on")
            with Process(*command, host) as client:
                drone.wait_for_line("^taking off -> flying")
                drone.wait_for_line("^landing -> landed")
                client.wait_for_line("^landed")
                client.wait()
        lines = (re.fullmatch(r"(\w+) (.+)", line.strip()) for line in client.lines)
        return {line[1]: line[2] for line in lines if line}

    return fly


@pytest.mark.skipif(not NODE or not (CLIENTS / "node_modules").exists(), reason="npm's ar-drone is not installed")
def test_ar_drone_of_npm_flies(flown):
    # It sends its one setting once, and gives up after 0.5 s, which is too little for a busy machine.
    said = flown(NODE, CLIENTS / "fly_ar_drone.js", options=("--bootstrapped", "--video-port", 0))
    assert int(said["landed"]) > 300


@pytest.mark.skipif(not find_spec("pyardrone"), reason="pyardrone is not installed")
def test_pyardrone_flies(flown):
    said = flown("python3", CLIENTS / "fly_pyardrone.py", options=("--video-port", 0))
    assert said["flying"] in ("3", "4", "6")
    assert int(said["landed"]) > 300


@pytest.mark.skipif(not (find_spec("ardrone") and find_spec("av")), reason="ardrone-sdk is not installed")
def test_ardrone_sdk_flies(flown):
    # It reads the video, but this version takes the codec for the size of a frame's head, and so shows no picture.
    said = flown("python3", CLIENTS / "fly_ardrone_sdk.py", options=("--video", CAPTURES / "ardrone" / "node_pave.bin"))
    assert int(said["landed"]) > 300
