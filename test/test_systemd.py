# SPDX-License-Identifier: Apache-2.0
"""The unit of docs/deploy.md: systemd understands it, and where systemd runs it runs a fleet and ends it well."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import Process, executable

ROOT = Path(__file__).parent.parent
UNIT = ROOT / "config" / "systemd" / "drone_bridge@.service"
INSTALLED = Path("/run/systemd/system", UNIT.name)  # a restart of the machine removes it
AS_ROOT = [] if os.geteuid() == 0 else ["sudo", "-n"]


def system(*command, text=None):
    return subprocess.run(
        [*AS_ROOT, *command], input=text, capture_output=True, text=True, timeout=60, check=False
    ).stdout.strip()


def can_start_units():
    return INSTALLED.parent.is_dir() and system("id", "-u") == "0"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_understands_the_unit(tmp_path):
    shutil.copy(UNIT, tmp_path)
    verify = ["systemd-analyze", "verify", "--man=no", tmp_path / "drone_bridge@rover.service"]
    done = subprocess.run(verify, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.fixture
def unit(domain):
    """unit(fleet) installs the unit for the text of a fleet file, with this environment, and returns its name."""
    name, made = f"test_{os.getpid()}", []

    def install(fleet):
        program = Path(sys.prefix, "lib", "drone_bridge", "fleet")
        ours = f"'. {ROOT}/env/activate && exec {program}"
        text, changes = re.subn(r"'\. /opt/.*?/lib/drone_bridge/fleet", ours, UNIT.read_text())
        assert changes == 1
        # Whoever owns the clone, which may lie below /home.
        text = text.replace("User=drone_bridge", f"User={ROOT.owner()}").replace("ProtectHome=true", "")
        text = text.replace("[Service]", f"[Service]\nEnvironment=ROS_DOMAIN_ID={os.environ['ROS_DOMAIN_ID']}")
        system("mkdir", "--parents", "/etc/drone_bridge")
        for path, content in ((INSTALLED, text), (f"/etc/drone_bridge/{name}.yaml", fleet)):
            system("tee", path, text=content)
            made.append(path)
        system("systemctl", "daemon-reload")
        return f"drone_bridge@{name}"

    yield install
    system("systemctl", "stop", f"drone_bridge@{name}")
    system("rm", "--force", *made)
    system("rmdir", "--ignore-fail-on-non-empty", "/etc/drone_bridge")
    system("systemctl", "daemon-reload")
    system("systemctl", "reset-failed", f"drone_bridge@{name}")


def told(unit):
    lines = system("systemctl", "show", "--property=Result", "--property=ExecMainStatus", unit).splitlines()
    return dict(line.split("=") for line in lines)


@pytest.mark.skipif(not can_start_units(), reason="systemd does not run here, or nobody may start its units")
def test_the_unit_steers_comes_back_when_killed_and_releases_the_vehicle_when_stopped(unit):
    with Process(executable("robot_emulator"), "--port", "0", "--no-discovery") as robot:
        port = robot.wait_for_line(r"listening on .*:(\d+)")[1]
        parameters = f"{{host: 127.0.0.1, port: {port}}}"
        name = unit(f"vehicles: {{rover: {{protocol: robot, parameters: {parameters}}}}}")
        system("systemctl", "start", name)
        robot.wait_for_count(r"\] bound subsystem 0", 1)
        system("systemctl", "kill", "--kill-whom=main", "--signal=KILL", name)
        robot.wait_for_count(r"\] bound subsystem 0", 2)
        system("systemctl", "stop", name)
        robot.wait_for_line("unbound subsystem 0")
    assert told(name) == {"Result": "success", "ExecMainStatus": "0"}


@pytest.mark.skipif(not can_start_units(), reason="systemd does not run here, or nobody may start its units")
def test_the_unit_is_not_started_again_with_a_file_that_is_invalid(unit):
    name = unit("vehicles: {rover: {protocol: none}}")
    system("systemctl", "start", "--wait", name)  # until it has ended
    assert told(name) == {"Result": "exit-code", "ExecMainStatus": "2"}
