# SPDX-License-Identifier: Apache-2.0
"""A submission's mark: as a table, as Gradescope's results.json, and as JUnit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from drone_bridge.tools.grading.run import Result
from drone_bridge.tools.grading.task import Task


def counted(results: Sequence[Result]) -> list[Result]:
    """Return the runs that count."""
    return [result for result in results if result.counts]


def mark_of(results: Sequence[Result]) -> float | None:
    """Return the mean of the runs that count; None if there are none."""
    those = counted(results)
    return round(sum(result.total for result in those) / len(those), 2) if those else None


def table(task: Task, results: Sequence[Result]) -> str:
    """Return a line per run, with the points for each metric, and the mark."""
    names = [mark.metric for mark in task.marks]
    widths = [max(12, len(name) + 2) for name in names]
    lines = ["  seed" + "".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True)) + "    points"]
    for result in results:
        cells = ""
        for mark, points, width in zip(task.marks, result.points, widths, strict=True):
            value = result.metrics.get(mark.metric)
            cells += f"{('none' if value is None else f'{value:.4g}') + f' ({points:g})':>{width}}"
        lines.append(f"{result.seed:6}{cells}{result.total:10g}{'' if result.counts else '  does not count'}")
        lines += [f"        {remark}" for remark in result.remarks]
    final = mark_of(results)
    lines.append(
        "There is no mark, as no run counts."
        if final is None
        else f"Mark: {final:g} of {task.points:g} ({len(counted(results))} of {len(results)} runs count)"
    )
    return "\n".join(lines)


def write(task: Task, results: Sequence[Result], folder: Path) -> None:
    """Write results.json and junit.xml. The seeds are not in them, as students read them."""
    (folder / "results.json").write_text(json.dumps(_gradescope(task, results), indent=2), encoding="utf-8")
    ElementTree.ElementTree(_junit(task, results)).write(folder / "junit.xml", encoding="utf-8", xml_declaration=True)


def _gradescope(task: Task, results: Sequence[Result]) -> dict[str, object]:
    """Return what an autograder tells Gradescope: https://gradescope-autograders.readthedocs.io/en/latest/specs/."""
    those = counted(results)
    tests = [
        {
            "name": f"run {number}: {mark.metric}",
            "score": round(points / len(those), 3),
            "max_score": round(mark.points / len(those), 3),
            "output": "\n".join(result.remarks),
        }
        for number, result in enumerate(results, 1)
        if result.counts
        for mark, points in zip(task.marks, result.points, strict=True)
    ]
    left_out = [
        f"Run {number} does not count. {' '.join(r.remarks)}" for number, r in enumerate(results, 1) if not r.counts
    ]
    return {
        "score": mark_of(results) or 0.0,
        "output": "\n".join([task.title, *left_out]),
        "execution_time": round(sum(result.took_s for result in results), 1),
        "tests": tests,
    }


def _junit(task: Task, results: Sequence[Result]) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=task.title, tests=str(len(results) * len(task.marks)))
    for number, result in enumerate(results, 1):
        for mark, points in zip(task.marks, result.points, strict=True):
            told = {"classname": f"run {number}", "name": mark.metric, "time": f"{result.took_s:.1f}"}
            case = ElementTree.SubElement(suite, "testcase", told)
            said = "".join(each if each.isprintable() or each == "\n" else "?" for each in "\n".join(result.remarks))
            if not result.counts:
                ElementTree.SubElement(case, "skipped", message=said)
            elif points < mark.points:
                value = result.metrics.get(mark.metric)
                lacks = f"{points:g} of {mark.points:g} points: {'none' if value is None else f'{value:.4g}'}"
                ElementTree.SubElement(case, "failure", message=lacks).text = said
    return suite
