# SPDX-License-Identifier: Apache-2.0
"""Each topic, service and action of our nodes is one that clients of rosbridge may use, or one that they may not."""

from functools import partial

import pytest
import rclpy

pytest.importorskip("foxglove", reason="web_bridge needs foxglove-sdk, for which rosdep has no key")

from rclpy.parameter import Parameter

from drone_bridge.controllers.drone_controller import BEHAVIOURS, DroneController
from drone_bridge.controllers.pad_finder import PadFinder
from drone_bridge.controllers.rover_controller import RoverController
from drone_bridge.kind import kinds, load
from drone_bridge.tools.web.node import WebBridge
from drone_bridge.tools.web.rosbridge import allowlist

#: Of a vehicle's sensors, of its state, and of simulators: what our bridges and controllers report.
REPORTS = """
altitude battery_state board_temperature bumper buttons camera_info camera_view cliff completed compressed data
detections diagnostics dock_ir drone_properties fence flying height held image_raw item_events joint_states landed
landing_pad mode motors navdata odom odom_restarts pattern points range rosout scan sensors stalled
subsystems telemetry temperature trigger_events velocity vertical_velocity wheel_drop
"""
#: What persons and controllers command, and what ends a flight.
COMMANDS = "helm pilot hold_status hold_wish cmd_vel_goal cmd_vel_landing goal_pose emergency reset"
#: Of ROS, of settings, of a simulation, of recordings.
SERVICES = """
emergency reset flat_trim assume_flying set_camera set_camera_info bind unbind discover save_wire record
describe_parameters get_parameter_types get_parameters get_type_description list_parameters set_parameters
set_parameters_atomically change_state get_available_states get_available_transitions get_state get_transition_graph
add_camera add_trigger add_turbulence get_attribute get_configuration get_entity_state list_entities pause reassure
remove run set_attribute set_entity_state spawn stream_camera stream_entity
"""
#: Actions that controllers have only with nav2_msgs.
NAV2 = {"navigate_to_pose", "follow_waypoints"}
_SEND_GOAL = "/_action/send_goal"


def nodes():
    """Yield a maker and a starter of every node of ours, of controllers for each behaviour."""
    manual = Parameter("autostart", value=False)
    for kind in kinds().values():
        for each in filter(None, (kind.bridge, kind.server)):
            yield partial(each.make, parameter_overrides=[manual]), lambda node: node.trigger_configure()
    controllers = [(DroneController, "behaviour", each) for each in BEHAVIOURS] + [
        (RoverController, "pattern", "linear")
    ]
    for controller, parameter, value in controllers:
        yield partial(controller, parameter_overrides=[Parameter(parameter, value=value)]), controller.start
    yield from ((PadFinder, PadFinder.start), (WebBridge, WebBridge.start))


@pytest.fixture(scope="module")
def names():
    """Topics, services and actions that are taken and served, and topics of the bridges' tables."""
    rows = [row for kind in kinds().values() for row in load(kind.topics).rows]
    topics, services = {row.name for row in rows if row.from_ros and "{" not in row.name}, set()
    rclpy.init()
    try:
        for make, start in nodes():  # one by one, as some give a topic another type
            node = make()
            start(node)
            topics |= {each.topic_name for each in node.subscriptions}
            own = node.get_service_names_and_types_by_node(node.get_name(), node.get_namespace())
            services |= {name for name, _ in own}
            node.leave()
            node.destroy_node()
    finally:
        rclpy.shutdown()
    actions = {name.removesuffix(_SEND_GOAL) for name in services if name.endswith(_SEND_GOAL)}
    found = {"topics": topics, "services": services, "actions": actions}
    return {what: {allowlist.last_part(each) for each in found[what] if "/_action/" not in each} for what in found}


@pytest.mark.parametrize(
    ("what", "allowed", "refused"),
    [
        ("topics", allowlist.TOPICS, f"{REPORTS} {COMMANDS}"),
        ("services", allowlist.SERVICES | allowlist.buttons(), SERVICES),
        ("actions", allowlist.ACTIONS - NAV2, ""),
    ],
)
def test_each_name_is_in_one_list(names, what, allowed, refused):
    assert names[what] - allowed - set(refused.split()) == set(), "in neither list"
    assert (allowed | set(refused.split())) - names[what] == set(), "that no node has"
    assert not allowed & set(refused.split())
