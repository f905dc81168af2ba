# SPDX-License-Identifier: Apache-2.0
"""Calls of dronegui_server for the buttons of its operators, without DDS."""

import math
from types import SimpleNamespace

import pytest
from plain_node import PlainNode
from std_srvs.srv import SetBool, Trigger

from drone_bridge.dronegui.vehicle.server import TARGETS, DroneGuiServer
from drone_bridge.dronegui.vehicle.session.gui import RESET, TAKE_OFF
from drone_bridge.dronegui.vehicle.session.hover import HOVER
from drone_bridge.ros.servers.service_caller import ServiceCaller
from drone_bridge.session.session import EMERGENCY, LAND


@pytest.fixture
def called():
    """Function that presses a button at a server, and returns the called services."""

    def press(name, tag=None, *, is_gone=False, missing=()):
        node = PlainNode()
        node.decided_s = math.inf
        types = {HOVER: SetBool, EMERGENCY: Trigger}
        targets = {target: target for target in TARGETS}
        caller = ServiceCaller(node, targets, 15.0, types=types, is_gone=lambda name: is_gone)
        for each in missing:
            caller._clients[each].service_is_ready = lambda: False
        server = SimpleNamespace(decided_s=math.inf, _presses={}, _caller=caller, _answer=lambda *_: None)
        DroneGuiServer.call_service(server, name, tag)
        return [service for service, _ in node.called]

    return press


@pytest.mark.parametrize(
    ("name", "tag"), [(TAKE_OFF, None), (LAND, None), (RESET, None), (EMERGENCY, None), (HOVER, True)]
)
def test_each_button_calls_its_service(called, name, tag):
    assert called(name, tag) == [name]


def test_reset_replaces_an_emergency_service_that_does_not_exist(called):
    assert called(EMERGENCY, missing=[EMERGENCY]) == [RESET]


@pytest.mark.parametrize(("name", "services"), [(TAKE_OFF, []), (RESET, []), (LAND, [LAND]), (EMERGENCY, [EMERGENCY])])
def test_only_what_ends_a_flight_is_requested_from_a_bridge_without_reports(called, name, services):
    assert called(name, is_gone=True) == services
