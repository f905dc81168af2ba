# SPDX-License-Identifier: Apache-2.0
"""Legacy operators of one protocol, vehicles of another: one pair for real, and which pairs there are."""

import re

import pytest

from drone_bridge.operators.plan import parse_plan
from drone_bridge.tools.demo import any_vehicle
from drone_bridge.tools.demo.any_vehicle import OPERATORS, VEHICLES, obstacle


def test_a_gui_s_client_drives_a_tracked_robot(domain, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(any_vehicle, "isolate_ros_graph", lambda: None)  # tests are alone already
    monkeypatch.setattr(any_vehicle, "PLAN", parse_plan("4s, 3s forward 0.4, 1s"))
    assert any_vehicle.show(["dronegui"], ["robot"], tmp_path) == 0
    assert re.match(r"dronegui +robot +1\.\d\d m ahead", capsys.readouterr().out.splitlines()[-1])


def test_an_autopilot_needs_pictures():
    seeing = {vehicle.name for vehicle in VEHICLES if not obstacle(OPERATORS[0], vehicle)}
    assert OPERATORS[0].name == "testbed"
    assert seeing == {"testbed", "landing"}
    assert not [vehicle for operator in OPERATORS[1:] for vehicle in VEHICLES if obstacle(operator, vehicle)]


def test_a_name_that_there_is_not_is_refused_with_those_that_there_are(tmp_path):
    with pytest.raises(SystemExit, match=r"There is no boat, but testbed, dronegui, simulator, robot, landing\."):
        any_vehicle.show(None, ["robot", "boat"], tmp_path)
