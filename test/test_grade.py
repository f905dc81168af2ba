# SPDX-License-Identifier: Apache-2.0
"""drone-bridge grade: three kinds of submissions, hostile ones, and what is written of them."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from processes import executable

from drone_bridge.kind import kinds, load
from drone_bridge.tools.grading import confine
from drone_bridge.tools.grading.command import main
from drone_bridge.tools.grading.measures import Flown, measure
from drone_bridge.tools.grading.run import judge
from drone_bridge.tools.grading.task import Mark, TaskError, read_task

ROOT = Path(__file__).parent.parent
LAB = ROOT / "docs" / "labs" / "landing"
confined = pytest.mark.skipif(not confine.is_possible(), reason="this system allows no user namespaces")


def task_file(folder, **changes):
    lines = {
        "vehicle": "landing",
        "submission": "class",
        "marks": [{"metric": "reached", "points": 10, "full": 1}],
        "limits": {"silence": 60, "memory": 300, "output": 100},
        **changes,
    }
    path = folder / "task.yaml"
    path.write_text(json.dumps(lines))  # which YAML is a superset of
    return path


def grade(task, output, *command):
    status = main([str(task), "--output", str(output), "--", *map(str, command)])
    results = {int(path.parent.name[4:]): json.loads(path.read_text()) for path in output.glob("run_*/result.json")}
    return status, results


def test_a_good_class_is_marked_and_the_same_again(tmp_path, capsys):
    task = tmp_path / "task.yaml"
    task.write_text((LAB / "task.yaml").read_text().replace("[11, 12, 13, 14, 15]", "[11, 12]"))
    status, results = grade(task, tmp_path / "one", LAB / "solution.py:Pilot")
    assert status == 0
    assert all(result["metrics"]["reached"] == 1.0 and not result["remarks"] for result in results.values())
    table = capsys.readouterr().out
    assert "of 100 (2 of 2 runs count)" in table
    told = json.loads((tmp_path / "one" / "results.json").read_text())
    assert told["score"] == pytest.approx(sum(test["score"] for test in told["tests"]), abs=0.02)
    assert 60 < told["score"] < 100
    assert "seed" not in json.dumps(told)  # students read it
    suite = ElementTree.parse(tmp_path / "one" / "junit.xml").getroot()
    assert len(suite.findall("testcase")) == 6
    page = (tmp_path / "one" / "run_11.html").read_text()
    assert "Plotly.newPlot" in page
    assert "Land on a rover" in page
    again = judge(read_task(task), 11, [f"{LAB}/solution.py:Pilot"], tmp_path / "two" / "run_11", is_confined=True)
    assert (again.points, again.metrics) == (results[11]["points"], results[11]["metrics"])


HOSTILE = """
import os, pathlib, socket, sys, time
HERE = pathlib.Path(__file__).parent
class Crashes:
    def __init__(self):
        for path in (HERE / "written", "/tmp/written_by_a_submission"):
            try:
                pathlib.Path(path).write_text("x")
            except OSError as error:
                print(error)
        print("task", repr((HERE / "task.yaml").read_text()), "marks", os.listdir(HERE / "marks"))
        print("processes", sorted(int(name) for name in os.listdir("/proc") if name.isdigit()))
        try:
            socket.create_connection(("192.0.2.1", 53), 5)
        except OSError as error:
            print("network", error)
        self.steps = 0
    def act(self, seen):
        self.steps += 1
        if self.steps > 25:
            raise ValueError("I am ill")
        return [0, 0, 0, 0]
class Hangs:
    def act(self, seen):
        time.sleep(1000)
class Floods:
    def __init__(self):
        while True:
            print("x" * 1000)
class Forks:
    def __init__(self):
        for _ in range(60):  # enough to be seen, too few to hurt: root's own processes are not limited by the kernel
            if os.fork() == 0:
                time.sleep(1000)
        time.sleep(1000)
class Opens:
    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 5000))
        self.socket.listen()
        time.sleep(1000)
class Grows:
    def __init__(self):
        self.memory = []
        while True:
            self.memory.append(bytes(range(256)) * 40_000)
            time.sleep(0.01)
class Answers:
    def act(self, seen):
        return [float("nan")] * 4
"""
SENTENCES = {
    "Crashes": "It ended with exit status 1: ValueError: I am ill",
    "Hangs": "It has not answered for 3 s.",
    "Floods": "It wrote more than 100 KiB of output.",
    "Forks": "It had more than 32 processes.",
    "Opens": "It opened port 5000, which is not the vehicle's.",
    "Grows": "It ended with exit status 1: MemoryError",
    "Answers": "It answered with [nan, nan, nan, nan], and has to answer with 4 finite numbers.",
}


@confined
def test_hostile_classes_get_a_sentence_and_reach_nothing(tmp_path):
    (tmp_path / "pilot.py").write_text(HOSTILE)
    task = read_task(task_file(tmp_path))
    (tmp_path / "hasty").mkdir()
    hasty = read_task(task_file(tmp_path / "hasty", limits={"silence": 3}))

    def run(name):
        folder = tmp_path / "marks" / name
        flown = hasty if name == "Hangs" else task
        return judge(flown, 3, [f"{tmp_path}/pilot.py:{name}"], folder, is_confined=True)

    with ThreadPoolExecutor(2) as pool:
        results = dict(zip(SENTENCES, pool.map(run, SENTENCES), strict=True))
    for name, result in results.items():
        assert result.counts, name
        assert SENTENCES[name] in result.remarks, (name, result)
        assert result.points == [0.0]
    crashed = results["Crashes"]
    assert any(
        remark.startswith("It tried to write outside of its folder: [Errno 30]") for remark in crashed.remarks
    ), crashed.remarks
    assert not (tmp_path / "written").exists()
    assert "task '' marks []" in crashed.output
    assert "processes [1, 2]" in crashed.output
    assert "network [Errno 101] Network is unreachable" in crashed.output
    assert crashed.metrics["length"] > 0  # its marks so far


def test_a_program_is_flown_over_the_wire(tmp_path):
    task = task_file(
        tmp_path,
        vehicle="testbed",
        submission="program",
        clock="simulated",
        options={"once": True, "layout": "pose", "width": 16, "height": 16, "rate": 20.0},
        time_limit=6,
        spheres=[[0, 1, 0, 0.3], [0, 2, 0, 0.3]],
        path=[[0, 0, 0], [0, 4, 0]],
        marks=[
            {"metric": "spheres", "points": 8, "full": 2, "none": 0},
            {"metric": "path_error", "points": 2, "full": 0.2},
        ],
    )
    operator = [executable("testbed_operator"), "--port", "{port}", "--layout", "pose"]
    status, results = grade(task, tmp_path / "marks", *operator, "--plan", "3s forward 0.5, 1s")
    assert (status, results[0]["remarks"], results[0]["points"]) == (0, [], [4.0, 2])
    assert results[0]["metrics"]["reached"] == 0.0
    status, results = grade(task, tmp_path / "marks", executable("testbed_operator"), "--plan", "loop")
    assert results[0]["remarks"][0].startswith("It ended with exit status 2: ")


def test_a_node_is_flown_through_ros_with_the_report_of_its_bag(tmp_path):
    task = tmp_path / "task.yaml"
    text = (ROOT / "examples" / "grade.yaml").read_text().replace("[1, 2, 3, 4, 5]", "[1]")
    task.write_text(text + "  - {metric: /cmd_rates, points: 1, full: 50}\n")
    controller = [executable("drone_controller"), "--ros-args", "-p", "behaviour:=seek_target"]
    status, results = grade(task, tmp_path / "marks", *controller)
    assert (status, results[1]["points"]) == (0, [60, 40.0, 1]), results
    assert "run_1/report.html" in (tmp_path / "marks" / "run_1.html").read_text()
    assert (tmp_path / "marks" / "run_1" / "report.html").exists()


def flown(kind, *places):
    return Flown([0.1 * number for number in range(len(places))], [*places])


def test_metrics_are_those_of_the_way(tmp_path):
    file = task_file(
        tmp_path,
        spheres=[[1, 0, 0, 0.2], [2, 0, 0, 0.2]],
        obstacles=[[3, 0.3, 0, 0.4]],
        path=[[0, 0, 0], [4, 0, 0]],
    )
    task = read_task(file)
    there = [(0.1 * step, 0.1, 0.0) for step in range(41)]
    found = measure(task, flown(task, *there))
    assert found["spheres"] == 2
    assert found["reached"] == 1
    assert found["time"] == pytest.approx(1.9, abs=0.11)
    assert found["contacts"] == 1
    assert found["path_error"] == pytest.approx(0.1)
    assert found["length"] == pytest.approx(4.0)
    assert found["effort"] == pytest.approx(0.0, abs=1e-6)
    back = measure(task, flown(task, *there[::-1]))
    assert (back["spheres"], back["reached"]) == (1, 0)  # the second sphere came first
    assert "time" not in back
    zigzag = [(0.1 * step, 0.0, 0.05 * (step % 2)) for step in range(41)]
    assert measure(task, flown(task, *zigzag))["effort"] > 10
    assert measure(task, Flown()) == {}


def test_marks_are_shares_or_all_or_nothing():
    assert [Mark("time", 10, 5, 25).of(value) for value in (None, math.nan, 3, 15, 30)] == [0, 0, 10, 5, 0]
    assert [Mark("spheres", 10, 4, 0).of(value) for value in (0, 1, 9)] == [0, 2.5, 10]
    assert [Mark("error", 10, 0.3).of(value) for value in (0.2, 0.4)] == [10, 0]
    assert [Mark("reached", 10, 1).of(value) for value in (1.0, 0.0)] == [10, 0]
    assert [Mark("/cmd_vel", 10, 50).of(value) for value in (60.0, 40.0)] == [10, 0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"vehicle": "zeppelin"}, "vehicle is 'zeppelin'; allowed are dronegui, landing"),
        ({"submission": "poem"}, "submission is 'poem'; allowed are class, node, program"),
        ({"marks": []}, "needs marks, seeds, and a time_limit above 0 s"),
        ({"marks": [{"metric": "beauty", "points": 1, "full": 1}]}, "metric is 'beauty'; allowed are contacts, "),
        ({"marks": [{"metric": "time", "points": 1, "full": 1, "none": 1}]}, "full and none that differ"),
        ({"submission": "program", "options": {"speeed": 3}}, "the options are refused: .*speeed"),
        ({"vehicle": "robot"}, "there is no environment of robot"),
        ({"spheres": [[1, 2, 3]]}, "a list of 4 finite numbers each"),
        ({"colour": "red"}, "key is 'colour'"),
        ({"seeds": "all"}, "invalid literal"),
    ],
)
def test_a_task_that_can_not_be_is_refused(tmp_path, capsys, changes, sentence):
    with pytest.raises(TaskError, match=sentence):
        read_task(task_file(tmp_path, **changes))
    assert main([str(task_file(tmp_path, **changes)), "--", "true"]) == 2
    assert "drone-bridge grade: " in capsys.readouterr().err


def test_an_environment_tells_the_truth_as_its_emulator_does():
    for kind in filter(lambda kind: kind.environment, kinds().values()):
        env = load(kind.environment)()
        env.reset(seed=1)
        env.step(np.zeros(4, np.float32))
        assert env.said == ""
        assert float(env.row()["time"]) > 0
