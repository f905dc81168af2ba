# SPDX-License-Identifier: Apache-2.0
"""The shipped profiles of Fast DDS and the shipped policy, as files."""

import os
import re
from pathlib import Path
from xml.etree import ElementTree

from ament_index_python.packages import get_package_share_directory

from drone_bridge.ros.process import shared_memory
from drone_bridge.ros.process.environment import PROFILE, profile_number

CONFIG = Path(get_package_share_directory("drone_bridge"), "config")
CLOSED, OPEN = str(CONFIG / "fastdds_loopback.xml"), str(CONFIG / "fastdds.xml")


def test_profiles_announce_no_types_before_an_endpoint_is_discovered():
    for profile in (CLOSED, OPEN):
        properties = ElementTree.parse(profile).getroot().iterfind(".//{*}participant//{*}property")
        named = {each.findtext("{*}name"): each.findtext("{*}value") for each in properties}
        assert named == {"fastdds.type_propagation": "disabled"}


def test_seven_processes_with_stereo_images_have_room_in_a_container(monkeypatch):
    """Docker provides 64 MiB; a launch with page and recorder has five segments."""
    monkeypatch.setenv(PROFILE, CLOSED)
    assert profile_number("segment_size") > 2 * 1280 * 720 * 3

    def shortage_beside(processes):
        size, free = 64 << 20, (64 << 20) - processes * 9_000_000
        monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((1, 1, size, free, free, 0, 0, 0, 0, 255)))
        return shared_memory.shortage()

    assert shortage_beside(6) is None
    assert re.search(r"67 MB .*\b4 MB .*\b9 MB", shortage_beside(7))


def test_the_closed_profile_differs_from_the_open_one_in_its_reach_alone():
    def tuned(profile):
        root = ElementTree.parse(profile).getroot()
        tags = ("segment_size", "healthy_check_timeout_ms", "sendBufferSize", "non_blocking_send", "count", "nanosec")
        return [element.text for tag in tags for element in root.iterfind(f".//{{*}}{tag}")]

    peers = ElementTree.parse(CLOSED).getroot().findtext(".//{*}maxInitialPeersRange")
    assert peers == "120"  # per machine
    assert tuned(CLOSED) == tuned(OPEN) == ["8388608", "300", "212992", "true", "10", "500000000"]


def test_an_observer_of_the_shipped_policy_can_command_nothing():
    policy = ElementTree.parse(CONFIG / "sros2" / "drone_bridge.policy.xml").getroot()
    observer = policy.find(".//enclave[@path='/drone_bridge/observer']")
    published = [topic.text for rule in observer.iter("topics") if rule.get("publish") for topic in rule]
    answered = [service.text for rule in observer.iter("services") if rule.get("reply") for service in rule]
    assert published == ["rosout", "parameter_events"]
    assert all(name.split("/")[0] in ("recorder", "rviz", "rviz2") for name in answered)
    assert not any(rule.get("request") for rule in observer.iter("services"))
