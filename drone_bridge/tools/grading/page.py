# SPDX-License-Identifier: Apache-2.0
"""The page of one run: its marks, where the vehicle was, what the submission said, and the report of the bag."""

from __future__ import annotations

import html
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
from plotly.offline import get_plotlyjs

from drone_bridge.tools.bags.bag import BagError
from drone_bridge.tools.grading.flights import Run
from drone_bridge.tools.grading.measures import Flown
from drone_bridge.tools.grading.task import Task
from drone_bridge.tools.reporting import figures
from drone_bridge.tools.reporting.command import write_report
from drone_bridge.tools.reporting.story import Series

PLOTLY = "plotly.min.js"  # once for all pages
_STYLE = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 1.8rem 0 .4rem; }
table { border-collapse: collapse; } td, th { padding: .15rem .9rem .15rem 0; text-align: left;
border-bottom: 1px solid var(--line); } td.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { overflow-x: auto; background: #8881; padding: .6rem; max-height: 20rem; }
li { color: #c0392b; }
"""


def write_page(run: Run, result: Any) -> str:
    """Write the page beside the run's folder; return its name, with which the table links to it."""
    page = run.folder.with_suffix(".html")
    page.write_text(_text(run, result), encoding="utf-8")
    return page.name


def write_plotly(folder: Path) -> None:
    """Write what the pages in a folder draw with."""
    (folder / PLOTLY).write_text(get_plotlyjs(), encoding="utf-8")


def _text(run: Run, result: Any) -> str:
    title = html.escape(f"{run.task.title}: run with seed {run.seed}")
    counts = "" if result.counts else " It does not count."
    parts = [
        f"<h1>{title}</h1><p>{result.total:g} of {run.task.points:g} points.{counts}</p>",
        "<ul>" + "".join(f"<li>{html.escape(remark)}</li>" for remark in result.remarks) + "</ul>",
        f"<table>{''.join(_rows(run.task, result))}</table>",
        *_plots(run.task, run.flown),
        "<h2>What the submission said</h2>" + f"<pre>{html.escape(result.output[-8000:]) or 'Nothing.'}</pre>",
        _report(run),
    ]
    head = f'<meta charset="utf-8"><title>{title}</title><meta name="viewport" content="width=device-width">'
    script = f'<style>{_STYLE}</style><script src="{PLOTLY}"></script>'
    return f'<!doctype html><html lang="en"><head>{head}{script}</head><body>{"".join(parts)}</body></html>\n'


def _rows(task: Task, result: Any) -> list[str]:
    def row(name: str, value: float | None, points: str) -> str:
        text = "none" if value is None else f"{value:.4g}"
        return f'<tr><td>{html.escape(name)}</td><td class="number">{text}</td><td class="number">{points}</td></tr>'

    marked = {mark.metric for mark in task.marks}
    rows = [
        row(mark.metric, result.metrics.get(mark.metric), f"{points:g} of {mark.points:g}")
        for mark, points in zip(task.marks, result.points, strict=True)
    ]
    others = {name: value for name, value in result.metrics.items() if name not in marked and name[0] != "/"}
    return ["<tr><th>metric</th><th></th><th>points</th></tr>", *rows, *(row(*each, "") for each in others.items())]


def _plots(task: Task, flown: Flown) -> list[str]:
    """Return the track and the numbers over time, of a flight that has any."""
    if len(flown.times) < 2:
        return ["<p>There was no flight.</p>"]
    points = [(time_s, x, y, z) for time_s, (x, y, z) in zip(flown.times, flown.places, strict=True)]
    tracks = {"the vehicle": points}
    if task.path:
        tracks["the path"] = [(0.0, x, y, z) for x, y, z in task.path]
    for name, spheres in (("sphere", task.spheres), ("obstacle", task.obstacles)):
        for number, sphere in enumerate(spheres):
            tracks[f"{name} {number + 1}"] = _circles(*sphere)
    places = np.array(flown.places)
    speeds = np.linalg.norm(np.gradient(places, flown.times, axis=0), axis=1)
    columns = dict(zip(("position.x", "position.y", "position.z", "speed, m/s"), (*places.T, speeds), strict=True))
    lines = figures.lines(Series(flown.times, {name: column.tolist() for name, column in columns.items()}))
    shown = [("Where it was", figures.track(tracks)), ("Over time", lines)]
    config = {"displaylogo": False}
    return [
        f"<h2>{title}</h2>" + figure.to_html(full_html=False, include_plotlyjs=False, config=config)
        for title, figure in shown
        if figure
    ]


def _circles(x: float, y: float, z: float, radius: float) -> list[tuple[float, float, float, float]]:
    """Return a level and an upright circle around a place, as a line."""
    angles = np.linspace(0.0, math.tau, 25).tolist()
    level = [(0.0, x + radius * math.cos(a), y + radius * math.sin(a), z) for a in angles]
    upright = [(0.0, x + radius * math.cos(a), y, z + radius * math.sin(a)) for a in angles]
    return [*itertools.chain(level, upright)]


def _report(run: Run) -> str:
    """Return a link to the report of the bag, if there is one."""
    if not run.bag.exists():
        return ""
    try:
        report = write_report(run.bag, run.folder / "report.html")
    except (BagError, OSError) as error:
        return f"<p>There is no report of the bag: {html.escape(str(error))}</p>"
    return f'<p><a href="{run.folder.name}/{report.name}">All topics of the run</a></p>'
