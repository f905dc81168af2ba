# SPDX-License-Identifier: Apache-2.0
"""One run in processes of its own, so that nothing that happens in it takes the grader along.

python3 -m drone_bridge.tools.grading.run '{"task": ..., "seed": ..., ...}'
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from drone_bridge.tools.grading import confine
from drone_bridge.tools.grading.flights import Run, fly
from drone_bridge.tools.grading.measures import measure
from drone_bridge.tools.grading.task import NODE, Task, read_task

_RESULT = "result.json"
#: Longer than a run can take that keeps to its limits; a machine that is busy gets more of it.
_PATIENCE = 20.0
_PATIENCE_S = 300.0


@dataclass(slots=True)
class Result:
    """What a run has come to."""

    seed: int
    points: list[float]  # for each of the task's marks
    metrics: dict[str, float] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    output: str = ""
    counts: bool = True
    page: str = ""  # beside the table
    took_s: float = 0.0

    @property
    def total(self) -> float:
        return round(sum(self.points), 1)


def judge(task: Task, seed: int, command: Sequence[str], folder: Path, *, is_confined: bool) -> Result:
    """Fly a run in processes of its own, and return what it has come to. `folder` is for truth, logs and page."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="drone_bridge_grade_", ignore_cleanup_errors=True) as box:
        told = {"task": str(task.file), "seed": seed, "command": list(command), "folder": str(folder), "box": box}
        words = [sys.executable, "-m", __name__, json.dumps({**told, "is_confined": is_confined})]
        log = folder / "grader.txt"
        with log.open("wb") as output:
            try:
                subprocess.run(
                    [*(confine.OF_THE_RUN if is_confined else ()), *words],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=_PATIENCE * task.time_limit + _PATIENCE_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                output.write(b"it took too long\n")
    try:
        result = Result(**json.loads((folder / _RESULT).read_text()))
    except (OSError, ValueError):
        said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()] or ["it said nothing"]
        remark = f"The grader's own part of this run has failed, so it does not count: {said[-1].strip()}"
        result = Result(seed, [0.0] * len(task.marks), remarks=[remark], counts=False)
    result.took_s = time.monotonic() - began_s
    return result


def main(told: str) -> int:
    """Fly the run, and leave its result and page in the folder."""
    options = json.loads(told)
    if options["is_confined"]:
        confine.prepare_run()
    task, folder = read_task(Path(options["task"])), Path(options["folder"])
    run = Run(task, options["seed"], options["command"], folder, Path(options["box"]), options["is_confined"])
    fly(run)
    metrics = measure(task, run.flown) | _counted(run)
    points = [mark.of(metrics.get(mark.metric)) for mark in task.marks]
    result = Result(run.seed, points, metrics, run.remarks, run.output, not run.was_too_slow)
    from drone_bridge.tools.grading.page import write_page

    result.page = write_page(run, result)
    (folder / _RESULT).write_text(json.dumps(asdict(result)))
    return 0


def _counted(run: Run) -> dict[str, float]:
    """Return how many messages the bag has, by topic."""
    if run.task.submission != NODE:
        return {}
    from drone_bridge.tools.bags.bag import Bag, BagError

    try:
        with Bag(run.bag) as bag:
            return {topic.name: float(topic.count) for topic in bag.topics}
    except BagError as error:
        print(error)
        return {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
