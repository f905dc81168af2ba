# SPDX-License-Identifier: Apache-2.0
"""Shipped launch files: their arguments, processes and includes; and the links of pages."""

import re
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from shipped import EXECUTABLES, LAUNCH_FILES, PARTS, REQUIRED, ROOT, by_name, parameters_in

from drone_bridge.net.connector import PORT_ARGUMENT, LinkInUseError
from drone_bridge.programs.options import ENDS_LAUNCH
from drone_bridge.ros.commands.cmd_vel_type import OBSERVERS
from drone_bridge.ros.hold.hold_file import SCOPE_VARIABLE
from drone_bridge.ros.node.parameter_files import unaddressed
from drone_bridge.ros.node.protocol_node import HOST_ARGUMENT, ProtocolNode, link_advice
from drone_bridge.stop_signals import LAUNCHED
from drone_bridge.testbed.vehicle.emulator.__main__ import parse
from drone_bridge.tools.launch.arguments import declared_in, parse_assignments
from drone_bridge.tools.launch.evaluate import evaluate
from drone_bridge.tools.launch.parse import LaunchFileError, load

PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])

# Arguments of each launch file, besides its own addresses and ports.
COMMON_ARGUMENTS = {
    *("emulate", "control", "record", "bag", "compression", "rviz", "namespace", "frame_prefix"),
    *("params_file", "log_level", "use_sim_time"),
    *("view", "view_port", "view_host", "steer", "origins", "localhost"),
}


# Launch files.


class Parameters(dict):
    values = dict.copy


def started(path, folder, **given):
    """Processes of a launch file with all options, except rviz2."""
    everything = dict.fromkeys(("emulate", "control", "relay", "operate", "record", "view"), "true")
    everything |= REQUIRED.get(path.name, {})
    known = declared_in(load(path))
    return evaluate(path, {name: value for name, value in (everything | given).items() if name in known}, folder)


@pytest.mark.parametrize(
    ("words", "height"), [([], -8.0), (["testbed_ground:=-3"], -3.0), (["testbed_ground:=none"], None)]
)
def test_the_emulated_testbed_has_a_ground_that_can_be_left_out(tmp_path, words, height):
    [path] = [path for path in LAUNCH_FILES if path.name == "testbed.launch.xml"]
    [command] = [
        each.command
        for each in started(path, tmp_path, **parse_assignments(words))
        if each.command[0].endswith("testbed_emulator")
    ]
    assert parse(command[1:]).ground == height


@pytest.mark.parametrize(("bridge", "testbed"), [("connect", "listen"), ("listen", "connect")])
def test_one_of_testbed_and_bridge_listens(tmp_path, bridge, testbed):
    [path] = [path for path in LAUNCH_FILES if path.name == "testbed.launch.xml"]
    given = {"emulate": "true", "testbed_bridge_role": bridge, "attitude_layout": "pitch_roll"}
    emulator, node = evaluate(path, given, tmp_path)[:2]
    command = " ".join(emulator.command)
    assert f" --role {testbed} " in command
    assert " --layout pitch_roll " in command
    assert f"role: {bridge}" in "".join(node.files.values()).replace('"', "")


@pytest.mark.parametrize(("given", "is_in_the_air"), [({}, False), ({"operator_in_the_air": "true"}, True)])
def test_the_operator_of_a_flying_vehicle_presses_no_button(tmp_path, given, is_in_the_air):
    [path] = [path for path in LAUNCH_FILES if path.name == "dronegui_server.launch.xml"]
    processes = started(path, tmp_path, **given)
    [command] = [each.command for each in processes if each.command[0].endswith("dronegui_operator")]
    assert ("--in-the-air" in command) is is_in_the_air


@by_name(LAUNCH_FILES)
def test_a_launch_file_takes_the_common_arguments_and_uses_all_it_takes(path):
    arguments = declared_in(load(path))
    is_server = path.name.endswith("_server.launch.xml")  # which legacy operators control instead of a controller
    assert arguments.keys() >= (
        COMMON_ARGUMENTS - {"control"} | {"relay", "operate"} if is_server else COMMON_ARGUMENTS
    )
    assert any(name.endswith(("_port", "_file")) for name in arguments.keys() - COMMON_ARGUMENTS)
    assert any(name.endswith("_host") for name in arguments.keys() - COMMON_ARGUMENTS)
    assert all(argument.description for argument in arguments.values())
    included = [path, *(file for file in LAUNCH_FILES if f"/{file.name}" in path.read_text()), *PARTS]
    text = "".join(file.read_text() for file in included)
    assert [name for name in arguments if f"$(var {name})" not in text] == []


@by_name(LAUNCH_FILES)
def test_an_argument_that_would_be_ignored_is_refused(path, tmp_path):
    given = REQUIRED.get(path.name, {})
    words = {"view": "view_host:=0.0.0.0", "record": "bag:=flight"}
    evaluate(path, {**given, **parse_assignments(words.values()), "view": "true", "record": "true"}, tmp_path)
    for needed, word in words.items():
        with pytest.raises(LaunchFileError, match=f"^{word} would be ignored: it needs {needed}:=true$"):
            evaluate(path, {**given, **parse_assignments([word])}, tmp_path)


@by_name(LAUNCH_FILES)
def test_a_launch_file_gives_all_its_nodes_the_user_s_parameters_last(path, tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.touch()
    for process in started(path, tmp_path, params_file=str(mine)):
        files = [file for word, file in pairwise(process.command) if word == "--params-file"]
        assert files[-1:] == [str(mine)] * ("--ros-args" in process.command)
        assert process.environment["DRONE_BRIDGE_PARAMS_FILE"] == str(mine)
        # An earlier entry for all nodes would include theirs, and override those of the launch file.
        assert "-p" not in process.command


@by_name(LAUNCH_FILES)
def test_bridges_and_servers_have_the_namespace_and_the_prefix_of_their_launch(path, tmp_path):
    for process in started(path, tmp_path, namespace="n1", frame_prefix="p1/"):
        if re.match(r"(?!web_)\w+_(bridge|server)", process.label):
            assert "__ns:=/n1" in " ".join(process.command)
            assert "p1/" in str(process.files)


@pytest.mark.parametrize("control", ["true", "false"])
@by_name(LAUNCH_FILES)
def test_a_launch_file_gives_no_node_a_parameter_file_for_other_nodes_only(path, control, tmp_path):
    for process in started(path, tmp_path, control=control, params_file=str(ROOT / "config" / "no_parameters.yaml")):
        name = re.search(r"__node:=(\S+)", " ".join(process.command))
        assert not name or [*unaddressed(process.command, f"/{name[1]}")] == []


@by_name(LAUNCH_FILES)
def test_a_launch_file_leaves_the_environment_of_others_alone(path, tmp_path, monkeypatch):
    monkeypatch.delenv("FASTDDS_DEFAULT_PROFILES_FILE", raising=False)
    around = tmp_path / "around.launch.xml"
    given = "".join(f'<arg name="{name}" value="{value}"/>' for name, value in REQUIRED.get(path.name, {}).items())
    around.write_text(f'<launch><include file="{path}">{given}</include><executable cmd="true" name="other"/></launch>')
    *ours, other = evaluate(around, {}, tmp_path)
    profiles = {process.environment["FASTDDS_DEFAULT_PROFILES_FILE"].rpartition("/")[2] for process in ours}
    assert profiles == {"fastdds.xml"}
    assert "FASTDDS_DEFAULT_PROFILES_FILE" not in other.environment


@by_name(LAUNCH_FILES)
def test_localhost_keeps_the_topics_of_all_nodes_on_this_machine(path, tmp_path, monkeypatch):
    monkeypatch.setenv("FASTDDS_DEFAULT_PROFILES_FILE", str(tmp_path / "of_the_user.xml"))
    for process in started(path, tmp_path, localhost="true"):
        assert Path(process.environment["FASTDDS_DEFAULT_PROFILES_FILE"]).name == "fastdds_loopback.xml"
        assert process.environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "SYSTEM_DEFAULT"


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
def test_a_port_in_use_names_the_argument_that_chooses_another(path, tmp_path, monkeypatch):
    def nodes(**arguments):
        found = started(path, tmp_path, emulate="false", relay="false", **arguments)
        return [each for each in found if re.match(r"(?!web_)\w+_(bridge|server)", each.label)]

    for index, node in enumerate(nodes()):
        for name in (PORT_ARGUMENT, LAUNCHED):
            monkeypatch.setenv(name, node.environment.get(name, ""))
        protocol, kind = re.match(r"(\w+)_(bridge|server)", node.label).groups()
        given = {"parameters": Parameters(port=8000), "_protocol_name": protocol, "is_server": kind == "server"}
        error = LinkInUseError("", 8000, list, "")
        ProtocolNode.advise(SimpleNamespace(**given), error)
        argument = error.argument
        assert argument.endswith(":="), "not its parameter"
        other = nodes(**{argument.removesuffix(":="): "12345"})[index]
        assert "12345" in f"{other.files}{other.command}"


@pytest.mark.parametrize("role", ["listen", "connect"])
def test_only_an_end_that_listens_may_connect_instead(role):
    error, given = LinkInUseError("", 8000, list, ""), Parameters(port=8000, role=role)
    ProtocolNode.advise(SimpleNamespace(parameters=given, _protocol_name="robot", is_server=False), error)
    assert ("role: connect" in error.argument) == (role == "listen")


@by_name(LAUNCH_FILES)
def test_a_bridge_without_a_link_names_the_argument_that_changes_its_peer(path, tmp_path, monkeypatch):
    bridges = [each for each in started(path, tmp_path, emulate="false", relay="false") if "_bridge" in each.label]
    for index, bridge in enumerate(bridges):
        if bridge.label.startswith("web_bridge"):
            continue
        for name in (HOST_ARGUMENT, LAUNCHED):
            monkeypatch.setenv(name, bridge.environment.get(name, ""))
        argument = re.search(r"(\w+):=ADDRESS", link_advice(bridge.label.partition("_bridge")[0], "its peer"))[1]
        other = [
            each
            for each in started(path, tmp_path, emulate="false", relay="false", **{argument: "192.0.2.9"})
            if "_bridge" in each.label
        ][index]
        assert "192.0.2.9" in str(other.files)


@by_name(LAUNCH_FILES)
def test_a_launch_file_starts_programs_of_the_package_alone(path):
    """With any python3 on the PATH."""
    for executable in ElementTree.parse(path).iter("executable"):
        started = re.match(r"\$\(exec-in-pkg (\w+) drone_bridge\) ", executable.get("cmd"))
        assert started[1] in EXECUTABLES


@by_name([*LAUNCH_FILES, *PARTS])
def test_observers_have_names_that_servers_recognize(path):
    """Any other subscriber to commands would count as a vehicle."""
    for element in ElementTree.parse(path).iter("node"):
        if element.get("exec") in ("recorder", "web_bridge"):
            assert element.get("name", element.get("exec")) in OBSERVERS


@by_name(LAUNCH_FILES)
def test_bridges_and_servers_respawn_and_emulators_end_the_launch(path):
    """No process does both: ros2 launch would restart the one that has ended it."""
    for element in ElementTree.parse(path).iter():
        if element.tag not in ("node", "executable"):
            continue
        name = element.get("exec") or element.get("cmd").split()[1]
        comes_back = (element.get("respawn"), element.get("respawn_delay")) == ("true", "0.5")
        assert comes_back == bool(re.fullmatch(r"\w+_(bridge|server)", name)), name
        assert (f" {ENDS_LAUNCH} " in element.get("cmd", "")) == bool(re.fullmatch(r"\w+_(emulator|operator)", name))


@by_name(LAUNCH_FILES)
def test_a_launch_file_that_shows_a_vehicle_publishes_its_model(path, tmp_path):
    for view in ("true", "false"):
        names = {Path(process.command[0]).name for process in started(path, tmp_path, view=view, record="false")}
        assert {"vehicle_model", "web_bridge"} & names == ({"vehicle_model", "web_bridge"} if view == "true" else set())


@by_name(LAUNCH_FILES)
def test_a_value_in_a_variable_s_name_is_one_of_the_choices(path):
    root = ElementTree.parse(path).getroot()
    choices = {
        arg.get("name"): {choice.get("value") for choice in arg.findall("choice")} for arg in root.findall("arg")
    }
    variables = {element.get("name") for element in root.findall("let")}
    for prefix, argument in re.findall(r"\$\(var (\w+)\$\(var (\w+)\)\)", path.read_text()):
        assert choices[argument], f"{argument} takes anything"
        assert {prefix + value for value in choices[argument]} <= variables


@pytest.mark.parametrize("model", ["drone", "rover", "submarine"])
def test_the_controller_for_goals_of_each_model_is_installed(model, tmp_path):
    (file,) = [path for path in LAUNCH_FILES if path.name == "vehicle.launch.xml"]
    processes = started(file, tmp_path, robot_model=model, control="false")
    (controller,) = [each for each in processes if each.label.rpartition("-")[0].endswith("_controller")]
    assert Path(controller.command[0]).is_file()


STARTING = ("node", "executable", "include")


def test_the_common_part_checks_for_rviz2_before_it_starts_any_process():
    """Otherwise ros2 launch fails midway, and leaves processes running."""
    elements = list(ElementTree.parse(ROOT / "launch" / "parts" / "common.launch.xml").getroot().iter())
    (looking,) = (element for element in elements if "find-pkg-prefix rviz2" in element.get("value", ""))
    assert looking.get("if") == "$(var rviz)"
    assert elements.index(looking) < min(elements.index(each) for each in elements if each.tag in STARTING)


@by_name(LAUNCH_FILES)
def test_a_launch_file_begins_with_the_common_part(path):
    first = next(each for each in ElementTree.parse(path).getroot().iter() if each.tag in STARTING)
    assert first.get("file", "").endswith(("/parts/common.launch.xml", "/vehicle.launch.xml"))  # which begins with it


@by_name(LAUNCH_FILES)
def test_the_default_parameter_file_overrides_no_launch_argument(path):
    """params_file has precedence: an active value in its default would disable an argument."""
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


# Pages.

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(path):
    """Anchors of a page, generated from its headings as on GitHub."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@by_name(
    [*PAGES, *(ROOT / "docs" / "reference").glob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "measure" / "README.md"]
)
def test_the_links_of_a_page_have_targets(path):
    for file, anchor in LINK.findall(path.read_text()):
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), file
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{file}#{anchor}"
