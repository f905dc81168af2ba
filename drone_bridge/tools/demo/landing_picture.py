# SPDX-License-Identifier: Apache-2.0
"""The picture of a landing: what the camera saw, both paths from above, the altitude, the touchdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.collections import LineCollection
from matplotlib.patches import Circle, Polygon, Rectangle

from drone_bridge.telemetry.emulator.camera import OPTICAL_FROM_BODY
from drone_bridge.telemetry.emulator.flight import rotation_from_euler
from drone_bridge.telemetry.emulator.pad import PAD_HEIGHT, PAD_SIDE, draw_pad
from drone_bridge.telemetry.emulator.touchdown import MAX_POSITION_ERROR
from drone_bridge.tools.demo.landing_recording import LandingRecording, View, along
from drone_bridge.tools.demo.plotting import INK, finish, label, new_figure, save, show_square

Array = npt.NDArray[np.float64]

STATE_COLOURS: Final = {
    "waiting": "#c8c8c8",
    "searching": "#9a9a9a",
    "approaching": "#e08a1e",
    "following": "#c9a400",
    "descending": "#1f5fbf",
    "committed": "#7b3fb5",
    "climbing": "#d62728",
    "landed": "#2a8f4a",
}
ROVER_COLOUR: Final = "#8c5a3c"
FOUND_COLOUR: Final = "#39ff5a"
MARGIN_M: Final = 1.0
LAST_S: Final = 3.0  # before the touchdown, in the panel about it
SIZE_INCHES: Final = (13.0, 7.6)
PAD_CORNERS: Final = PAD_SIDE / 2 * np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]])


def draw(recording: LandingRecording, verdict: str, file: Path) -> None:
    """Write the picture as PNG; `verdict` says how good the touchdown was."""
    figure = new_figure(SIZE_INCHES)
    cameras, flight = figure.subfigures(2, 1, height_ratios=[1.0, 1.55])
    for panel, view in zip(cameras.subplots(1, len(recording.views)), recording.views, strict=True):
        _draw_view(panel, view, recording)
    above, altitude, touchdown = flight.subplots(1, 3)
    _draw_above(above, recording)
    _draw_altitude(altitude, recording)
    _draw_touchdown(touchdown, recording, verdict)
    save(figure, file)


def _draw_view(panel: Any, view: View, recording: LandingRecording) -> None:
    """Draw an image, and over it the pad where it was found."""
    panel.imshow(view.pixels)
    height, width = view.pixels.shape[:2]
    if view.pad is not None:
        corners = _pixels(view, PAD_CORNERS)
        panel.add_patch(Polygon(corners, closed=True, fill=False, ec=FOUND_COLOUR, lw=1.8))
        panel.plot(*_pixels(view, np.zeros((1, 2)))[0], "+", color=FOUND_COLOUR, ms=11, mew=1.8)
    panel.set(xticks=[], yticks=[], xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
    panel.set_title(f"{view.time_s:.1f} s, {view.altitude:.1f} m high", loc="left", fontweight="bold")
    state = recording.state_at(view.time_s)
    panel.set_xlabel(state, color=STATE_COLOURS[state], fontweight="bold")


def _pixels(view: View, on_pad: Array) -> Array:
    """Return pixels, n x 2, of places on the pad, n x 2, m, in the pad's axes; its front looks along the map's x."""
    assert view.pad is not None
    roll, pitch, yaw = view.angles
    levelled_from_map = np.array([[np.cos(yaw), np.sin(yaw)], [-np.sin(yaw), np.cos(yaw)]])
    level = view.pad + np.column_stack((on_pad @ levelled_from_map.T, np.zeros(len(on_pad))))
    seen = level @ rotation_from_euler(roll, pitch, 0.0) @ (view.matrix @ OPTICAL_FROM_BODY).T
    # What is not in front of the camera is beyond the edge of the image anyway.
    pixels: Array = seen[:, :2] / np.maximum(seen[:, 2:], 1e-3)
    return pixels


def _draw_above(panel: Any, recording: LandingRecording) -> None:
    """Draw both paths from above, the drone's in the colours of the states."""
    until = recording.times <= recording.landed_s
    path, times = recording.path[until], recording.times[until]
    driven = recording.rover_path[(recording.rover_times >= 0) & (recording.rover_times <= recording.landed_s)]
    panel.plot(*driven.T, color=ROVER_COLOUR, lw=5, alpha=0.35, solid_capstyle="round")
    panel.plot(*driven[0], "s", color=ROVER_COLOUR, ms=7)
    _add_coloured_path(panel, path, times, recording)
    panel.plot(*path[0], "o", color=INK, ms=6)
    panel.plot(*path[-1], "D", color="white", mec=STATE_COLOURS["landed"], mew=1.8, ms=8, zorder=5)
    panel.add_patch(Rectangle(driven[-1] - PAD_SIDE / 2, PAD_SIDE, PAD_SIDE, fill=False, ec=ROVER_COLOUR, lw=1.2))
    for place, text in ((path[0], "drone"), (driven[0], "rover")):
        label(panel, text, place, (0, -17), ha="center", fontweight="bold")
    show_square(panel, np.vstack((path, driven)), MARGIN_M)
    panel.set(xlabel="x of the rover's map (m)", ylabel="y (m)")
    finish(panel, "drone and rover from above")


def _draw_altitude(panel: Any, recording: LandingRecording) -> None:
    """Draw the altitude, with the states behind it."""
    end_s = recording.landed_s + 1.5
    for span in recording.spans:
        if span.begins_s < end_s:
            panel.axvspan(span.begins_s, min(span.ends_s, end_s), color=STATE_COLOURS[span.state], alpha=0.13, lw=0)
    shown = recording.times <= end_s
    path = np.column_stack((recording.times[shown], recording.altitudes[shown]))
    _add_coloured_path(panel, path, recording.times[shown], recording)
    panel.axhline(PAD_HEIGHT, color=ROVER_COLOUR, ls=":", lw=1.2)
    label(panel, "pad", (0, PAD_HEIGHT), (4, 3), color=ROVER_COLOUR)
    top = float(np.nanmax(path[:, 1])) * 1.16
    seen = recording.sighting_times[recording.sighting_times <= end_s]
    panel.vlines(seen, top * 0.97, top, color=INK, lw=0.8)
    label(panel, "the pad was seen", (seen[0], top * 0.965), (0, -3), va="top", fontsize=8.5)
    for state in dict.fromkeys(span.state for span in recording.spans if span.begins_s < end_s):
        panel.plot([], [], color=STATE_COLOURS[state], lw=4, label=state)
    panel.legend(loc="upper right", bbox_to_anchor=(1.0, 0.93), fontsize=8.5, framealpha=0.9, edgecolor="none")
    panel.set_box_aspect(1)
    panel.set(xlim=(0, end_s), ylim=(0, top), xlabel="time (s)", ylabel="above the ground (m)")
    finish(panel, "altitude")


def _draw_touchdown(panel: Any, recording: LandingRecording, verdict: str) -> None:
    """Draw the path over the pad, as seen from the pad."""
    extent = (-PAD_SIDE / 2, PAD_SIDE / 2, -PAD_SIDE / 2, PAD_SIDE / 2)
    # Drawn with its front up; here the front looks along x, to the right.
    panel.imshow(np.rot90(draw_pad(400), -1), cmap="gray", vmin=-260, vmax=255, extent=extent, zorder=1)
    panel.add_patch(Circle((0, 0), MAX_POSITION_ERROR, fill=False, color=STATE_COLOURS["landed"], ls="--", lw=1.4))
    last = (recording.times >= recording.landed_s - LAST_S) & (recording.times <= recording.landed_s)
    times = recording.times[last]
    path = recording.path[last] - along(recording.rover_times, recording.rover_path, times)
    _add_coloured_path(panel, path, times, recording)
    panel.plot(*path[-1], "D", color="white", mec=STATE_COLOURS["landed"], mew=2.0, ms=10, zorder=5)
    panel.annotate(
        f"touchdown after {recording.landed_s:.1f} s\n{verdict}",
        (0.03, 0.03),
        xycoords="axes fraction",
        bbox={"fc": "white", "ec": "none", "alpha": 0.85},
    )
    half = 0.75
    panel.set_aspect("equal")
    panel.set(xlim=(-half, half), ylim=(-half, half), xlabel="ahead of the pad's middle (m)", ylabel="to its left (m)")
    finish(panel, f"the last {LAST_S:.0f} s, seen from the pad")


def _add_coloured_path(panel: Any, path: Array, times: Array, recording: LandingRecording) -> None:
    """Add a path, n x 2, in the colours of the states at its times."""
    pieces = np.stack((path[:-1], path[1:]), axis=1)
    colours = [STATE_COLOURS[recording.state_at(time_s)] for time_s in times[:-1]]
    panel.add_collection(LineCollection(list(pieces), colors=colours, linewidths=2.4, capstyle="round"))
