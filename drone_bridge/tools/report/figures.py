# SPDX-License-Identifier: Apache-2.0
"""Plots of the report, as plotly figures."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from drone_bridge.tools.report.report_data import ANGLE, LEVELS, Series, StateInterval, thinned

#: Distinguishable for all kinds of colour vision, on light and dark backgrounds.
_COLOURS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB", "#EE8866")
_LEVEL_COLOURS = dict(zip(LEVELS, ("#228833", "#CCBB44", "#EE6677", "#BBBBBB"), strict=True))
#: Viewpoint in plotly's units, in which the scene's diagonal is `_DIAGONAL`. All of the scene is visible from there.
_EYE = {"x": 1.25, "y": 1.25, "z": 0.9}
_DIAGONAL = 1.5
_FLATTEST = 0.1  # least edge of the scene, as a share of its longest one
#: Opaque on a light and a dark page: WebGL adds a translucent colour to the page's, so that it is invisible on white.
_GRID = ("gridcolor", "zerolinecolor")
_ROW_PX = 34
_AXIS_PX = 70


def track(tracks: Mapping[str, Sequence[tuple[float, float, float, float]]]) -> go.Figure:
    """Plot the tracks of all vehicles in one scene, with the time at each point."""
    figure = _figure(height=560)
    for number, (topic, points) in enumerate(tracks.items()):
        array = np.array(points)
        indices = np.unique(np.linspace(0, len(array) - 1, 2000).astype(int))
        t, x, y, z = array[indices].T
        colour = _COLOURS[number % len(_COLOURS)]
        lines = go.Scatter3d(
            x=x,
            y=y,
            z=z,
            customdata=t,
            mode="lines",
            name=topic,
            line={"color": colour, "width": 5},
            hovertemplate="t = %{customdata:.2f} s<br>x %{x:.2f}, y %{y:.2f}, z %{z:.2f} m",
        )
        figure.add_trace(lines)
        for index, what, symbol in ((0, "begins", "circle"), (-1, "ends", "diamond")):
            marker = {"color": colour, "size": 5, "symbol": symbol}
            place = {"x": [x[index]], "y": [y[index]], "z": [z[index]]}
            figure.add_trace(go.Scatter3d(**place, mode="markers", marker=marker, name=what, showlegend=False))
    figure.update_layout(scene={**_equal_axes(tracks), "camera": {"eye": _EYE}})
    return figure


def _equal_axes(tracks: Mapping[str, Sequence[tuple[float, float, float, float]]]) -> dict[str, Any]:
    """Return axes with equal scales around all tracks. With plotly's own, a flat scene extends past the viewpoint."""
    places = np.array([point[1:] for points in tracks.values() for point in points if np.isfinite(point).all()])
    if not len(places):
        return {}
    lowest, highest = places.min(axis=0), places.max(axis=0)
    longest = max(1e-3, *(highest - lowest)) * 1.1
    edges = np.maximum((highest - lowest) * 1.1, longest * _FLATTEST)
    ratio = edges / np.linalg.norm(edges) * _DIAGONAL
    begins = (lowest + highest - edges) / 2
    axes: dict[str, Any] = {"aspectmode": "manual", "aspectratio": dict(zip("xyz", ratio, strict=True))}
    for name, begin, edge in zip("xyz", begins, edges, strict=True):
        style = {"title": f"{name}, m", "backgroundcolor": "rgba(0,0,0,0)", **dict.fromkeys(_GRID, "#888")}
        axes[f"{name}axis"] = {**style, "range": [begin, begin + edge]}
    return axes


#: Units of REP 103 by the end of a field's name.
_UNITS = (
    (re.compile(r"linear_acceleration\.[xyz]$"), "m/s²"),
    (re.compile(r"(angular_velocity|angular)\.[xyz]$"), "rad/s"),
    (re.compile(r"linear\.[xyz]$"), "m/s"),
    (re.compile(r"(position|translation)\.[xyz]$|(^|\.)(distance|range|altitude)$"), "m"),
    (re.compile(r"(^|\.)voltage$"), "V"),
    (re.compile(r"(^|\.)current$"), "A"),
    (re.compile(r"(^|\.)temperature$"), "°C"),
    (re.compile(r"(^|\.)thrust$"), "N"),
)


#: Messages whose fields are shares of the vehicle's maxima, -1 to 1.
_OF_SHARES = ("drone_bridge/msg/CommandAxes",)


def unit_of(name: str, type_name: str) -> str:
    """Return the unit of a field by its name and type, or an empty string if unknown."""
    if type_name in _OF_SHARES:
        return "share"
    return next((unit for end, unit in _UNITS if end.search(name)), "")


def lines(series: Series) -> go.Figure | None:
    """Plot the numbers of a topic over time, with a separate axis for angles. Return None if all are uninteresting."""
    names = list(filter(series.is_interesting, series.columns)) if len(series.times) > 1 else []
    if not names:
        return None
    figure = _figure(height=300)
    angles = {name for name in names if name.endswith(ANGLE)}
    others = set(names) - angles
    for number, name in enumerate(names):
        t, values = thinned(series.times, series.columns[name])
        shape = "hv" if name in series.flags else "linear"  # a flag is not interpolated
        line = {"color": _COLOURS[number % len(_COLOURS)], "width": 1.5, "shape": shape}
        axis = "y2" if name in angles and others else "y"
        label = ", ".join(filter(None, (name, unit_of(name, series.type_name))))
        figure.add_trace(go.Scatter(x=t, y=values, mode="lines", name=label, line=line, yaxis=axis))
    units = {unit_of(name, series.type_name) for name in others}
    if len(units) == 1:
        figure.update_yaxes(title=units.pop())
    if angles and others:
        own = {"tickmode": "auto", "showgrid": False, "zeroline": False}  # independent of the ticks of the other axis
        figure.update_layout(yaxis2={"title": "deg", "side": "right", "overlaying": "y", **own})
    return figure


def states(intervals: Mapping[str, Sequence[StateInterval]]) -> go.Figure:
    """Plot the intervals of states as labelled bars, with one row per topic or status."""
    found = [(name, interval) for name, intervals_of_it in intervals.items() for interval in intervals_of_it]
    others = dict.fromkeys(interval.state for _, interval in found if interval.state not in LEVELS)
    colours = {**_LEVEL_COLOURS, **dict(zip(others, itertools.cycle(_COLOURS), strict=False))}
    figure = _figure(height=_AXIS_PX + _ROW_PX * len(intervals), left_px=180, top_px=10)
    figure.add_trace(
        go.Bar(
            y=[name for name, _ in found],
            base=[interval.from_s for _, interval in found],
            x=[interval.to_s - interval.from_s for _, interval in found],
            text=[interval.state for _, interval in found],
            customdata=[interval.reason for _, interval in found],
            orientation="h",
            marker={"color": [colours[interval.state] for _, interval in found], "line": {"width": 0}},
            insidetextanchor="start",
            textposition="inside",
            hovertemplate="%{text}, from %{base:.2f} s<br>%{customdata}<extra></extra>",
            showlegend=False,
        )
    )
    figure.update_layout(barmode="overlay", bargap=0.25)
    figure.update_yaxes(autorange="reversed")
    return figure


def _figure(height: int, left_px: int = 50, top_px: int = 40) -> go.Figure:
    figure = go.Figure()
    style: dict[str, Any] = {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)"}
    margin = {"l": left_px, "r": 10, "t": top_px, "b": 40}
    figure.update_layout(**style, height=height, margin=margin, font={"color": "#888"}, showlegend=True)
    figure.update_layout(
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0}, modebar={"bgcolor": "rgba(0,0,0,0)"}
    )
    grid = {"gridcolor": "rgba(128,128,128,0.25)", "zerolinecolor": "rgba(128,128,128,0.4)"}
    figure.update_xaxes(title="s", **grid)
    figure.update_yaxes(**grid, automargin=True)
    return figure
