# SPDX-License-Identifier: Apache-2.0
"""Missing parts of the environment, by the installed files."""

import sys

from drone_bridge.ros.environment import missing_middleware

LIBRARIES = (
    "librmw_fastrtps_cpp.so",
    "librmw_cyclonedds_cpp.so",
    "librmw_fastrtps_shared_cpp.so",
    "librmw_dds_common__rosidl_typesupport_cpp.so",
    "librmw_dds_common__rosidl_typesupport_introspection_cpp.so",
)


def test_of_a_middleware_that_is_missing_those_that_there_are_are_named(tmp_path, monkeypatch):
    (tmp_path / "lib").mkdir()
    for name in LIBRARIES:
        (tmp_path / "lib" / name).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("AMENT_PREFIX_PATH", "/nowhere")
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_zenoh_cpp")
    assert missing_middleware() == (
        "RMW_IMPLEMENTATION is rmw_zenoh_cpp, which is not installed here; there is rmw_cyclonedds_cpp and "
        "rmw_fastrtps_cpp. Unset the variable, or install that middleware."
    )
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_fastrtps_shared_cpp")
    assert missing_middleware()
    for there in ("rmw_cyclonedds_cpp", ""):
        monkeypatch.setenv("RMW_IMPLEMENTATION", there)
        assert missing_middleware() is None
