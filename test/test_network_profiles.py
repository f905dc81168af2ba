# SPDX-License-Identifier: Apache-2.0
"""The shipped profiles of Fast DDS and the shipped policy, as files."""

from pathlib import Path
from xml.etree import ElementTree

from ament_index_python.packages import get_package_share_directory

CONFIG = Path(get_package_share_directory("drone_bridge"), "config")
PROFILE, RANGE, PEERS = "FASTDDS_DEFAULT_PROFILES_FILE", "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_STATIC_PEERS"
CLOSED = {PROFILE: str(CONFIG / "fastdds_loopback.xml"), RANGE: "SYSTEM_DEFAULT"}
OPEN = {PROFILE: str(CONFIG / "fastdds.xml"), RANGE: "SUBNET"}


def test_profiles_announce_no_types_for_which_others_would_ask_before_they_see_an_endpoint():
    for profile in (CLOSED[PROFILE], OPEN[PROFILE]):
        properties = ElementTree.parse(profile).getroot().iterfind(".//{*}participant//{*}property")
        named = {each.findtext("{*}name"): each.findtext("{*}value") for each in properties}
        assert named == {"fastdds.type_propagation": "disabled"}


def test_the_closed_profile_differs_from_the_open_one_in_its_reach_alone():
    def tuned(profile):
        root = ElementTree.parse(profile).getroot()
        tags = ("segment_size", "healthy_check_timeout_ms", "sendBufferSize", "non_blocking_send", "count", "nanosec")
        return [element.text for tag in tags for element in root.iterfind(f".//{{*}}{tag}")]

    assert tuned(CLOSED[PROFILE]) == tuned(OPEN[PROFILE]) == ["8388608", "300", "212992", "true", "10", "500000000"]


def test_an_observer_of_the_shipped_policy_can_command_nothing():
    policy = ElementTree.parse(CONFIG / "sros2" / "drone_bridge.policy.xml").getroot()
    observer = policy.find(".//enclave[@path='/drone_bridge/observer']")
    published = [topic.text for rule in observer.iter("topics") if rule.get("publish") for topic in rule]
    answered = [service.text for rule in observer.iter("services") if rule.get("reply") for service in rule]
    assert published == ["rosout", "parameter_events"]
    assert all(name.split("/")[0] in ("recorder", "rviz", "rviz2") for name in answered)
    assert not any(rule.get("request") for rule in observer.iter("services"))
