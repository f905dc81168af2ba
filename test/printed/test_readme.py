# SPDX-License-Identifier: Apache-2.0
"""README's commands, as printed."""

import math
import re
import time

import pytest
from composition import warnings_in
from patience import wait_until
from repository import ROOT
from shell import HOME, Shell
from web_page import press_twice, take_the_helm
from witnesses import TOUCHDOWN, end, flight, page_of, shows, topics, wait_for, way

#: In the gate, and of what is used for minutes.
TIMES_S = [2, pytest.param(180, marks=pytest.mark.exhaustive)]


@pytest.fixture(scope="module")
def demo():
    """The machine of `make demo`, and the demonstration: it flies beside the rows that don't depend on pictures."""
    shell = Shell()
    yield shell, shell.start("make demo")
    shell.close()


@pytest.fixture(scope="module")
def ten_lines():
    """Ten lines that fly beside other rows: their launch, an emulator at its start, and the script."""
    with Shell() as shell:
        beside = shell.start("drone-bridge emulate telemetry --duration 0.2 --port 5999")
        launch = shell.start("drone-bridge launch telemetry.launch.xml emulate:=true goals:=true")
        launch.wait_for_line("Connected")
        yield launch, beside, shell.start("python examples/fly.py")


@pytest.mark.parametrize("seconds", TIMES_S)
def test_make_view_shows_landings_on_the_moving_rover(seconds):
    until = time.monotonic() + seconds
    with Shell() as shell:
        view = shell.start("make view")
        with page_of(shell, view) as page:
            view.wait_for_count(TOUCHDOWN, landings := 1)
            shows(page, "[Ll]anded")
            while time.monotonic() < until:
                press_twice(page, "[data-call$=land_on_pad]")
                view.wait_for_count(TOUCHDOWN, landings := landings + 1)
                shows(page, "[Ll]anded")
        assert re.findall(TOUCHDOWN, view.ctrl_c(statuses=(0,))) == [("rover", "good")] * landings


def test_make_demo_begins(demo):
    demo[1].wait_for_line("It takes about half a minute")


def test_your_robot_is_driven_by_a_program_until_ctrl_c():
    with Shell() as shell:
        robot = shell.start("drone-bridge emulate robot --host 192.168.1.5 --trajectory way.csv")
        launch = shell.start("drone-bridge launch robot.launch.xml robot_host:=192.168.1.5 view:=true")
        launch.wait_for_line("granted subsystem 0")
        doctor, driver = shell.start("drone-bridge doctor"), shell.start("python examples/drive.py")
        file = shell.path(ROOT, "way.csv")
        wait_for(file, lambda row: row["x"] > 0.3, "a drive")
        doctor.wait_for_line(r"^ok running +/robot_bridge .* connected, commanded by /driver on /cmd_vel$")
        assert doctor.wait() == 0, doctor.text
        driver.ctrl_c(statuses=(0,))

        def stands():
            *_, last = rows = flight(file)
            return {row["x"] for row in rows if row["time"] > last["time"] - 1.0} == {last["x"]}

        wait_until(stands, "a robot that stands for a second", period_s=0.2)
        stands_at = flight(file)[-1]["x"]
        launch.ctrl_c()
        assert end(robot.ctrl_c(statuses=(0,)))[:2] == pytest.approx((stands_at, 0.0), abs=0.01)


def test_ten_lines_begin(ten_lines):
    assert ten_lines[2].is_running


def test_an_ar_drone_in_its_network_is_flown_from_the_page():
    with Shell() as shell:
        drone = shell.start("drone-bridge emulate ardrone --host 192.168.1.1 --trajectory flight.csv")
        launch, file = shell.start("drone-bridge launch ardrone.launch.xml view:=true"), shell.path(ROOT, "flight.csv")
        with page_of(shell, launch) as page:
            take_the_helm(page)
            press_twice(page, "[data-call$=takeoff]")
            wait_for(file, lambda row: row["z"] > 0.5, "a takeoff")
            press_twice(page, "[data-call$=land]")
            wait_for(file, lambda row: row["z"] < 0.05, "a landing")
        launch.ctrl_c()
        assert "landed" in drone.ctrl_c(statuses=(0,))


def test_a_simulation_that_waits_for_telemetry_is_kept_in_its_place():
    with Shell() as shell:
        drone = shell.start("drone-bridge emulate telemetry --role listen --trajectory flight.csv")
        launch = shell.start("drone-bridge launch telemetry.launch.xml telemetry_role:=connect view:=true")
        file = shell.path(ROOT, "flight.csv")
        launch.wait_for_line("Open in a browser")
        wait_until(lambda: len(flight(file)) > 100, "a flight of seconds", period_s=0.5)
        launch.ctrl_c()
        assert int(re.search(r"(\d+) commands", drone.ctrl_c(statuses=(0,)))[1]) > 50
        places = [(row["x"], row["y"], row["z"]) for row in flight(file)]
        assert max(math.dist(place, places[0]) for place in places) < 0.5


@pytest.mark.parametrize("seconds", TIMES_S)
def test_an_emulated_robot_drives_stays_and_is_recorded(seconds):
    with Shell() as shell:
        launch = shell.start("drone-bridge launch robot.launch.xml emulate:=true view:=true")
        launch.wait_for_line("granted subsystem 0")
        recorder = shell.start("drone-bridge record")
        turn = "drone-bridge topic pub -r 20 /cmd_vel geometry_msgs/msg/Twist '{linear: {x: 0.2}, angular: {z: 0.5}}'"
        driver = shell.start(turn)
        with page_of(shell, launch) as page:
            shows(page, r"x 0\.[1-9]")
            driver.ctrl_c()
            time.sleep(seconds)
            assert page.evaluate("!/launch has ended/.test(document.body.innerText)")
        recorder.ctrl_c()
        said = launch.ctrl_c()
        assert not re.search(r"ERROR|died|ended.*\n[^^]*\^C", said)
        assert way(said) > 0.1
        bags = shell.path(HOME, "drone_bridge_bags").iterdir()
        assert topics(max(bags, key=lambda bag: bag.stat().st_mtime))["/odom"] > 10 * seconds


def test_ten_lines_fly_and_land(ten_lines):
    launch, beside, script = ten_lines
    assert script.wait() == 0, script.text
    said, start = launch.ctrl_c(), end(beside.text)
    assert warnings_in(said.splitlines()) == []
    assert re.search(TOUCHDOWN, said)[1] == "ground"
    x, y, z = end(said)
    assert "on ground" in said
    assert z < 0.2
    assert (x - start[0], y - start[1]) == pytest.approx((2.0, 2.0), abs=0.4)


def test_a_new_robot_is_written():
    with Shell() as shell:
        said = shell.run("drone-bridge new my_robot")
        assert sorted(file.name for file in shell.path(ROOT, "my_robot").iterdir()) == [
            *("README.md", "build_my_robot.py", "my_robot.py", "pyproject.toml", "test_my_robot.py")
        ]
        assert "pip install -e my_robot" in said


def test_make_demo_writes_bags_and_reports(demo):
    shell, made = demo
    assert made.wait(300) == 0, made.text
    assert "make view" in made.text
    folder = shell.path(ROOT, "demo")
    assert re.search(TOUCHDOWN, (folder / "landing" / "log.txt").read_text())[2] == "good"
    for each, topic in ((folder, "/left/image_raw"), (folder / "landing", "/camera/image_raw/compressed")):
        counts = topics(each / "bag")
        assert min(counts[name] for name in (topic, "/imu/data", "/odom")) > 50
        assert "plotly" in (each / "report.html").read_text()
    assert shell.running() == []
