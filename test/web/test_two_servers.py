# SPDX-License-Identifier: Apache-2.0
"""Page servers beside others: with a pilot each, and with another clock. Judged by the way of an emulated robot."""

import contextlib
import sys
import time

import browser as chromium
import pytest
from geometry_msgs.msg import TwistStamped
from processes import Process, when_listening
from ros_session import repeating, wait_until
from rosgraph_msgs.msg import Clock
from twists import twist
from web_page import take_the_helm
from web_viewer import Pilot, web_bridge

from drone_bridge.ros.time import time_from_seconds

TOPIC, WHEELS = "/cmd_vel_stamped", ("left", "right")
LATE_S = 3.2
DOING = "document.querySelector('[data-cell=doing]').innerText"

browser = chromium.module_browser()


@pytest.fixture(autouse=True)
def runtime_directory(tmp_path, monkeypatch):
    """Folder of hold files for one test."""
    monkeypatch.setenv("ROS_HOME", str(tmp_path))


@contextlib.contextmanager
def robot(start_child, file):
    """Start a robot that writes its way to a file, and its bridge."""
    emulator = [sys.executable, "-m", "drone_bridge.robot.vehicle.emulator", "--port", 0, "--no-discovery"]
    port = when_listening(start_child(*emulator, "--trajectory", file)).port
    with Process.node("robot_bridge", port=port) as bridge:
        bridge.wait_for_line(r"granted subsystem 0 \(tracks\)")
        yield


def rows(file):
    """Return the rows of a trajectory that is being written."""
    names, *lines = [line.split(",") for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [dict(zip(names, map(float, line), strict=True)) for line in lines]


def drain(*people):
    """Read what pages were sent, so that their connections stay open, and the next token is new."""
    for person in people:
        with contextlib.suppress(TimeoutError):
            while True:
                person.receive(0)


def test_of_two_people_and_a_stick_one_drives_and_each_page_says_who(ros, start_child, tmp_path):
    file = tmp_path / "way.csv"
    servers = robot(start_child, file), web_bridge(), web_bridge()
    with servers[0], servers[1] as one, servers[2] as other, Pilot(one.address) as anne, Pilot(other.address) as ben:
        people = (anne, ben)
        for person in people:
            person.wait_for(lambda person=person: TOPIC in person.vehicles, "the vehicle")
        for person in people:
            person.send(op="take", vehicle=TOPIC)

        def seen(name):
            for person in people:
                person.next_token()
            return [person.vehicles[TOPIC][name] for person in people]

        wait_until(lambda: sorted(map(str, seen("pilot"))) == ["other", "you"], "one pilot")
        pilot, guest = people if seen("pilot")[0] == "you" else (ben, anne)
        assert sorted(seen("pilot_name")) == ["Viewer 1", "Viewer 1 on another page"]
        guest.refusals.clear()
        guest.send(op="take", vehicle=TOPIC)
        guest.wait_for(lambda: guest.refusals, "a refusal")
        guest.send(op="ask", vehicle=TOPIC)
        wait_until(lambda: any(seen("asked")), "a request for the helm")
        (asked,) = pilot.vehicles[TOPIC]["asked"]
        assert (asked["name"], asked["is_you"]) == ("Viewer 1 on another page", False)
        pilot.send(op="hand_over", to=asked["number"])
        wait_until(lambda: seen("pilot") == [None, None], "a free helm")
        guest.send(op="take", vehicle=TOPIC)
        wait_until(lambda: sorted(map(str, seen("pilot"))) == ["other", "you"], "one pilot")
        pilot, guest = guest, pilot

        stick = ros.publisher(TwistStamped, "/robot_bridge/helm")
        with repeating(lambda _: ros.publish_fresh(stick, TwistStamped(twist=twist(forward=-1.0))), 0.05):
            wait_until(lambda: (drain(*people), pilot.push(x=0.5)) and rows(file)[-1]["x"] > 0.3, "0.3 m")
            assert all(row[wheel] >= 0.0 for row in rows(file) for wheel in WHEELS)
            guest.send(op="stop", vehicles=[TOPIC], number=1)
            wait_until(lambda: all(each and each["is_sure"] for each in seen("held")), "a hold")
            why = {person: person.vehicles[TOPIC]["held"]["why"] for person in people}
            assert why == {guest: "you pressed STOP", pilot: "Viewer 1 pressed STOP on another page"}
            wait_until(lambda: not any(rows(file)[-1][wheel] for wheel in WHEELS), "a robot that stands")


def test_a_page_whose_server_has_another_clock_says_by_how_much(ros, browser, start_child, tmp_path):
    """Its clock is that of /clock, which the bridge does not follow."""
    file = tmp_path / "way.csv"
    with robot(start_child, file), web_bridge(use_sim_time=True) as server, contextlib.ExitStack() as stack:
        clock = ros.publisher(Clock, "/clock")
        tick = repeating(lambda _: clock.publish(Clock(clock=time_from_seconds(time.time() - LATE_S))), 0.05)
        stack.enter_context(tick)
        browser.open(server.address)
        take_the_helm(browser)
        browser.wait(f"/The helm is not followed/.test({DOING})")
        said = browser.text("#steering .warning")
        assert f"{LATE_S:g}" in said
        assert "chrony" in said
        assert not any(row[wheel] for row in rows(file) for wheel in WHEELS)
