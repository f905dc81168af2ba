# SPDX-License-Identifier: Apache-2.0
"""Parameters of nodes from a command line, a file and `ros2 param set`: any text, and empty lists."""

import contextlib
import re
import sys
from dataclasses import dataclass

import pytest
import rclpy
import yaml
from rclpy.node import Node
from rclpy.parameter import Parameter
from shipped import NODES, declared

from drone_bridge.parameter_fields import parameter
from drone_bridge.robot_class import node as robot_class
from drone_bridge.ros.node.common_parameters import common_parameters
from drone_bridge.ros.node.parameter_files import (
    LAUNCH_FILE,
    check_arguments,
    parameter_arguments,
    unaddressed,
    unknown,
)
from drone_bridge.ros.node.parameters import DeclaredParameters, ParameterDeclaration, declarations, has_value
from drone_bridge.tools.record.settings import read_settings
from drone_bridge.tools.shell.messages import parse


@pytest.fixture(scope="module")
def context():
    context = rclpy.Context()
    rclpy.init(context=context)
    yield context
    rclpy.shutdown(context=context)


@pytest.fixture
def make(context):
    """make(*words) creates a node with these command line arguments, and destroys it after the test."""
    made = []

    def make_node(*words):
        made.append(Node("node", context=context, cli_args=["--ros-args", *words], enable_rosout=False))
        return made[-1]

    yield make_node
    for node in made:
        node.destroy_node()


@pytest.mark.parametrize("text", ["o'brien", 'a: b # "c"', "[1, 2]", "true", "7", "", "\\n {x}", "Ünïcode 🚁", "a:=b"])
def test_any_text_reaches_a_node_by_its_command_line(make, text):
    node = make(*parameter_arguments({"folder": text, "port": 7, "steer": True}))
    parameters = DeclaredParameters(
        node,
        [
            ParameterDeclaration("folder", "none", "A folder."),
            ParameterDeclaration("port", 1, "A port."),
            ParameterDeclaration("steer", False, "A switch."),
        ],
    )
    assert (parameters["folder"], parameters["port"], parameters["steer"]) == (text, 7, True)


def test_an_empty_list_is_accepted_or_refused_with_a_sentence(make, tmp_path):
    names = ParameterDeclaration("names", ["a"], "Names.")
    numbers = ParameterDeclaration("numbers", [1.0], "Three.", check=lambda given: None if given else "must have 3.")
    rate = ParameterDeclaration("rate", 5.0, "Per second.")
    file = tmp_path / "parameters.yaml"
    file.write_text("node: {ros__parameters: {names: [], numbers: [], rate: []}}")
    node = make("--params-file", str(file))
    parameters = DeclaredParameters(node, [names, numbers, rate], keep_refused=True)
    assert parameters.refused == {
        "numbers": "numbers must have 3.",
        "rate": "rate is [] but must be one value, as 5.0.",
    }
    assert list(parameters["names"]) == []
    assert node.get_parameter("names").type_ == Parameter.Type.STRING_ARRAY


TYPED = (
    ParameterDeclaration("rate", 5.0, "Per second.", range=(0.5, 50.0), live=True),
    ParameterDeclaration("port", 7, "A port.", live=True),
    ParameterDeclaration("gains", [1.0, 2.0], "Two.", live=True),
    ParameterDeclaration("steer", False, "A switch.", live=True),
    ParameterDeclaration("folder", "a", "A folder.", live=True),
)
GIVEN = [
    *(("rate", text, 1.0, None) for text in ("1", "1.0", "1e0", "+1")),
    ("port", "8765.0", 8765, None),
    ("gains", "[1, 2]", [1.0, 2.0], None),
    ("rate", "a", 5.0, "rate is 'a' but must be a number, as 5.0."),
    ("rate", "true", 5.0, "rate is True but must be a number, as 5.0."),
    ("port", "1.5", 7, "port is 1.5 but must be a whole number, as 7."),
    ("gains", "1", [1.0, 2.0], "gains is 1 but must be a list, as [1.0, 2.0]."),
    ("gains", "[a, b]", [1.0, 2.0], "gains is ['a', 'b'] but must be a list, as [1.0, 2.0]."),
    ("steer", "1", False, "steer is 1 but must be true or false, as False."),
    ("folder", "7", "a", "folder is 7 but must be text, in quotes, as 'a'."),
]


@pytest.mark.parametrize(("name", "text", "value", "refusal"), GIVEN)
def test_a_number_has_the_type_of_its_parameter(make, name, text, value, refusal):
    """1 is 1.0, at the start and later, and each other type is refused in one sentence."""
    parameters = DeclaredParameters(make("-p", f"{name}:={text}"), TYPED, keep_refused=True)
    assert (parameters.refused.get(name), repr(parameters.values()[name])) == (refusal, repr(value))
    node = make()
    parameters = DeclaredParameters(node, TYPED)
    if not hasattr(node, "add_pre_set_parameters_callback"):
        pytest.skip("Humble has nothing that could convert the value")
    result = node.set_parameters([Parameter(name, value=parse(text))])[0]
    assert (result.reason or None, result.successful) == (refusal, refusal is None)
    assert repr(parameters[name]) == repr(value)
    assert node.set_parameters([Parameter("rate", value=2)])[0].successful


HOSTS = ["rover.local", "127.0.0.1", "::1", "fe80::1%wlan0", "::ffff:127.0.0.1", "my-robot", "0.0.0.0", "::"]
NO_HOSTS = ["http://192.168.1.5", "127.0.0.1:7700", "rover:7700", "[::1]", " 127.0.0.1", "192.168.1", "5"]


@pytest.mark.parametrize("host", [*HOSTS, *NO_HOSTS])
def test_a_host_is_a_name_or_a_whole_address(host):
    (check,) = (each.check for each in common_parameters(7, "A port.") if each.name == "host")
    assert check(host) == (
        f"is {host!r}, but must be a name or a whole address, without a port." if host in NO_HOSTS else None
    )


@pytest.mark.parametrize("node", NODES)
def test_printed_defaults_are_read_back_and_only_set_lists_may_be_empty(node):
    """`ros2 param load` treats Python's 1e-06 as text. An empty list has no type."""
    for each in declared(node).values():
        assert each.default != []
        assert isinstance(each.default, str) or yaml.safe_load(str(each.default)) == each.default
        if isinstance(each.default, list) and each.check and (problem := each.check([])):
            assert problem.endswith(".")


@pytest.mark.parametrize("kind", [Parameter.Type.BOOL_ARRAY, Parameter.Type.BYTE_ARRAY, Parameter.Type.STRING_ARRAY])
def test_an_empty_list_of_any_type_can_be_set(make, kind):
    node = make()
    parameters = DeclaredParameters(node, [ParameterDeclaration("names", ["a"], "Names.", live=True)])
    if not hasattr(node, "add_pre_set_parameters_callback"):
        pytest.skip("Humble has nothing that could give the list its type")
    empty = Parameter("names", kind, [])
    assert not has_value(node, empty)
    assert node.set_parameters_atomically([empty]).successful
    assert parameters["names"] == []
    assert node.get_parameter("names").type_ == Parameter.Type.STRING_ARRAY
    assert has_value(node, empty)


def test_an_empty_list_of_topics_records_all_and_no_size_is_a_list(make):
    assert read_settings(make("-p", "topics:=[]")).topics == frozenset()
    with pytest.raises(ValueError, match=r"exclude is \[\] but must be one value, as ''"):
        read_settings(make("-p", "exclude:=[]"))


# Unknown parameters.


FILE = """
/**:
  ros__parameters: {pattern: square, limits.fence_x: 3.0, use_sim_time: false}
/**/node:
  ros__parameters: {limits: {max_speed: 1.0, max_acceleration: 2.0}, qos_overrides: {/tf: {publisher: {depth: 9}}}}
elsewhere:
  node:
    ros__parameters: {hardware_id: mine}
/alpha/*:
  ros__parameters: {limits.fence_y: 3.0}
"""
DECLARED = ("limits.max_speed", "rate")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--ros-args", "-p", "rate:=5.0", "-p", "raet:=5.0"], ["raet"]),
        (["--ros-args", "-p", "node:raet:=5.0", "-p", "other:raet:=5.0", "--param", "tear:=1"], ["raet", "tear"]),
        (["-p", "raet:=5.0", "--ros-args", "--", "-p", "raet:=5.0"], []),
        (["--ros-args", "--params-file", "{file}"], ["limits.fence_x", "limits.max_acceleration", "limits.fence_y"]),
        (["--ros-args", "--params-file", "{file}.missing"], []),
    ],
)
def test_unknown_parameters_of_a_node_are_found(tmp_path, words, names):
    file = tmp_path / "parameters.yaml"
    file.write_text(FILE)
    given = ["program", *(word.format(file=file) for word in words)]
    assert list(unknown(given, "/alpha/node", DECLARED)) == names


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ("-p rate:=5.0", "-p would be ignored: write --ros-args first"),
        ("rate:=5.0", "rate:=5.0 would be ignored"),
        ("--ros-args -p rate:=5.0 -- __ns:=/a", "__ns:=/a would be ignored"),
        ("--ros-args -r __ns:=/robot-1", "'/robot-1' is not possible. Write a slash before each name"),
        ("--ros-args --remap rover:__node:=1st", "'1st' is not possible. Write letters"),
        ("--ros-args -p rate:=5.0 --log-level debug -r odom:=/a-b -r __ns:=/a/b2 -r __ns:=/ -r __node:=_a --", ""),
        ("robot_class_bridge tello port:=5666", ""),
        ("robot_class_bridge tello port:=5666 host:= --ros-args -r __ns:=/my_tello", ""),
        ("robot_class_bridge tello --ros-args -p port:=5666 -- port:=5", "port:=5 would be ignored"),
        ("robot_class_bridge tello -r __ns:=/a", "-r would be ignored"),
    ],
)
def test_arguments_that_ros_would_ignore_or_refuse_are_named(monkeypatch, words, refused):
    run = lambda _=None: check_arguments(sys.argv)  # noqa: E731
    monkeypatch.setattr(robot_class, "run", run)
    monkeypatch.setattr("sys.argv", words.split() if "tello" in words else ["node", *words.split()])
    with pytest.raises(ValueError, match=re.escape(refused)) if refused else contextlib.nullcontext():
        (robot_class.bridge if "tello" in words else run)()


def test_a_session_reads_present_values_as_attributes(make):
    @dataclass
    class Sample:
        rate: float = parameter(5.0, "Per second.")

    node = make()
    seen = DeclaredParameters(node, declarations(Sample)).live(Sample)
    assert seen.rate == 5.0
    node.set_parameters([Parameter("rate", value=9.0)])
    assert seen.rate == 9.0


def test_a_replaced_parameter_is_refused(make, monkeypatch):
    """A vehicle would move differently from its file."""
    radius = ParameterDeclaration("limits.fence_radius", 0.0, "Radius of the fence, m.", replaces=("limits.fence_x",))
    signs = ParameterDeclaration("opposite_signs", ["none"], "Signs.", replaces=("command_sign.",))
    given = ["limits.fence_x:=1.0", "command_sign.pitch:=-1"]
    monkeypatch.setattr("sys.argv", ["node", "--ros-args", *(word for each in given for word in ("-p", each))])
    parameters = DeclaredParameters(make(), [radius, signs], keep_refused=True)
    assert parameters.refused == {
        "limits.fence_x": "There is no limits.fence_x any more: set limits.fence_radius (Radius of the fence, m).",
        "command_sign.pitch": "There is no command_sign.pitch any more: set opposite_signs (Signs).",
    }
    with pytest.raises(ValueError, match=r"no command_sign\.pitch any more.*no limits\.fence_x any more"):
        DeclaredParameters(make(), [radius, signs])


def test_a_node_warns_once_of_all_unknown_parameters(make, monkeypatch):
    warned = []
    node = make()
    monkeypatch.setattr("sys.argv", ["node", "--ros-args", "-p", "limits.fence_x:=1.0", "-p", "raet:=1.0"])
    monkeypatch.setattr(node, "get_logger", lambda: type("Logger", (), {"warning": warned.append}))
    DeclaredParameters(node, [ParameterDeclaration("rate", 5.0, "Per second.")])
    (sentence,) = warned
    assert "limits.fence_x, raet (did you mean rate?)" in sentence


def test_a_file_for_other_nodes_is_named_and_that_of_a_launch_is_not(tmp_path, monkeypatch):
    file = tmp_path / "mine.yaml"
    words = ["robot_bridge", "--ros-args", "-p", "host:=a", "--params-file", str(file)]
    for section, is_used in {"robot_bridge": True, "/**": True, "/**/robot_bridge": True, "robot_brige": False}.items():
        file.write_text(f"{section}: {{ros__parameters: {{port: 1}}}}")
        assert bool([*unaddressed(words, "/robot_bridge")]) != is_used
    sentence = f"{file} is ignored: it has parameters for /robot_brige, and none for /robot_bridge."
    assert [*unaddressed(words, "/robot_bridge")] == [sentence]
    monkeypatch.setenv(LAUNCH_FILE, str(file))
    assert not [*unaddressed(words, "/robot_bridge")]
