# SPDX-License-Identifier: Apache-2.0
"""Helm: pilots and valid commands, with a fake clock."""

import math

import pytest

from drone_bridge import dronegui
from drone_bridge.tools.web.helm import ASK_S, MAX_AGE_S, NEUTRAL, Helm, HelmRefusedError
from drone_bridge.tools.web.vehicles import SteeredVehicle, by_service

FORWARD = (1.0, 0.0, 0.0, 0.0)
ANNE, BOB = 1, 2


@pytest.fixture
def helm():
    helm = Helm()
    helm.take(ANNE, "drone", 0.0)
    return helm


def test_a_second_pilot_is_refused_until_the_first_one_releases_the_helm(helm):
    with pytest.raises(HelmRefusedError, match="Another pilot is steering"):
        helm.take(BOB, "drone", 0.0)
    with pytest.raises(HelmRefusedError, match="not at the helm"):
        helm.steer(BOB, "drone", helm.token(0.0), {"x": 1}, 0.0)
    assert helm.release(ANNE) == ["drone"]
    helm.take(BOB, "drone", 0.0)
    assert helm.pilot_of("drone") == BOB


def test_a_pilot_can_hand_the_helm_over_to_a_requester(helm):
    with pytest.raises(HelmRefusedError, match="has disconnected"):
        helm.hand_over(ANNE, "drone", BOB, 0.0)
    helm.request(BOB, "drone", 0.0)
    assert helm.asked("drone", 3.0) == {BOB: ASK_S - 3.0}
    helm.hand_over(ANNE, "drone", BOB, 3.0)
    assert helm.pilot_of("drone") == BOB
    assert helm.asked("drone", 3.0) == {}


def test_a_requester_may_take_the_helm_of_an_unresponsive_pilot(helm):
    helm.request(BOB, "drone", 1.0)
    with pytest.raises(HelmRefusedError, match="Another pilot is steering"):
        helm.take(BOB, "drone", 0.9 + ASK_S)
    helm.take(BOB, "drone", 1.0 + ASK_S)
    assert helm.pilot_of("drone") == BOB


def test_a_refused_request_is_blocked_for_a_while(helm):
    helm.request(BOB, "drone", 0.0)
    assert helm.keep(ANNE, "drone", 5.0) == [BOB]
    for attempt in (helm.request, helm.take):
        with pytest.raises(HelmRefusedError, match=r"keeps the helm|Another pilot"):
            attempt(BOB, "drone", 4.9 + ASK_S)
    helm.request(BOB, "drone", 5.0 + ASK_S)


def test_a_free_helm_needs_no_request_and_requests_end_with_their_page(helm):
    with pytest.raises(HelmRefusedError, match="take it"):
        helm.request(ANNE, "drone", 0.0)
    helm.request(BOB, "drone", 0.0)
    helm.forget(BOB)
    with pytest.raises(HelmRefusedError, match="Another pilot is steering"):
        helm.take(BOB, "drone", 2 * ASK_S)


@pytest.mark.parametrize("is_held", [True, False], ids=["while it holds", "after it was resumed"])
def test_a_vehicle_that_was_stopped_follows_a_stick_that_was_let_go(helm, is_held):
    helm.steer(ANNE, "drone", helm.token(0.0), {"x": 1}, 0.0)
    helm.halt("drone")
    with pytest.raises(HelmRefusedError, match="elease the stick"):
        helm.steer(ANNE, "drone", helm.token(0.1), {"x": 1}, 0.1, is_held=is_held)
    assert helm.steer(ANNE, "drone", helm.token(0.2), {}, 0.2, is_held=is_held) == NEUTRAL
    assert helm.steer(ANNE, "drone", helm.token(0.3), {}, 0.3) == NEUTRAL
    assert helm.steer(ANNE, "drone", helm.token(0.4), {"x": 1}, 0.4) == FORWARD


def test_a_pilot_steers_one_vehicle_at_a_time(helm):
    with pytest.raises(HelmRefusedError, match="another vehicle"):
        helm.take(ANNE, "rover", 0.0)


@pytest.mark.parametrize("age_s", [MAX_AGE_S + 0.001, 10.0])
def test_a_delayed_command_has_no_effect(helm, age_s):
    token = helm.token(1.0)
    with pytest.raises(HelmRefusedError, match=r"s old \(limit 0\.3 s\)"):
        helm.steer(ANNE, "drone", token, {"x": 1}, 1.0 + age_s)


@pytest.mark.parametrize("token", [0, -1, 10**9])
def test_an_unissued_token_has_no_effect(helm, token):
    helm.token(1.0)
    with pytest.raises(HelmRefusedError, match=r"more than 1\.6 s old"):
        helm.steer(ANNE, "drone", token, {"x": 1}, 1.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, -(10**400), "1", None, True, [1]])
def test_a_command_that_is_no_number_is_refused(helm, value):
    with pytest.raises(HelmRefusedError, match="not a number from -1 to 1"):
        helm.steer(ANNE, "drone", helm.token(0.0), {"yaw": value}, 0.0)


def test_excessive_commands_are_clamped(helm):
    assert helm.steer(ANNE, "drone", helm.token(0.0), {"x": -7, "yaw": 1e300}, 0.0) == (-1.0, 0.0, 0.0, 1.0)


def test_a_pilot_who_was_lost_while_moving_has_to_release_the_stick_first(helm):
    helm.steer(ANNE, "drone", helm.token(0.0), {"x": 1}, 0.0)
    later_s = MAX_AGE_S + 0.1
    for _ in range(2):
        with pytest.raises(HelmRefusedError, match="Release the stick"):
            helm.steer(ANNE, "drone", helm.token(later_s), {"x": 1}, later_s)
    assert helm.steer(ANNE, "drone", helm.token(later_s), {"x": 0.0}, later_s) == NEUTRAL
    assert helm.steer(ANNE, "drone", helm.token(later_s), {"x": 1}, later_s) == FORWARD


def test_a_pilot_who_pauses_with_a_released_stick_may_continue(helm):
    helm.steer(ANNE, "drone", helm.token(0.0), {}, 0.0)
    assert helm.steer(ANNE, "drone", helm.token(2.0), {"x": 1}, 2.0) == FORWARD


def test_a_rover_has_fewer_axes_than_a_drone():
    assert SteeredVehicle("/robot/cmd_vel_stamped", "robot_bridge").axes == ("x", "yaw")
    assert SteeredVehicle("/a/b/cmd_vel_stamped", "dronegui_bridge").axes == ("x", "y", "z", "yaw")
    assert SteeredVehicle("/cmd_vel_stamped", "robomaster_bridge").axes == ("x", "y", "yaw")
    assert SteeredVehicle("/a/b/cmd_vel_stamped", "any").name == "a/b"
    assert SteeredVehicle("/cmd_vel_stamped", "robot_bridge").name == "robot"


def test_emergencies_exist_while_a_bridge_offers_them():
    nodes = {"/a/dronegui_bridge": "dronegui_bridge", "/a/testbed_bridge": "testbed_bridge", "/a/any": "any"}
    offered = {f"{node}/{name}" for node in nodes for name in ("emergency", "reset", "land")}
    found = by_service(nodes, offered, lambda kind: kind.emergencies)
    assert list(found) == ["/a/dronegui_bridge/emergency"]
    assert found["/a/dronegui_bridge/emergency"] == dronegui.KIND.emergencies["emergency"]
    assert by_service(nodes, offered - {*found}, lambda kind: kind.emergencies) == {}
