# SPDX-License-Identifier: Apache-2.0
"""Name of the profile for each version of Fast DDS."""

import os

import pytest

from drone_bridge.ros.process import environment

PROFILE_OF_2 = environment.PROFILE_OF_2


@pytest.mark.parametrize(
    ("library", "given", "expected"),
    [
        ("libfastrtps.so", {}, ("/config/fastdds.xml", "/config/fastdds.xml")),
        ("libfastrtps.so", {PROFILE_OF_2: "/config/fastdds_loopback.xml"}, ("/config/fastdds.xml",) * 2),
        ("libfastrtps.so", {PROFILE_OF_2: "/mine.xml"}, ("/mine.xml", "/mine.xml")),
        ("libfastrtps.so", {"ROS_LOCALHOST_ONLY": "1"}, ("/config/fastdds.xml", None)),
        ("libfastdds.so", {}, ("/config/fastdds.xml", None)),
    ],
)
def test_fast_dds_2_gets_the_profile_by_its_own_name_and_keeps_the_user_s(
    monkeypatch, tmp_path, library, given, expected
):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / library).touch()
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.pathsep.join(["/none", str(tmp_path)]))
    variables = {environment.PROFILE: "/config/fastdds.xml", **given}
    environment.name_profile_for_fast_dds_2(variables)
    assert (variables[environment.PROFILE], variables.get(PROFILE_OF_2)) == expected
