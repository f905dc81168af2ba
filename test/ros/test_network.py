# SPDX-License-Identifier: Apache-2.0
"""Reach of topics: only this machine in the environment without ROS, unless changed."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ament_index_python.packages import get_package_share_directory
from networks import addresses_of, two_machines
from processes import Process
from repository import ROOT, TESTS

CONFIG = Path(get_package_share_directory("drone_bridge"), "config")
PROBE = TESTS / "support" / "reach_probe.py"
OLDER = "FASTRTPS_DEFAULT_PROFILES_FILE"
PROFILE, RANGE, PEERS = "FASTDDS_DEFAULT_PROFILES_FILE", "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_STATIC_PEERS"
CLOSED = {PROFILE: str(CONFIG / "fastdds_loopback.xml"), RANGE: "SYSTEM_DEFAULT"}
OPEN = {PROFILE: str(CONFIG / "fastdds.xml"), RANGE: "SUBNET"}

fast_dds_alone = pytest.mark.skipif(
    os.environ.get("ROS_DISTRO") == "humble" or "fastrtps" not in os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps"),
    reason="the profile is for Fast DDS and for the discovery ranges that came with Iron",
)


def activated(**before):
    """Return the variables that env/activate sets: of two profiles, the one that counts."""
    if not (ROOT / ".venv" / "bin" / "drone-bridge").exists():
        pytest.skip("env/activate belongs to 'make setup', and ROS is installed otherwise here")
    environment = {name: value for name, value in os.environ.items() if name not in (PROFILE, OLDER, RANGE, PEERS)}
    shown = subprocess.run(
        ["bash", "-c", f'. "{ROOT}/env/activate" && echo "${{{OLDER}:-${PROFILE}}}" "${RANGE}"'],
        env={**environment, **before},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    profile, reach = shown.stdout.split()
    return {PROFILE: profile, RANGE: reach}, shown.stderr


@pytest.mark.parametrize(
    ("asked", "profile", "reach"),
    [
        *((asked, CLOSED, "SYSTEM_DEFAULT") for asked in (None, "LOCALHOST", "SYSTEM_DEFAULT", "nonsense")),
        ("SUBNET", OPEN, "SUBNET"),
        ("OFF", CLOSED, "OFF"),
    ],
)
def test_activated_environment_stays_on_this_machine_unless_asked(asked, profile, reach):
    environment, _ = activated(**({RANGE: asked} if asked else {}))
    assert Path(environment[PROFILE]).samefile(profile[PROFILE])
    assert environment[RANGE] == reach
    assert activated(**environment)[0] == environment
    closed, _ = activated()
    assert activated(**{**closed, RANGE: reach})[0] == environment


def test_a_users_own_profile_is_kept_and_they_are_told(tmp_path):
    profile = tmp_path / "mine.xml"
    environment, errors = activated(**{PROFILE: str(profile)})
    assert environment == {PROFILE: str(profile), RANGE: "LOCALHOST"}
    assert f"FASTDDS_DEFAULT_PROFILES_FILE ({profile}) is kept" in errors


def test_the_profile_of_a_folder_that_was_activated_before_is_replaced():
    assert activated(**{OLDER: "/before/share/drone_bridge/config/fastdds.xml"}) == activated()


@fast_dds_alone
def test_every_socket_of_a_node_is_on_loopback(start_child, domain):
    heard = start_child(sys.executable, PROBE, "hear", env=CLOSED)
    heard.wait_for_line("listening")
    with Process.node("testbed_bridge", env=CLOSED) as node:
        node.wait_for_line(r"\[INFO\]|\[WARN\]")
        for child in (heard, node):
            addresses = addresses_of(child.pid)
            assert addresses, "a participant has sockets"
            assert all(address.is_loopback for address in addresses), addresses


@fast_dds_alone
def test_sockets_of_an_open_node_are_not(start_child, domain):
    heard = start_child(sys.executable, PROBE, "hear", env=OPEN)
    heard.wait_for_line("listening")
    assert not all(address.is_loopback for address in addresses_of(heard.pid))


@fast_dds_alone
def test_another_machine_commands_no_vehicle_until_it_is_let_in(start_child, domain):
    with two_machines() as (ours, theirs):

        def start(machine, *words, **environment):
            return start_child(*machine.command(sys.executable, PROBE, *words), env=environment)

        closed = start(ours, "hear", **CLOSED)
        closed.wait_for_line("listening")
        opened = start(ours, "hear", **OPEN)
        opened.wait_for_line("listening")
        start(ours, "say", "insider", **CLOSED)
        # The operator gives the address, so no multicast is needed.
        start(theirs, "say", "outsider", **{**OPEN, PROFILE: "", PEERS: ours.address})
        closed.wait_for_line("commanded by insider")
        opened.wait_for_line("commanded by outsider")
        # Time for two more announcements of participants, which are sent every 3 s.
        heard = opened.count_lines("outsider")
        opened.wait_for_count("commanded by outsider", heard + 60)
        assert closed.count_lines("outsider") == 0
        assert closed.count_lines("insider") > 0


# Users that discover each other, but can't read each other's shared memory.

USERS = {"user": 54321, "another user": 54322}  # without files of their own
OF_ANOTHER = "unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$0" "$@"'


@pytest.fixture
def command_of(tmp_path):
    """command_of(whom) prefixes a command of root, of a user, or of a container with its own /dev/shm.

    Users may read root's files, as Python may be in root's home, but not write them.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can be several users, and mount a /dev/shm")

    def command(whom):
        if whom == "root":
            return ("env",)
        if whom == "container":
            return OF_ANOTHER
        home = tmp_path / whom
        home.mkdir()
        os.chown(home, USERS[whom], -1)
        identity = f"--reuid={USERS[whom]}", f"--regid={USERS[whom]}", "--clear-groups"
        reading = "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"
        return "setpriv", *identity, *reading, "env", f"HOME={home}", f"ROS_HOME={home}"

    yield command
    for file in Path("/dev/shm").iterdir():  # names of ports stay there forever
        with contextlib.suppress(FileNotFoundError):
            if file.stat().st_uid in USERS.values():
                file.unlink()


@fast_dds_alone
@pytest.mark.parametrize("profile", [CLOSED, OPEN], ids=["closed", "open"])
@pytest.mark.parametrize("pair", [("root", "user"), ("user", "another user"), ("root", "container")], ids="-".join)
def test_processes_that_share_no_memory_exchange_calls_and_images(command_of, start_child, domain, pair, profile):
    names = "one", "other"
    probes = [
        start_child(*command_of(whom), sys.executable, PROBE, "exchange", *order, env=profile)
        for whom, order in zip(pair, (names, names[::-1]), strict=True)
    ]
    for probe in probes:
        probe.wait_for_line("answered")
        probe.wait_for_line("seen 921600")
    for probe in probes:
        probe.send(signal.SIGINT)
        assert probe.wait() == 0, probe.output


def test_page_link_has_the_network_address_without_a_default_route():
    show = "from drone_bridge.tools.web import address; print(address._outward_address())"
    with two_machines() as (ours, _):
        shown = subprocess.run(
            ours.command(sys.executable, "-c", show), capture_output=True, text=True, check=True, timeout=60
        )
        assert shown.stdout.strip() == ours.address
