# SPDX-License-Identifier: Apache-2.0
"""drone-bridge grade: fly a submission through a task's runs, and mark it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from drone_bridge.tools.cli import REFUSED
from drone_bridge.tools.grading import confine, results
from drone_bridge.tools.grading.page import write_plotly
from drone_bridge.tools.grading.run import Result, judge
from drone_bridge.tools.grading.task import SIMULATED, Task, TaskError, read_task

#: How often a run is flown that the machine was too slow for.
_TRIES = 3
_UNCONFINED = """\
This system allows no user namespaces. Limits on time, memory, output and processes hold; but a hostile submission can
reach the network, other processes of this user and the task's truth. Grade in a machine that holds nothing else."""


def main(argv: Sequence[str]) -> int:
    """Grade; return 0 once all runs count, 1 if one does not, 2 if the task is refused."""
    parser = argparse.ArgumentParser(
        prog="drone-bridge grade",
        usage="%(prog)s [--output FOLDER] [--jobs N] task.yaml -- command ...",
        description="Fly a submission through a task's runs, and mark it.",
    )
    parser.add_argument("task", type=Path, help="what is flown and what is marked: docs/grade.md")
    parser.add_argument("command", nargs="+", help="the submission, or pilot.py:Pilot where that is a class")
    parser.add_argument("--output", "-o", type=Path, default=Path("marks"), help="folder for all results (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at the same time (%(default)s)")
    options = parser.parse_args(argv)
    try:
        task = read_task(options.task)
        command = [_absolute(word) for word in options.command]
        output = options.output.resolve()
        output.mkdir(parents=True, exist_ok=True)
        is_confined = confine.is_possible()
        if not is_confined:
            print(_UNCONFINED, file=sys.stderr)
        at_once = options.jobs if is_confined and task.clock == SIMULATED else 1
        with ThreadPoolExecutor(max(1, at_once)) as pool:
            found = list(pool.map(partial(_judge, task, command, output, is_confined), task.seeds))
        write_plotly(output)
        results.write(task, found, output)
    except (TaskError, OSError) as error:
        print(f"drone-bridge grade: {error}", file=sys.stderr)
        return REFUSED
    text = results.table(task, found)
    (output / "table.txt").write_text(f"{text}\n", encoding="utf-8")
    print(text)
    return 0 if len(results.counted(found)) == len(found) else 1


def _judge(task: Task, command: Sequence[str], output: Path, is_confined: bool, seed: int) -> Result:
    for _ in range(_TRIES):
        result = judge(task, seed, command, output / f"run_{seed}", is_confined=is_confined)
        if result.counts:
            break
    return result


def _absolute(word: str) -> str:
    """Return the word for a folder of the submission's own: files of here by their whole path."""
    file, colon, name = word.rpartition(":")
    if colon and Path(file).is_file():
        return f"{Path(file).resolve()}:{name}"
    return str(Path(word).absolute()) if Path(word).is_file() else word
