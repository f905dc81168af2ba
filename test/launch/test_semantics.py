# SPDX-License-Identifier: Apache-2.0
"""Meaning of launch files for the runner.

The expected processes are those of `ros2 launch` for these files, except an empty argument for white space.
"""

import shlex
from pathlib import Path

import pytest
import yaml
from launch_package import LAUNCH_FILES, make_package

from drone_bridge.tools.launch import substitutions
from drone_bridge.tools.launch.evaluate import evaluate
from drone_bridge.tools.launch.parameters import typed_value
from drone_bridge.tools.launch.substitutions import Scope, SubstitutionError

PARAMETERS = Path("/parameters")


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(make_package(tmp_path)))
    return tmp_path


def run(name, **given):
    return evaluate(LAUNCH_FILES / f"{name}.launch.xml", given, PARAMETERS)


def arguments(processes):
    """Label and arguments of each process, as typed."""
    return [(process.label, shlex.join(process.command[1:])) for process in processes]


def test_names_and_namespaces(prefix):
    processes = run("names")
    assert {process.command[0] for process in processes} == {f"{prefix}/lib/launch_test/show"}
    assert arguments(processes) == [
        ("show-1", "--ros-args"),
        ("show-2", "--ros-args -r __node:=named"),
        ("show-3", "--ros-args -r __node:=named -r __ns:=/below"),
        ("show-4", "--ros-args -r __node:=named -r __ns:=/absolute"),
        ("show-5", "--ros-args -r __ns:=/"),
        ("show-6", "--ros-args -r __node:=other"),
        ("show-7", "--ros-args -r __node:=a -r __ns:=/outer"),
        ("show-8", "--ros-args -r __node:=b -r __ns:=/outer/inner"),
        ("show-9", "--ros-args -r __node:=c -r __ns:=/outer/inner/own"),
        ("show-10", "--ros-args -r __node:=d -r __ns:=/top"),
        ("show-11", "/outer/inner --ros-args -r __ns:=/outer/inner"),
        ("show-12", "--ros-args -r __node:=e -r __ns:=/outer"),
        ("show-13", "--ros-args -r __node:=f -r __ns:=/"),
        ("show-14", "--ros-args -r __node:=g -r __ns:=/own"),
        ("show-15", "--ros-args -r __node:=h -r __ns:=/leaks"),
    ]


def test_command_lines(prefix):
    processes = run("commands")
    assert arguments(processes) == [
        ("show-1", "--one 1 'a b' '--two=two words' 'two words' last --ros-args"),
        ("show-2", "'two words' 'two words' --ros-args"),
        ("show-3", "'two wordstwo wordsx' y --ros-args"),
        ("show-4", "--ros-args"),
        ("show-5", "'' end --ros-args"),
        ("show-6", "a b '' --ros-args"),
        ("show-7", "'a b' 'c de' --ros-args"),
        ("show-8", "before --ros-args --log-level debug --ros-args -r __node:=x"),
        ("show-9", f"{prefix}/share/launch_test {prefix} --ros-args"),
        ("shown-10", "a 'b c' 'two words'"),
        ("python3-11", f"{prefix}/lib/launch_test/show {LAUNCH_FILES}/x"),
    ]


def test_scopes_of_variables_and_environment(prefix):
    processes = run("scopes")
    included, installed = LAUNCH_FILES / "included", prefix / "share" / "launch_test"
    assert [line.removesuffix(" --ros-args") for _, line in arguments(processes)] == [
        "first 1 left-default",
        "group 2 inside g",
        "after 1 left-default unset",
        "gone",
        "conditions 3",
        f"included '3 from outside' 'its default' {included} left no",
        f"leaked '3 from outside' 'its default' leaks {included}",
        f"included again 'set outside' {installed} left passes",
        "grouped again passes",
        "end '3 from outside' none",
    ]
    environments = [
        {name[-1]: value for name, value in process.environment.items() if name.startswith("LAUNCH_TEST_")}
        for process in processes
    ]
    assert environments == [
        {"A": "left-default"},
        {"A": "inside", "B": "inside"},
        *[{"A": "left-default"}] * 3,
        *[{"A": "left-default", "K": "leaks"}] * 5,
    ]


def test_arguments_reach_defaults_and_conditions(prefix):
    first = arguments(run("scopes", chosen="right"))[0]
    assert first == ("show-1", "first 1 right-default --ros-args")


def test_parameter_files(prefix):
    typed, only_a_name, pushed = run("parameters")
    parameters = {}
    for text in typed.files.values():
        parameters |= yaml.safe_load(text)["/typed"]["ros__parameters"]
    assert parameters == {
        "integer": 3,
        "text": "12",
        "real": 5.0,
        "truth": True,
        "nothing": "",
        "sentence": "see some text",
        "escaped": "a$(b)",
        "list": ["a", "b c"],
        "list_from_text": [1, 2],
        "name_5": "x",
        "outer.inner": [True, False],
    }
    assert typed.command[-2:] == ("--params-file", str(list(typed.files)[-1]))

    first, second = only_a_name.files
    given = LAUNCH_FILES / "parameters.yaml"
    files = [word for word in only_a_name.command if word.endswith(".yaml")]
    assert files == [str(path) for path in (first, given, second)]
    assert only_a_name.files[first] == "/**:\n  ros__parameters:\n    wild: 1\n"

    assert list(pushed.files.values()) == ["/ns/pushed:\n  ros__parameters:\n    known: 1\n"]
    assert pushed.command[-4:] == ("-r", "cmd_vel:=/other/cmd_vel", "-r", "~/a:=some text")
    assert len({path for process in (typed, only_a_name, pushed) for path in process.files}) == 14


SCOPE = Scope({"a": "1", "b": "x y", "list": "[1, 2]"}, {"E": "env"}, Path("/here"))


@pytest.mark.parametrize(
    ("text", "performed"),
    [
        ("", ""),
        ("plain 'text' with (parentheses) and $ signs", "plain 'text' with (parentheses) and $ signs"),
        ("$(var a)$(var b)", "1x y"),
        ("$(var $(var z a))", "1"),
        ("$(env U 'd e')|$(env U \"d e\")|$(env U '')|$(env E)", "d e|d e||env"),
        (r"\$(var a)", "$(var a)"),
        (r"\\$(var a)", r"\$(var a)"),
        (r"a\b\\c", r"ab\c"),
        (r"$(env U \(x\))", "(x)"),
        ("$(env U $5)", "$5"),
        ("$(dirname)/f", "/here/f"),
    ],
)
def test_substitutions(text, performed):
    assert substitutions.perform(text, SCOPE) == performed


@pytest.mark.parametrize(
    "text",
    ["$(var)", "$(var a b c)", "$(var  a)", "$(var a )", "$( var a)", "$(var a", "$(nope a)", "$(env U 'a)", "$()"],
)
def test_invalid_substitutions(text):
    with pytest.raises(SubstitutionError):
        substitutions.perform(text, SCOPE)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("null", "yaml"),
        ("{a: 1}", "yaml"),
        ("2024-01-01", "yaml"),
        ("2026-02-30", "yaml"),
        ("[1, a]", "yaml"),
        ("[[1]]", "yaml"),
        ("[", "yaml"),
        ("x", "int"),
        ("1.5", "int"),
        ("perhaps", "bool"),
        ("1", "integer"),
    ],
)
def test_invalid_parameters(text, wanted):
    with pytest.raises(SubstitutionError):
        typed_value(text, wanted)
