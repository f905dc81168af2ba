# SPDX-License-Identifier: Apache-2.0
"""Legacy operators of one protocol, vehicles of another: one pair for real, and which pairs there are."""

import re

import pytest

from drone_bridge.programs.plan import parse_plan
from drone_bridge.tools.demo import any_vehicle
from drone_bridge.tools.demo.any_vehicle import NEEDS, OPERATORS, VEHICLES, obstacle


def test_a_gui_s_client_drives_a_tracked_robot(domain, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(any_vehicle, "isolate_ros_graph", lambda: None)  # tests are alone already
    monkeypatch.setattr(any_vehicle, "PLAN", parse_plan("4s, 3s forward 0.4, 1s"))
    assert any_vehicle.show(["dronegui"], ["robot"], tmp_path) == 0
    assert re.match(r"dronegui +robot +1\.\d\d m ahead", capsys.readouterr().out.splitlines()[-1])


def test_an_impossible_pair_is_refused_with_the_reason():
    said = {(o, v): why for o in OPERATORS for v in VEHICLES if (why := obstacle(o, v))}
    assert said == {
        ("simulator", "landing"): NEEDS["odom"],
        **dict.fromkeys((("telemetry", each) for each in ("testbed", "dronegui", "robot")), NEEDS["gyroscope"]),
    }


def test_an_unknown_name_is_refused_with_the_valid_ones(tmp_path):
    with pytest.raises(SystemExit, match=r"Unknown: boat\. Available: testbed, dronegui, simulator, robot, landing\."):
        any_vehicle.show(None, ["robot", "boat"], tmp_path)
