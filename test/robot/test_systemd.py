# SPDX-License-Identifier: Apache-2.0
"""The systemd unit of docs/deploy.md: its end for a vehicle, and its restarts."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from configparser import ConfigParser

import pytest
from geometry_msgs.msg import Twist
from processes import TIMEOUT_S, Process, executable
from repository import ROOT
from robot_peer import RobotPeer
from ros_session import wait_until

from drone_bridge.robot.codec import ConnectionClosed, SkidSteerUpdate
from drone_bridge.tools.cli import REFUSED
from drone_bridge.tools.demo.composition import INTERRUPTED

UNIT = ROOT / "config" / "systemd" / "drone_bridge@.service"
#: `ros2 launch` by its source (launch_service.py, execute_local.py): SIGINT is passed on, and nodes are waited for; at
#: SIGTERM it ends alone.
ROS2 = f"""#!{sys.executable}
import json, os, signal, subprocess, sys
assert sys.argv[1:3] == ["launch", "--noninteractive"], sys.argv
node = subprocess.Popen(json.loads(os.environ["NODE"]))
signal.signal(signal.SIGINT, lambda *_: node.send_signal(signal.SIGINT))
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
print("launched", flush=True)
node.wait()
"""


def service():
    """Return the unit's [Service]. Of duplicate settings, the last one counts."""
    unit = ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    unit.optionxform = str
    unit.read(UNIT)
    return unit["Service"]


def test_files_kept_for_a_restart_are_removed_at_the_next_boot():
    """/run is cleared: systemd.exec(5), RuntimeDirectory."""
    assert (service()["RuntimeDirectory"], service()["RuntimeDirectoryPreserve"]) == ("drone_bridge", "yes")
    assert "ROS_HOME=/run/drone_bridge" in service()["Environment"].split()


def test_unit_restarts_except_after_an_interrupt_or_a_refused_file():
    unit = service()
    assert (unit["Restart"], unit["RestartPreventExitStatus"]) == ("on-failure", str(REFUSED))
    assert unit["SuccessExitStatus"] == str(INTERRUPTED)


@pytest.mark.parametrize("number", [None, signal.SIGTERM], ids=["the unit's signal", "SIGTERM"])
def test_a_vehicle_gets_neutral_before_systemd_kills_remaining_processes(ros, tmp_path, number):
    """With the unit's signal in order. After SIGTERM, which does not reach the bridge, by its last words."""
    assert service()["KillMode"] == "mixed"  # the signal to the first process alone, and at its end SIGKILL to the rest
    (tmp_path / "ros2").write_text(ROS2)
    (tmp_path / "ros2").chmod(0o755)
    words = service()["ExecStart"].replace("$$", "$").replace("%i", "rover")
    command, set_ups = re.subn(r"\. /opt/\S+", "true", re.fullmatch(r"/bin/bash -c '(.*)'", words)[1])
    assert set_ups == 2
    with contextlib.closing(RobotPeer()) as robot:
        parameters = {"host": "127.0.0.1", "port": robot.port, "command_timeout": TIMEOUT_S}
        given = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
        node = json.dumps([executable("robot_bridge"), "--ros-args", *given])
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        unit = Process("/bin/bash", "-c", command, env={"PATH": path, "NODE": node})
        try:
            unit.wait_for_line("launched")
            forward = Twist()
            forward.linear.x = 0.3
            publisher = ros.publisher(Twist, "cmd_vel")

            def is_driven():
                publisher.publish(forward)
                return any(isinstance(packet, SkidSteerUpdate) and packet.left > 0 for packet in robot.packets)

            wait_until(is_driven, "a robot that drives", period_s=0.05)
            unit.send(number or getattr(signal, service()["KillSignal"]))
            wait_until(lambda: not unit.is_running, "the end of the first process")
        finally:
            unit.end()  # which kills what is left of its group
        robot.wait_for(ConnectionClosed)
        speeds = [packet.left for packet in robot.packets if isinstance(packet, SkidSteerUpdate)]
    assert speeds[-1] == 0


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path):
    shutil.copy(UNIT, tmp_path)
    verify = ["systemd-analyze", "verify", "--man=no", tmp_path / "drone_bridge@rover.service"]
    done = subprocess.run(verify, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
