# SPDX-License-Identifier: Apache-2.0
"""Parameters in launch files and parameter files: those that nodes declare, with their defaults."""

import re
from xml.etree import ElementTree

import yaml
from composition import launch
from shipped import LAUNCH_FILES, PARTS, ROOT, by_name, declared, parameters_in

PARAMETER_FILES = sorted(path for path in (ROOT / "config").glob("*.yaml") if path.name != "no_parameters.yaml")
# Parameters that rclpy declares in each node.
OF_RCLPY = re.compile(r"use_sim_time|start_type_description_service|qos_overrides\..*")
TYPES = {"bool": bool, "int": int, "float": float, "str": str, "yaml": list}


def with_defaults(text, defaults):
    """Return a text of a launch file with the defaults of its arguments, and its variables."""
    while (filled := re.sub(r"\$\(var (\w+)\)", lambda match: defaults[match[1]], text)) != text:
        text = filled
    return text


@by_name([*LAUNCH_FILES, *PARTS])
def test_a_launch_file_sets_existing_parameters(path):
    root = ElementTree.parse(path).getroot()
    defaults = {each.get("name"): each.get("value") or "" for each in root.iter("let")}
    defaults |= {each.get("name"): each.get("default") or "" for each in root.iter("arg")}
    for node in root.iter("node"):
        if node.get("pkg") != "drone_bridge":
            continue
        parameters = declared(with_defaults(node.get("exec"), defaults))
        for parameter in node.findall("param"):
            if OF_RCLPY.fullmatch(parameter.get("name", "")):
                continue
            if "name" in parameter.attrib:
                name = parameter.get("name")
                assert name in parameters, f"{node.get('exec')} has no parameter {name}"
                # Without its type, text that looks like a number would become a number.
                assert TYPES[parameter.get("type")] is type(parameters[name].default), f"{name} of {node.get('exec')}"
            else:
                file = re.fullmatch(
                    r"\$\(find-pkg-share drone_bridge\)/(config/\w+\.yaml)|\$\(var \w+\)", parameter.get("from")
                )
                assert file
                assert file[1] is None or (ROOT / file[1]).is_file()


@by_name(LAUNCH_FILES)
def test_a_bridge_by_itself_makes_the_choices_of_its_launch_file(path):
    root = ElementTree.parse(path).getroot()
    defaults = {each.get("name"): each.get("default") or "" for each in root.iter("arg")}
    for node in root.iter("node"):
        if node.get("exec") != f"{path.name.partition('.')[0]}_bridge":
            continue
        for parameter in node.findall("param[@name]"):
            declaration = declared(node.get("exec")).get(parameter.get("name"))
            if declaration and declaration.choices:
                value = with_defaults(parameter.get("value"), defaults)
                assert value in ("", declaration.default), f"{declaration.name} is {value}"


# Parameter files.

COMMENTED_OUT = re.compile(r"^(\s*)# (?=[a-z][\w.]*: )", re.MULTILINE)


@by_name(PARAMETER_FILES)
def test_a_parameter_file_names_existing_parameters_and_their_defaults(path):
    text = path.read_text()
    given = parameters_in(text)
    for node, parameters in parameters_in(COMMENTED_OUT.sub(r"\1", text)).items():
        declarations = declared(node)
        for name, value in parameters.items():
            assert name in declarations, f"{node} has no parameter {name}"
            default = declarations[name].default
            if name in given[node]:
                assert type(value) is type(default), f"{name}: {value!r} has another type than {default!r}"
            else:
                assert (value, type(value)) == (default, type(default)), f"{name} is commented out, so the default"


# A user's parameter file for a launch file, as the node receives it.

OF_USER = {
    "/**": {"host": "127.0.0.77"},
    "/**/robot_bridge": {"port": 2560},
    "/r1/robot_bridge": {"max_wheel_speed": 0.25},
}


def test_parameters_of_the_user_win_however_they_name_the_node(ros, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump({key: {"ros__parameters": given} for key, given in OF_USER.items()}))
    with launch("robot.launch.xml", params_file=file, robot_host="127.0.0.9", robot_port=2561, namespace="r1"):
        values = ros.parameters("/r1/robot_bridge")
    assert {"host": "127.0.0.77", "port": 2560, "max_wheel_speed": 0.25}.items() <= values.items()
