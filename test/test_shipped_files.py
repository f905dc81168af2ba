# SPDX-License-Identifier: Apache-2.0
"""Launch files, parameter files and pages say what is so: compared with the nodes that they speak of."""

import configparser
import contextlib
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from processes import Process
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters
from rclpy.parameter import parameter_value_to_python
from ros_session import RosSession

from drone_bridge.programs.options import ENDS_LAUNCH
from drone_bridge.ros.hold_file import SCOPE_VARIABLE
from drone_bridge.ros.last_word import OBSERVERS
from drone_bridge.tools.launch.arguments import declared_in
from drone_bridge.tools.launch.evaluate import evaluate
from drone_bridge.tools.launch.parse import load

try:
    from drone_bridge.tools.web.node import PARAMETERS as WEB_BRIDGE
except ModuleNotFoundError:  # foxglove-sdk, for which rosdep has no key
    WEB_BRIDGE = ()

ROOT = Path(__file__).parent.parent
LAUNCH_FILES = sorted((ROOT / "launch").glob("*.launch.xml"))
PARTS = sorted((ROOT / "launch" / "parts").glob("*.launch.xml"))  # which launch files include
PARAMETER_FILES = sorted(path for path in (ROOT / "config").glob("*.yaml") if path.name != "no_parameters.yaml")
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
# Parameters that rclpy gives to every node.
OF_RCLPY = re.compile(r"use_sim_time|start_type_description_service|qos_overrides\..*")

# What the XML front end of ROS 2 Humble, the oldest supported, knows: the attributes that launch 1.0 and launch_ros
# 0.19 read from each tag; they refuse any other. Newer releases know all of these as well. Not in it: on_exit, and
# substitutions that compare text.
CONDITION = {"if", "unless"}
PROCESS = {"cwd", "launch-prefix", "output", "respawn", "respawn_delay", "shell"}
KNOWN_TO_HUMBLE = {
    "launch": {"version"},
    "arg": {"name", "default", "description", "value"},  # value inside include
    "choice": {"value"},
    "let": {"name", "value"} | CONDITION,
    "group": {"scoped", "forwarding"} | CONDITION,
    "include": {"file"} | CONDITION,
    "push_ros_namespace": {"namespace"} | CONDITION,
    "set_env": {"name", "value"} | CONDITION,
    "unset_env": {"name"} | CONDITION,
    "executable": {"cmd", "name"} | PROCESS | CONDITION,
    "node": {"pkg", "exec", "name", "namespace", "exec_name", "args", "ros_args"} | PROCESS | CONDITION,
    "env": {"name", "value"},
    "param": {"name", "value", "type", "from", "allow_substs"},
    "remap": {"from", "to"},
}
SUBSTITUTIONS_OF_HUMBLE = {
    *("var", "env", "anon", "dirname", "find-pkg-share", "find-pkg-prefix", "find-exec", "exec-in-pkg"),
}
TYPES = {
    "bool": ParameterType.PARAMETER_BOOL,
    "int": ParameterType.PARAMETER_INTEGER,
    "float": ParameterType.PARAMETER_DOUBLE,
    "str": ParameterType.PARAMETER_STRING,
    "yaml": ParameterType.PARAMETER_STRING_ARRAY,
}
# The arguments that every launch file takes, beside the addresses and ports of its own.
COMMON_ARGUMENTS = {
    *("emulate", "control", "record", "bag", "compression", "rviz", "namespace", "frame_prefix"),
    *("params_file", "log_level", "use_sim_time"),
    *("view", "view_port", "view_host", "steer", "origins"),
}


def by_name(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.name)


def executables():
    """The names in lib/drone_bridge, by section of setup.cfg."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    sections = config["options.entry_points"].items()
    return {section: {line.split("=")[0].strip() for line in lines.strip().split("\n")} for section, lines in sections}


NODES = executables()["drone_bridge.nodes"]
EXECUTABLES = NODES | executables()["drone_bridge.programs"]
# What nodes are told here so that they do nothing, and what they would have been told by nobody.
IDLE = {"bridge": {"autostart": False}, "server": {"autostart": False}, "recorder": {"topics": "['/none']"}}
IDLE_BY_NAME = {"web_bridge": {"port": 0}}  # whoever else has the usual one
UNTOLD = {"autostart": True, "topics": []}
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


# Launch files.


@by_name([*LAUNCH_FILES, *PARTS])
def test_a_launch_file_uses_only_what_humble_knows(path):
    for element in ElementTree.parse(path).iter():
        assert element.tag in KNOWN_TO_HUMBLE
        assert set(element.attrib) <= KNOWN_TO_HUMBLE[element.tag], f"<{element.tag}>"
        for text in element.attrib.values():
            assert set(re.findall(r"\$\(([\w-]+)", text)) <= SUBSTITUTIONS_OF_HUMBLE, text


def started(path, folder, **given):
    """The processes of a launch file with everything that it can start, but for rviz2."""
    everything = dict.fromkeys(("emulate", "control", "relay", "operate", "record", "view"), "true")
    known = declared_in(load(path)).arguments
    return evaluate(path, {name: value for name, value in (everything | given).items() if name in known}, folder)


@by_name(LAUNCH_FILES)
def test_a_launch_file_takes_the_common_arguments_and_uses_all_it_takes(path):
    arguments = declared_in(load(path)).arguments
    is_server = path.name.endswith("_server.launch.xml")  # which legacy operators control, and no controller
    assert arguments.keys() >= (
        COMMON_ARGUMENTS - {"control"} | {"relay", "operate"} if is_server else COMMON_ARGUMENTS
    )
    assert any(name.endswith(("_port", "_file")) for name in arguments.keys() - COMMON_ARGUMENTS)
    assert any(name.endswith("_host") for name in arguments.keys() - COMMON_ARGUMENTS)
    assert all(argument.description for argument in arguments.values())
    text = "".join(file.read_text() for file in (*LAUNCH_FILES, *PARTS))
    assert [name for name in arguments if f"$(var {name})" not in text] == []


@by_name(LAUNCH_FILES)
def test_a_launch_file_gives_all_its_nodes_the_user_s_parameters_last(path, tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.touch()
    for process in started(path, tmp_path, params_file=str(mine)):
        files = [file for word, file in pairwise(process.command) if word == "--params-file"]
        assert files[-1:] == [str(mine)] * ("--ros-args" in process.command)
        # An entry for every node that comes before would take theirs in, and those of the launch file would win.
        assert "-p" not in process.command


@by_name(LAUNCH_FILES)
def test_a_launch_file_leaves_the_environment_of_others_alone(path, tmp_path, monkeypatch):
    monkeypatch.delenv("FASTDDS_DEFAULT_PROFILES_FILE", raising=False)
    around = tmp_path / "around.launch.xml"
    around.write_text(f'<launch><include file="{path}"/><executable cmd="true" name="other"/></launch>')
    *ours, other = evaluate(around, {}, tmp_path)
    profiles = {process.environment["FASTDDS_DEFAULT_PROFILES_FILE"].rpartition("/")[2] for process in ours}
    assert profiles == {"fastdds.xml"}
    assert "FASTDDS_DEFAULT_PROFILES_FILE" not in other.environment


@by_name(LAUNCH_FILES)
def test_the_hold_of_an_emulated_vehicle_has_a_scope_of_its_launch(path, tmp_path):
    def scopes(emulate):
        return {process.environment.get(SCOPE_VARIABLE) for process in started(path, tmp_path, emulate=emulate)}

    assert scopes("false") == {None}
    first, second = scopes("true"), scopes("true")
    assert len(first) == len(second) == 1
    assert None not in first | second
    assert first != second


@by_name(LAUNCH_FILES)
def test_a_launch_file_starts_programs_of_the_package_alone(path):
    """Whatever python3 there is on the PATH."""
    for executable in ElementTree.parse(path).iter("executable"):
        started = re.match(r"\$\(exec-in-pkg (\w+) drone_bridge\) ", executable.get("cmd"))
        assert started[1] in EXECUTABLES


@by_name([*LAUNCH_FILES, *PARTS])
def test_what_only_observes_is_known_to_servers_by_its_name(path):
    """Whoever else subscribes to commands is taken for a vehicle."""
    for element in ElementTree.parse(path).iter("node"):
        if element.get("exec") in ("recorder", "web_bridge"):
            assert element.get("name", element.get("exec")) in OBSERVERS


@by_name(LAUNCH_FILES)
def test_bridges_and_servers_come_back_and_emulators_and_operators_end_the_launch(path):
    """Nothing does both: ros2 launch would start again what has ended it."""
    for element in ElementTree.parse(path).iter():
        if element.tag not in ("node", "executable"):
            continue
        name = element.get("exec") or element.get("cmd").split()[1]
        comes_back = (element.get("respawn"), element.get("respawn_delay")) == ("true", "0.5")
        assert comes_back == bool(re.fullmatch(r"\w+_(bridge|server)", name)), name
        assert (f" {ENDS_LAUNCH} " in element.get("cmd", "")) == bool(re.fullmatch(r"\w+_(emulator|operator)", name))


@by_name(LAUNCH_FILES)
def test_a_launch_file_that_shows_a_vehicle_tells_what_it_looks_like(path, tmp_path):
    for view in ("true", "false"):
        names = {Path(process.command[0]).name for process in started(path, tmp_path, view=view)}
        assert {"vehicle_model", "web_bridge"} & names == ({"vehicle_model", "web_bridge"} if view == "true" else set())


@by_name(LAUNCH_FILES)
def test_a_value_that_becomes_part_of_a_variable_s_name_is_one_of_the_choices(path):
    root = ElementTree.parse(path).getroot()
    choices = {
        arg.get("name"): {choice.get("value") for choice in arg.findall("choice")} for arg in root.findall("arg")
    }
    variables = {element.get("name") for element in root.findall("let")}
    for prefix, argument in re.findall(r"\$\(var (\w+)\$\(var (\w+)\)\)", path.read_text()):
        assert choices[argument], f"{argument} takes anything"
        assert {prefix + value for value in choices[argument]} <= variables


STARTING = ("node", "executable", "include")


def test_the_common_part_looks_for_rviz2_before_it_starts_anything():
    """Otherwise ros2 launch fails on the way, and leaves running what it has started."""
    elements = list(ElementTree.parse(ROOT / "launch" / "parts" / "common.launch.xml").getroot().iter())
    (looking,) = (element for element in elements if "find-pkg-prefix rviz2" in element.get("value", ""))
    assert looking.get("if") == "$(var rviz)"
    assert elements.index(looking) < min(elements.index(each) for each in elements if each.tag in STARTING)


@by_name(LAUNCH_FILES)
def test_a_launch_file_begins_with_the_common_part(path):
    first = next(each for each in ElementTree.parse(path).getroot().iter() if each.tag in STARTING)
    assert first.get("file", "").endswith("/parts/common.launch.xml")


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


@by_name(LAUNCH_FILES)
def test_the_default_parameter_file_overrides_no_launch_argument(path):
    """params_file wins: an active value in its default would make an argument mean nothing."""
    root = ElementTree.parse(path).getroot()
    defaults = [argument.get("default") for argument in root.iter("arg") if argument.get("name") == "params_file"]
    active = {}
    for default in defaults:
        if default:
            active = parameters_in((ROOT / default.removeprefix("$(find-pkg-share drone_bridge)/")).read_text())
    for node in root.iter("node"):
        by_argument = {
            parameter.get("name") for parameter in node.findall("param") if "$(var " in parameter.get("value", "")
        }
        overruled = by_argument & active.get(node.get("exec"), {}).keys()
        assert not overruled, f"{path.name}: {node.get('exec')} would not heed {', '.join(sorted(overruled))}"


# Parameter files.

COMMENTED_OUT = re.compile(r"^(\s*)# (?=[a-z][\w.]*: )", re.MULTILINE)


def parameters_in(text):
    """The parameters in the text of a file: {node: {name: value}}."""
    return {
        pattern.removeprefix("/**/"): dict(flat(content["ros__parameters"]))
        for pattern, content in (yaml.safe_load(text) or {}).items()
    }


def flat(parameters, prefix=""):
    for name, value in parameters.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


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


# Pages.

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(path):
    """The anchors of a page, as GitHub makes them from its headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@by_name(
    [*PAGES, *(ROOT / "docs" / "reference").glob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "benchmark" / "README.md"]
)
def test_the_links_of_a_page_lead_somewhere(path):
    for file, anchor in LINK.findall(path.read_text()):
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), file
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{file}#{anchor}"
