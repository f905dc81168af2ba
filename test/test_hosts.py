# SPDX-License-Identifier: Apache-2.0
"""Machines: the bridge beside the vehicle, who commands it on another one, who looks on, and a link that fails."""

import importlib
import os
import re
import sys
import time
from pathlib import Path

import pytest
from ament_index_python.packages import get_package_share_directory
from networks import three_machines, two_machines
from processes import Stopwatch, executable
from ros_session import wait_until

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmark"))
hosts, impaired_link, machines = map(importlib.import_module, ("hosts", "impaired_link", "machines"))

ROOT = Path(__file__).parent.parent
CONFIG = Path(get_package_share_directory("drone_bridge"), "config")
PROBE = Path(__file__).parent / "support" / "reach_probe.py"
COMMAND_TIMEOUT_S = 0.5
SCHEDULING_S = 1.5  # on a machine that others keep busy

MOTORS = re.compile(r"motors (\S+) (\S+)")

by_static_peers = pytest.mark.skipif(
    os.environ.get("ROS_DISTRO") == "humble" or "fastrtps" not in os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps"),
    reason="static peers came with Iron, and the profile is for Fast DDS",
)


class Robot:
    """An emulated robot and its bridge on one machine, and who drives it on another."""

    def __init__(self, start_child, ours, theirs, port):
        def start(machine, *words, **environment):
            reach = {"FASTDDS_DEFAULT_PROFILES_FILE": str(CONFIG / "fastdds.xml"), **environment}
            return start_child(*machine.command(*words), env={"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET", **reach})

        self.emulator = start(ours, executable("robot_emulator"), "--port", port, "--no-discovery", "--verbose")
        self.emulator.wait_for_line("listening on")
        parameters = ("-p", f"port:={port}", "-p", f"command_timeout:={COMMAND_TIMEOUT_S}")
        self.bridge = start(ours, executable("robot_bridge"), "--ros-args", *parameters)
        # Who drives knows the address: no multicast is needed for that.
        peers = {"FASTDDS_DEFAULT_PROFILES_FILE": "", "ROS_STATIC_PEERS": ours.address}
        self.driver = start(theirs, sys.executable, PROBE, "drive", **peers)

    def is_moving(self):
        """Return whether the motors have a speed, by what the robot has printed last about them."""
        changes = MOTORS.findall(self.emulator.output)
        return bool(changes) and {float(speed) for speed in changes[-1]} != {0.0}


@by_static_peers
def test_a_robot_stops_within_the_command_timeout_of_a_cut_and_goes_on_after_it(start_child, domain, free_port):
    """The cable is pulled out, which either end can tell."""
    with two_machines() as (ours, theirs):
        robot = Robot(start_child, ours, theirs, free_port)
        wait_until(robot.is_moving, "the robot to be driven")
        ours.cable("down")
        stopping = Stopwatch(robot.bridge.pid, robot.emulator.pid)
        wait_until(lambda: not robot.is_moving(), "the robot to stop")
        assert stopping.own_s < COMMAND_TIMEOUT_S + 0.3
        assert robot.bridge.is_running
        ours.cable("up")
        wait_until(robot.is_moving, "the robot to be driven again")
        # It keeps what the processes have open from outliving the machines.
        for child in (robot.driver, robot.bridge, robot.emulator):
            child.end()


@by_static_peers
def test_a_link_that_loses_and_delays_and_is_cut(tmp_path):
    """2 % loss, 20 ms, 20 Mbit/s each way; the cut is one of a radio out of reach, of which neither end is told."""
    try:
        trial = hosts.run_trial(hosts.Plan(seconds=2.0, cut_s=1.0), tmp_path)
    except machines.MachinesError as error:
        pytest.skip(str(error))
    print(trial.table())
    link = trial.plan.impairment
    assert trial.packets_lost > 0
    # Images and commands come all the same, later by the delay of the link.
    assert min(image.arrived_s - image.stamp_s for image in trial.images) > link.delay_s
    assert min(trial.command_ages_s.values()) > link.delay_s
    # Whatever was followed was fresh, that which came after the cut included.
    assert max(trial.command_ages_s.values()) < hosts.COMMAND_TIMEOUT_S + SCHEDULING_S
    assert trial.neutral_after_s < hosts.COMMAND_TIMEOUT_S + SCHEDULING_S
    # What comes after it is not from before.
    assert trial.commanded_after_s > 0
    assert trial.viewed_after_s > 0


CUT_S = 6.0  # so that the kernel gives the lost machine up, forgets that, and asks for it again


class WatchedFlight:
    """A vehicle and its bridge on one machine, who commands and views it on a second, and who only looks on a third."""

    def __init__(self, start_child, machines_at_the_switch):
        ours, self.commanding, self.looking = machines_at_the_switch
        self.ours = ours
        # Each address waits for an answer in a queue of its own, and two of them fill the send buffer of a socket.
        self.looking.add_address("10.213.7.103")
        reach = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}
        profile = {"FASTDDS_DEFAULT_PROFILES_FILE": str(CONFIG / "fastdds.xml")}

        def start(machine, *words, **peers):
            return start_child(*machine.command(*words), env={**reach, **profile, **peers})

        scripts = ROOT / "benchmark"
        self.vehicle = start(ours, sys.executable, scripts / "hosts_vehicle.py", hosts.FRAMES_PER_S)
        port = self.vehicle.wait_for_line(r"^(\d+)$")[1]
        parameters = ("-p", f"port:={port}", "-p", f"command_timeout:={COMMAND_TIMEOUT_S}")
        self.bridge = start(ours, executable("testbed_bridge"), "--ros-args", *parameters)
        peers = {"ROS_STATIC_PEERS": ours.address}
        operator = (scripts / "hosts_operator.py", hosts.COMMANDS_PER_S)
        self.operator = start(self.commanding, sys.executable, *operator, **peers)
        self.looker = start(self.looking, sys.executable, PROBE, "look", "left/image_raw", **peers)
        self.looker.wait_for_count("seen", 20)
        self.operator.wait_for_count("image", 20)
        wait_until(lambda: self.answers() and self.answers()[-1].command, "the commands to be followed")

    def cut(self, *lost):
        """Pull out the cables of these machines, whose addresses do not resolve any more; return when."""
        cut_s = time.time()
        for machine in lost:
            machine.cable("down")
            self.ours.forget(machine)
        return cut_s

    def answers(self):
        return list(hosts.read_answers(list(self.vehicle.lines)))

    def answers_from(self, since_s, until_s):
        """Wait for that time, and return the vehicle's frames with what answered them."""
        wait_until(lambda: self.answers()[-1].frame_s > until_s, "the frames of that time")
        return [answer for answer in self.answers() if since_s <= answer.frame_s < until_s]

    def seen_until(self, until_s):
        """Wait for that time, and return the stamps of the images that who commands has seen."""

        def stamps():
            return [stamp_s for stamp_s, *_ in hosts.read_lines("image", list(self.operator.lines))]

        wait_until(lambda: stamps()[-1] > until_s, "the images of that time")
        return stamps()

    def end(self):
        """Keep what the processes have open from outliving the machines."""
        for child in (self.looker, self.operator, self.bridge, self.vehicle):
            child.end()


@by_static_peers
def test_a_viewer_that_vanishes_delays_nobody(start_child, domain):
    with three_machines() as machines_at_the_switch:
        flight = WatchedFlight(start_child, machines_at_the_switch)
        looking_on = Stopwatch(flight.vehicle.pid, flight.bridge.pid, flight.operator.pid)
        cut_s = flight.cut(flight.looking)
        answers = flight.answers_from(cut_s, cut_s + CUT_S)
        waited_s = looking_on.waited_s
        longest_s = max(answer.time_s - answer.frame_s for answer in answers)
        assert [answer for answer in answers if answer.command is None] == []
        assert longest_s < COMMAND_TIMEOUT_S / 2 + waited_s
        seen = [stamp_s for stamp_s in flight.seen_until(cut_s + CUT_S) if cut_s <= stamp_s < cut_s + CUT_S]
        print(f"{len(answers)} frames, answered within {longest_s:.3f} s, {len(seen)} seen")
        assert len(seen) == pytest.approx(len(answers), rel=0.02 + waited_s / CUT_S)
        flight.end()


@by_static_peers
def test_a_viewer_that_vanishes_does_not_delay_the_neutral_command(start_child, domain):
    """When who commands it vanishes as well."""
    with three_machines() as machines_at_the_switch:
        flight = WatchedFlight(start_child, machines_at_the_switch)
        stopping = Stopwatch(flight.vehicle.pid, flight.bridge.pid)
        cut_s = flight.cut(flight.looking, flight.commanding)
        answers = flight.answers_from(cut_s, cut_s + CUT_S)
        neutral_s = [answer.time_s for answer in answers if answer.command is None]
        print(f"neutral after {neutral_s[0] - cut_s:.3f} s")
        assert neutral_s[0] - cut_s < COMMAND_TIMEOUT_S + 0.1 + stopping.waited_s
        assert [answer for answer in answers if answer.time_s > neutral_s[0] and answer.command] == []
        flight.end()


# The link itself, of which that is only worth something if it is as bad as it says.


def direction(**impairment):
    return impaired_link.Direction(impaired_link.Impairment(**{"loss": 0.0, **impairment}), seed=1)


def test_packets_arrive_in_order_after_the_delay_and_no_faster_than_the_rate():
    link = direction(delay_s=0.02, bits_per_s=1e6)
    packets = [bytes([number]) * 1250 for number in range(5)]  # each takes 10 ms
    for packet in packets:
        link.offer(packet, now_s=100.0)
    assert link.next_arrival_s == pytest.approx(100.03)
    assert link.take_arrived(100.029) == []
    assert link.take_arrived(100.0501) == packets[:3]
    assert link.take_arrived(101.0) == packets[3:]
    assert link.next_arrival_s is None


def test_packet_loss_has_the_configured_rate_and_is_reproducible():
    def arrived():
        link = direction(loss=0.02)
        for number in range(10_000):
            link.offer(number.to_bytes(2, "big"), now_s=float(number))
        return link.take_arrived(1e6)

    first = arrived()
    assert 0.015 < 1 - len(first) / 10_000 < 0.025
    assert arrived() == first


def test_the_queue_is_bounded():
    link = direction(bits_per_s=1e6, queue_bytes=10_500)
    for _ in range(100):
        link.offer(bytes(1000), now_s=0.0)
    assert len(link.take_arrived(1e6)) == 10
    assert link.dropped == 90


def test_a_cut_loses_what_is_on_its_way_and_whatever_is_sent_until_it_is_mended():
    link = direction()
    link.offer(b"on its way", now_s=0.0)
    link.cut()
    link.offer(b"during the cut", now_s=0.01)
    assert link.take_arrived(1.0) == []
    link.is_cut = False
    link.offer(b"after it", now_s=2.0)
    assert link.take_arrived(3.0) == [b"after it"]
    assert (link.arrived, link.lost) == (1, 2)
