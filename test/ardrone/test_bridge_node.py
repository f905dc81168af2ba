# SPDX-License-Identifier: Apache-2.0
"""Functions of the node ardrone_bridge beside its session, without ROS."""

from types import SimpleNamespace

import pytest
from ardrone_talk import Talk

from drone_bridge.ardrone.bridge import PARAMETERS, ArdroneBridge

DEFAULTS = {each.name: each.default for each in PARAMETERS}


def settings_of(**parameters):
    """Return the settings of a drone that was connected with these parameters."""
    node = SimpleNamespace(parameters={**DEFAULTS, **parameters})
    node._channel = lambda: ArdroneBridge._channel(node)
    first, *wishes = ArdroneBridge._wishes(node)
    talk = Talk()
    talk.wishes = [first, *wishes]
    return talk.connected().drone.settings


def test_the_defaults_change_nothing_but_mode_and_camera():
    fresh = Talk().drone.settings
    assert settings_of() == {**fresh, "general:navdata_demo": "TRUE"}


@pytest.mark.parametrize("outdoor", ["true", "false", "keep"])
def test_maxima_are_those_of_the_parameters_outdoors_too(outdoor):
    wanted = {"drone.max_tilt": 0.3, "drone.max_climb": 0.5, "drone.max_yaw_rate": 1.0, "drone.altitude_max": 5.0}
    settings = settings_of(**wanted, **{"drone.outdoor": outdoor, "drone.hull": "false"})
    assert settings["control:outdoor"] == ("TRUE" if outdoor == "true" else "FALSE")
    assert settings["control:flight_without_shell"] == "TRUE"
    names = ("euler_angle_max", "control_vz_max", "control_yaw", "altitude_max")
    assert [float(settings[f"control:{name}"]) for name in names] == [0.3, 500, 1.0, 5000]


def test_full_navdata_are_asked_for_with_their_options():
    settings = settings_of(navdata="full")
    assert settings["general:navdata_demo"] == "FALSE"
    assert int(settings["general:navdata_options"]) & 1 << 3
