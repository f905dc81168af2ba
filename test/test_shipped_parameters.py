# SPDX-License-Identifier: Apache-2.0
"""Parameters in launch files and parameter files: those that nodes declare, with their defaults."""

import contextlib
import re
from xml.etree import ElementTree

import pytest
from composition import launch
from processes import Process
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters
from rclpy.parameter import parameter_value_to_python
from ros_session import RosSession
from shipped import EXECUTABLES, LAUNCH_FILES, NODES, PARTS, ROOT, by_name, parameters_in

try:
    from drone_bridge.tools.web.node import PARAMETERS as WEB_BRIDGE
except ModuleNotFoundError:  # foxglove-sdk, for which rosdep has no key
    WEB_BRIDGE = ()

PARAMETER_FILES = sorted(path for path in (ROOT / "config").glob("*.yaml") if path.name != "no_parameters.yaml")
# Parameters that rclpy gives to every node.
OF_RCLPY = re.compile(r"use_sim_time|start_type_description_service|qos_overrides\..*")
TYPES = {
    "bool": ParameterType.PARAMETER_BOOL,
    "int": ParameterType.PARAMETER_INTEGER,
    "float": ParameterType.PARAMETER_DOUBLE,
    "str": ParameterType.PARAMETER_STRING,
    "yaml": ParameterType.PARAMETER_STRING_ARRAY,
}
# What nodes are told here so that they do nothing, and what they would have been told by nobody.
IDLE = {"bridge": {"autostart": False}, "server": {"autostart": False}, "recorder": {"topics": "['/none']"}}
IDLE_BY_NAME = {"web_bridge": {"port": 0}}  # whoever else has the usual one
UNTOLD = {"autostart": True, "topics": [""]}
UNTOLD_BY_NAME = {"web_bridge": {one.name: one.default for one in WEB_BRIDGE if one.name == "port"}}


class Declared:
    """The parameters of a node as it declares them: their values when nobody says otherwise, and their types."""

    def __init__(self, ros, node):
        names = ros.call(ListParameters, f"{node}/list_parameters", ListParameters.Request()).result.names
        names = [name for name in names if not OF_RCLPY.fullmatch(name)]
        values = ros.call(GetParameters, f"{node}/get_parameters", GetParameters.Request(names=names)).values
        request = DescribeParameters.Request(names=names)
        descriptors = ros.call(DescribeParameters, f"{node}/describe_parameters", request).descriptors
        self.types = {descriptor.name: descriptor.type for descriptor in descriptors}
        self.values = dict(zip(names, map(parameter_value_to_python, values), strict=True))
        untold = UNTOLD | UNTOLD_BY_NAME.get(node, {})
        self.values.update({name: value for name, value in untold.items() if name in names})


@pytest.fixture(scope="module")
def declared(tmp_path_factory):
    """declared(node) is its Declared. All nodes are started at once, as finding them takes longest."""
    known, children = {}, {}

    def end_all():
        for child in children.values():
            child.send()
        for child in children.values():
            child.end()

    def get(node):
        if node not in known:
            if node == "web_bridge" and not WEB_BRIDGE:
                pytest.skip("web_bridge needs foxglove-sdk, for which rosdep has no key")
            assert children[node].is_running, children[node].output
            known[node] = Declared(ros, node)
        return known[node]

    with contextlib.ExitStack() as stack:
        ros = RosSession("asks_for_parameters")
        stack.callback(ros.close)
        stack.callback(end_all)  # those that were started, also if one of them can't be
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path_factory.mktemp("here"))  # where the recorder begins a bag
            for node in NODES if WEB_BRIDGE else NODES - {"web_bridge"}:
                idle = IDLE.get(node.rpartition("_")[2], {}) | IDLE_BY_NAME.get(node, {})
                children[node] = Process.node(node, **idle)
        yield get


@by_name([*LAUNCH_FILES, *PARTS])
def test_a_launch_file_sets_existing_parameters(path, declared):
    for node in ElementTree.parse(path).iter("node"):
        if node.get("pkg") != "drone_bridge":
            continue
        assert node.get("exec") in EXECUTABLES
        types = declared(node.get("exec")).types
        for parameter in node.findall("param"):
            if OF_RCLPY.fullmatch(parameter.get("name", "")):
                continue
            if "name" in parameter.attrib:
                name = parameter.get("name")
                assert name in types, f"{node.get('exec')} has no parameter {name}"
                # Without its type, text that looks like a number would become one.
                assert TYPES[parameter.get("type")] == types[name], f"{name} of {node.get('exec')}"
            else:
                file = re.fullmatch(
                    r"\$\(find-pkg-share drone_bridge\)/(config/\w+\.yaml)|\$\(var \w+\)", parameter.get("from")
                )
                assert file
                assert file[1] is None or (ROOT / file[1]).is_file()


# Parameter files.

COMMENTED_OUT = re.compile(r"^(\s*)# (?=[a-z][\w.]*: )", re.MULTILINE)


def plain(value):
    return value if isinstance(value, str | bool | int | float) else list(value)


@by_name(PARAMETER_FILES)
def test_a_parameter_file_names_existing_parameters_and_their_defaults(path, declared):
    text = path.read_text()
    given = parameters_in(text)
    for node, parameters in parameters_in(COMMENTED_OUT.sub(r"\1", text)).items():
        defaults = declared(node).values
        for name, value in parameters.items():
            assert name in defaults, f"{node} has no parameter {name}"
            default = plain(defaults[name])
            if name in given[node]:
                assert type(value) is type(default), f"{name}: {value!r} has another type than {default!r}"
            else:
                assert (value, type(value)) == (default, type(default)), f"{name} is commented out, so the default"


# A user's parameter file for a launch file, as the node has it in the end.

OF_USER = {"host": "127.0.0.77", "command_timeout": 0.75, "wheel_separation": 0.25}


@pytest.mark.parametrize("key", ["/**", "/**/robot_bridge", "/r1/robot_bridge"])
def test_parameters_of_the_user_win_however_they_name_the_node(ros, tmp_path, key):
    file = tmp_path / "mine.yaml"
    lines = [f"    {name}: {value}" for name, value in OF_USER.items()]
    file.write_text("\n".join([f"{key}:", "  ros__parameters:", *lines]))
    with launch("robot.launch.xml", params_file=file, robot_host="127.0.0.9", wheel_separation=0.7, namespace="r1"):
        values = ros.parameters("/r1/robot_bridge")
    assert OF_USER.items() <= values.items()
