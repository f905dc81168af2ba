# SPDX-License-Identifier: Apache-2.0
"""Refusals of the runner, with file and line, before it starts anything."""

import re
from pathlib import Path

import pytest
from launch_package import make_package
from repository import ROOT

from drone_bridge.tools.cli import main
from drone_bridge.tools.launch import substitutions
from drone_bridge.tools.launch.arguments import parse_assignments
from drone_bridge.tools.launch.command import file_of_package
from drone_bridge.tools.launch.evaluate import evaluate
from drone_bridge.tools.launch.parse import GROUP_TAGS, LaunchFileError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(make_package(tmp_path / "prefix")))
    return tmp_path


def write(folder, body, name="some.launch.xml"):
    """Write a launch file whose body begins in line 3."""
    path = folder / name
    path.write_text(f"<!-- a test -->\n<launch>\n{body}\n</launch>\n")
    return path


NODE = '<node pkg="launch_test" exec="show"'


@pytest.mark.parametrize(
    ("line", "body", "sentence"),
    [
        (3, '<timer period="1"/>', r"<timer> in <launch> is not supported by this runner; it supports arg, .*"),
        (3, '<grup/>', r"<grup> in <launch> .*, did you mean 'group'\?; .*"),
        (4, '<group>\n<log message="x"/></group>', r"<log> in <group> is not supported .*"),
        (3, f'{NODE}><child/></node>', r"<child> in <node> .*; it supports param, remap"),
        (3, '<let name="a" value="b"><arg name="a"/></let>', r"<arg> in <let> .*; it supports none"),
        (3, f'{NODE} nmae="x"/>', r"the attribute 'nmae' of <node> is not supported .*, did you mean 'name'\?; .*"),
        (3, f'{NODE} launch-prefix="gdb"/>', r"the attribute 'launch-prefix' of <node> is not supported .*"),
        (4, f'{NODE}>\n<param name="a" value="1" if="true"/></node>', r"the attribute 'if' of <param> .*"),
        (3, "<executable/>", r"<executable> needs the attribute 'cmd'"),
        (3, "<arg/>", r"<arg> needs the attribute 'name'"),
        (3, '<let name="a" value="b" if="1" unless="1"/>', r"<let> has both 'if' and 'unless'; use one of them"),
        (3, "some text", r"text in <launch> means nothing: 'some text'"),
        (3, '<let name="a" value="$(eval 1)"/>', r"the substitution \$\(eval \.\.\.\) is not supported .*"),
        (3, '<let name="a" value="$(evn X)"/>', r"the .*, did you mean 'env'\?; .*"),
        (3, '<let name="a" value="$(env)"/>', r"\$\(env \.\.\.\) takes 1 to 2 arguments, not 0"),
        (3, '<let name="a" value="$(var x"/>', r"'\$\(var x' is not a substitution: .*"),
        (3, '<let name="a" value="$(var x)"/>', r"there is no launch argument or variable 'x' here"),
        (3, '<let name="a" value="$(env LAUNCH_TEST_X)"/>', r"the environment variable 'LAUNCH_TEST_X' is not set, .*"),
        (3, '<let name="a" value="$(find-pkg-share nope)"/>', r"the package 'nope' is not installed: .*"),
        (3, '<let name="a" value="b" if="perhaps"/>', r"if: 'perhaps' is none of true, 1, false and 0"),
        (3, '<node pkg="launch_test" exec="shwo"/>', r".* no executable 'shwo', did you mean 'show'\?; in .*: show"),
        (3, '<executable cmd="no_such_program"/>', r"there is no executable 'no_such_program'"),
        (3, '<executable cmd="show \'a $(dirname)"/>', r"a quote in 'show 'a \$\(dirname\)' is not closed"),
        (3, '<executable cmd="true" on_exit="shutdown"/>', r"the attribute 'on_exit' of <executable> is not .*"),
        (3, '<executable cmd="true" respawn="often"/>', r"'often' is neither true nor false"),
        (3, f'{NODE} namespace="a//b"/>', r"'/a//b' is not a namespace: .*"),
        (3, '<push_ros_namespace namespace="1a"/>', r"'/1a' is not a namespace: letters, .*, no digit first"),
        (4, f'{NODE}>\n<param name="a" value="x" type="int"/></node>', r"'x' is not a whole number"),
        (4, f'{NODE}>\n<param name="a" value="1"/></node>', r"<param> needs a 'type', one of str, .*"),
        (3, '<executable cmd="true" respawn_delay="often"/>', r"could not convert string to float: 'often'"),
        (4, f'{NODE}>\n<param name="a" from="b"/></node>', r"<param> takes 'name', 'value' and 'type', .*"),
        (4, f'{NODE}>\n<param from="/no/such.yaml"/></node>', r"there is no parameter file /no/such.yaml"),
        (3, '<arg name="a" default="b"><choice value="c"/><choice value="d"/></arg>', r"a:=b is none of c, d"),
        (3, '<arg name="a" description="what for"/>', r"the launch argument 'a' \(what for\) must be given"),
        (4, '<group if="true">\n<arg name="a"/></group>', r"the launch argument 'a' must be given"),
        (3, '<include file="$(dirname)/other.launch.py"/>', r".*/other.launch.py: this runner includes XML .* only"),
        (3, f"{NODE}><param from='/dev/zero'/></node>", r"there is no parameter file /dev/zero"),
        (6, "\n<group>\n", r"this is not well-formed XML: mismatched tag"),
    ],
)  # fmt: skip
def test_is_refused(folder, line, body, sentence):
    path = write(folder, body)
    with pytest.raises(LaunchFileError) as refusal:
        evaluate(path, {}, folder)
    assert re.fullmatch(f"{re.escape(str(path))}:{line}: {sentence}", str(refusal.value)), refusal.value


def test_mistake_in_an_included_file_is_located_there(folder):
    inner = write(folder, "<nope/>", name="inner.launch.xml")
    outer = write(folder, '<include file="$(dirname)/inner.launch.xml"/>')
    with pytest.raises(LaunchFileError, match=f"^{re.escape(str(inner))}:3: <nope> "):
        evaluate(outer, {}, folder)


def test_another_root_is_refused(folder):
    path = folder / "other.xml"
    path.write_text("\n<robot/>")
    with pytest.raises(
        LaunchFileError, match=r"other.xml:2: <robot> at the top is not supported .*; it supports launch"
    ):
        evaluate(path, {}, folder)


def test_a_file_that_includes_itself_is_refused(folder, capfd):
    body = '<include file="$(dirname)/some.launch.xml"/>'
    assert main(["launch", str(write(folder, body))]) == 2
    assert "nested too deeply" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a:\n  b: [1\n", ": this is not YAML: while parsing a flow sequence in"),
        ("just text", "holds no parameters"),
        ("/**:\n  port: 1\n  ros__parameters: {rate: 2.0}\n", ": 'port' stands above ros__parameters: write 'node: "),
        ("robot:\n  robot_bridge:\n    ros__parameter: {rate: 2.0}\n", ": 'rate' stands above ros__parameters"),
        ("[port]", "holds no parameters"),
    ],
)
def test_a_parameter_file_that_no_node_could_read_is_refused(folder, capfd, text, sentence):
    parameters = folder / "mine.yaml"
    parameters.write_text(text)
    path = write(folder, f'{NODE}>\n<param from="{parameters}"/></node>')
    assert main(["launch", str(path)]) == 2
    printed = capfd.readouterr().err
    assert f"{path}:4: {parameters}" in printed
    assert sentence in printed
    assert "Traceback" not in printed


def test_a_parameter_that_no_node_has_is_named(tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text(
        "/**:\n  ros__parameters: {comand_timeout: 1.0, use_sim_time: false, port: 5}\n"
        "/**/robot_bridge:\n  ros__parameters: {wheel_separation: 0.5, qos_overrides: {/tf: {publisher: {depth: 9}}}}\n"
        "elsewhere:\n  rover_controller:\n    ros__parameters: {pattern: square}\n"
    )
    path, said = file_of_package("drone_bridge", "robot"), []
    evaluate(path, {"params_file": str(mine), "control": "true", "namespace": "alpha"}, tmp_path, said.append)
    assert len(said) == 2, said
    assert "'comand_timeout', did you mean 'command_timeout'?" in said[0]
    assert "'/elsewhere/rover_controller' names no node" in said[1]
    assert "/alpha/robot_bridge, " in said[1]
    evaluate(path, {"control": "true", "record": "true"}, tmp_path, pytest.fail)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["robot.launch.xml", "robot_host=1.2.3.4"], "is not a launch argument; did you mean 'robot_host:=1.2.3.4'?"),
        (["robot", "robot_host=1.2.3.4"], "did you mean 'robot_host:=1.2.3.4'?"),
        (["robto"], "did you mean 'robot'?"),
    ],
)
def test_a_similar_name_is_suggested(capfd, words, sentence):
    assert main(["launch", *words]) == 2
    assert sentence in capfd.readouterr().err


@pytest.mark.parametrize("words", [["robot"], ["drone_bridge", "robot"], ["robot.launch.xml"]])
def test_a_launch_file_needs_no_ending(capfd, words):
    assert main(["launch", "--show-args", *words]) == 0
    assert "'robot_host':" in capfd.readouterr().out


def test_unknown_argument_lists_those_declared(folder):
    path = write(folder, '<arg name="host" default="a"/>\n<group if="false"><arg name="port" default="1"/></group>')
    with pytest.raises(LaunchFileError, match=r"no launch argument 'prot', did you mean 'port'\?; it takes host, port"):
        evaluate(path, {"prot": "1"}, folder)
    evaluate(path, {"port": "2"}, folder)


def test_arguments_of_included_files_may_be_given(folder):
    write(folder, '<arg name="depth" default="1"/>', name="inner.launch.xml")
    by_name = write(folder, '<include file="$(dirname)/inner.launch.xml" if="false"/>', name="by_name.launch.xml")
    evaluate(by_name, {"depth": "2"}, folder)
    body = '<arg name="which" default="inner"/><include file="$(dirname)/$(var which).launch.xml"/>'
    by_argument = write(folder, body, name="by_argument.launch.xml")
    evaluate(by_argument, {"depth": "2"}, folder)
    with pytest.raises(LaunchFileError, match="no launch argument 'dept', did you mean 'depth'"):
        evaluate(by_argument, {"dept": "2"}, folder)


@pytest.mark.parametrize("word", ["host", "host=", ":=1", "host:="])
def test_malformed_arguments_are_refused(word):
    with pytest.raises(LaunchFileError, match="write name:=value"):
        parse_assignments([word])


def test_last_value_of_an_argument_counts():
    assert parse_assignments(["a:=1", "b:=x:=y", "a:=2"]) == {"a": "2", "b": "x:=y"}
    assert parse_assignments(["bag:=~/a", "host:=~"]) == {"bag": str(Path.home() / "a"), "host": str(Path.home())}


def test_command_says_what_is_wrong_and_fails(folder, capfd):
    path = write(folder, '<executable cmd="touch started"/>\n<timer period="1"/>')
    assert main(["launch", str(path)]) == 2
    output, errors = capfd.readouterr()
    assert errors.startswith(f"drone-bridge launch: {path}:4: <timer> in <launch> ")
    assert not output
    assert not (folder / "started").exists()


def test_a_required_argument_of_an_included_file_is_named(folder):
    path = write(folder, '<include file="$(find-pkg-share launch_test)/included.launch.xml"/>')
    sentence = r"included.launch.xml:3: the launch argument 'needed' \(must be passed\) must be given"
    with pytest.raises(LaunchFileError, match=sentence):
        evaluate(path, {}, folder)


def test_arguments_are_shown(folder, capfd):
    body = '<arg name="a" default="$(env X)" description="what for"/>\n<arg name="b"><choice value="c"/></arg>'
    path = write(folder, body + '\n<include file="$(find-pkg-share launch_test)/included.launch.xml" if="$(var a)"/>')
    assert main(["launch", "--show-args", str(path)]) == 0
    shown = capfd.readouterr().out
    assert re.search(r"'a':\n +what for\n +\(default: '\$\(env X\)'\)\n", shown)
    assert re.search(r"'b':\n +no description\n +\(one of: c\)\n +\(required\)\n", shown)
    assert re.search(r"'needed':\n +must be passed", shown)


def test_file_in_a_package_is_found(folder, capfd):
    assert main(["launch", "launch_test", "included.launch.xml", "--show-args"]) == 0
    assert "'needed':" in capfd.readouterr().out


def test_the_page_lists_the_supported_tags():
    page = (ROOT / "docs" / "launch.md").read_text()
    section = page.partition("## What `drone-bridge launch` supports")[2].partition("Tags: ")[2]
    tags, _, rest = section.partition(". Substitutions: ")
    assert tags == ", ".join(f"`{tag}`" for tag in sorted(GROUP_TAGS))
    assert rest.startswith(", ".join(f"`$({name})`" for name in sorted(substitutions.KNOWN)) + ". ")


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("view:=yes", "view:=yes must be true or false"),
        ("testbed_port:=abc", "testbed_port:=abc: 'abc' is not a whole number"),
        ("testbed_port:=99999", "testbed_port:=99999: port must be from 0 to 65535, not 99999"),
        ("view_port:=-1", "view_port:=-1: port must be from 0 to 65535, not -1"),
    ],
)
@pytest.mark.parametrize("file", ["testbed", "all"])
def test_a_value_that_can_t_be_names_its_argument(file, argument, sentence, capsys):
    assert main(["launch", f"{file}.launch.xml", "view:=true", argument]) == 2
    assert capsys.readouterr().err.endswith(f": {sentence}\n")


@pytest.mark.parametrize(
    ("words", "meant"), [(["lanch"], "launch"), (["emulate", "testbd"], "testbed"), (["demo", "lnding"], "landing")]
)
def test_an_unknown_subcommand_suggests_one(words, meant, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert f"there is no '{words[-1]}', did you mean '{meant}'?" in capsys.readouterr().err
