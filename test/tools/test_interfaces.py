# SPDX-License-Identifier: Apache-2.0
"""Message definitions and type hashes, found in the installed interfaces."""

import os
import re
import sys
from pathlib import Path

import pytest
from ament_index_python.packages import get_package_share_directory
from ament_index_python.resources import get_resource, get_resources
from repository import ROOT
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from drone_bridge.tools.shared.interfaces import UnknownTypeError, message_text, type_hash

INSTALLED = sorted(
    f"{package}/{Path(line).parent}/{Path(line).stem}"
    for package in get_resources("rosidl_interfaces")
    for line in get_resource("rosidl_interfaces", package)[0].split()
    if line.startswith("msg/") and line.endswith(".idl")
)


def test_all_interfaces_are_built():
    root = ROOT
    built = re.findall(r"^  ((?:action|msg|srv)/\w+\.\w+)$", (root / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert built == sorted(
        f"{folder}/{path.name}" for folder in ("action", "msg", "srv") for path in (root / folder).glob(f"*.{folder}")
    )


def test_every_installed_type_has_a_definition_that_defines_it():
    assert "drone_bridge/msg/CommandRates" in INSTALLED
    for type_name in INSTALLED:
        definition = message_text(type_name)
        store = get_typestore(Stores.EMPTY)
        store.register(get_types_from_msg(definition, type_name))
        assert store.generate_msgdef(type_name, ros_version=2)


def test_hashes_are_those_of_the_build_and_none_where_it_made_none():
    if os.environ.get("ROS_DISTRO") == "humble":
        assert set(map(type_hash, INSTALLED)) == {""}
        return
    assert all(type_hash(type_name).startswith("RIHS01_") for type_name in INSTALLED)
    rosbags = get_typestore(Stores.LATEST)
    for type_name in ("std_msgs/msg/String", "nav_msgs/msg/Odometry", "tf2_msgs/msg/TFMessage"):
        assert type_hash(type_name) == rosbags.hash_rihs01(type_name)


def test_definition_is_the_file_then_each_dependency_once():
    text = message_text("drone_bridge/msg/CommandRates")
    own = Path(get_package_share_directory("drone_bridge"), "msg/CommandRates.msg").read_text()
    assert text.startswith(own)
    headings = [line for line in text[len(own) :].splitlines() if line.startswith(("=", "MSG: "))]
    assert headings == ["=" * 80, "MSG: std_msgs/Header", "=" * 80, "MSG: builtin_interfaces/Time"]


def install(prefix, package, files):
    interfaces = prefix / "share/ament_index/resource_index/rosidl_interfaces"  # and in no other index
    interfaces.mkdir(parents=True, exist_ok=True)
    (interfaces / package).write_text("\n".join(f"msg/{name}" for name in files))
    (prefix / "share" / package / "msg").mkdir(parents=True)
    for name, text in files.items():
        (prefix / "share" / package / "msg" / name).write_text(text)


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    return tmp_path


def test_a_type_without_a_msg_file_is_refused_by_name(prefix):
    install(prefix, "small", {"Outer.idl": "module small { module msg { struct Outer { int32 x; }; }; };"})
    with pytest.raises(UnknownTypeError, match=r"'small/msg/Outer' can't be used: .* No such file .*Outer\.msg"):
        message_text("small/msg/Outer")
    assert type_hash("small/msg/Outer") == "", "nobody has computed it, as before Iron"


def test_types_of_the_same_package_bounds_arrays_and_constants(prefix):
    fields = ["string NAME=x # not a/Type", "string<=10 text", "Inner[<=3] some", "Inner[] more", "bool[2] pair true"]
    text = "\n".join(fields) + "\n"
    install(prefix, "small", {"Inner.msg": "int32 x\n", "Outer.msg": text, "Inner.idl": "", "Outer.idl": ""})
    assert message_text("small/msg/Outer") == f"{text}\n{'=' * 80}\nMSG: small/Inner\nint32 x\n"


def test_a_dependency_that_is_missing_is_named(prefix):
    install(prefix, "small", {"Outer.msg": "gone/Inner inner\n", "Outer.idl": ""})
    with pytest.raises(UnknownTypeError, match="'gone' of 'gone/msg/Inner' is not installed"):
        message_text("small/msg/Outer")


@pytest.mark.parametrize(
    ("type_name", "reason"),
    [
        ("nowhere_msgs/msg/Thing", "'nowhere_msgs' .* is not installed"),
        ("std_msgs/msg/Nothing", "no message 'Nothing'"),
        ("antigravity/msg/Thing", "not installed"),  # a Python module, but no interface package
        ("std_msgs/String", "not a message type"),
        ("std_srvs/srv/Trigger", "not a message type"),
        ("../../etc/msg/Passwd", "not a message type"),
        ("std_msgs/msg/../../etc/passwd", "not a message type"),
        ("", "not a message type"),
    ],
)
def test_what_is_not_an_installed_message_is_refused(type_name, reason):
    with pytest.raises(UnknownTypeError, match=reason):
        message_text(type_name)
    assert "antigravity" not in sys.modules
