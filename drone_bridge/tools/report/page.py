# SPDX-License-Identifier: Apache-2.0
"""Page of the report: one self-contained HTML file."""

import base64
import html
import importlib
from collections.abc import Iterator
from typing import Any

from plotly.offline import get_plotlyjs

from drone_bridge.tools.bags.bag import NANOSECONDS_PER_SECOND, BagReader, BagTopic
from drone_bridge.tools.bags.events import events
from drone_bridge.tools.info.command import TopicRate, beginning
from drone_bridge.tools.report import figures
from drone_bridge.tools.report.report_data import ReportData, ReportPicture
from drone_bridge.vision.image_error import ImageError
from drone_bridge.vision.jpegs import jpeg_of_rgb
from drone_bridge.vision.raw_images import rgb_of_raw

_JPEG_QUALITY = 80
_STYLE = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1200px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
h3 { font: 600 .9rem ui-monospace, monospace; margin: 1rem 0 0; }
p.facts { color: #888; margin-top: .2rem; } p.verdict { font-size: 1.25rem; margin: .6rem 0 0; }
table { border-collapse: collapse; font-size: .85rem; } td, th { padding: .15rem .8rem .15rem 0; text-align: left;
border-bottom: 1px solid var(--line); } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; } .events { overflow: auto; max-height: 20rem; }
.pictures { display: flex; gap: .5rem; overflow-x: auto; }
figure { margin: 0; } figure img { height: 170px; display: block; border: 1px solid var(--line); }
figcaption { font-size: .8rem; color: #888; }
"""


#: Script that synchronizes the time axes of all plots, also after zooming in one of them.
_ONE_TIME_AXIS = """
const plots = [...document.querySelectorAll(".js-plotly-plot")]
  .filter((plot) => plot.layout.xaxis?.title?.text === "s");
let isFollowing = false;
const show = (range, source) => {
  if (isFollowing) return;
  isFollowing = true;
  Promise.all(plots.filter((plot) => plot !== source).map((plot) => Plotly.relayout(plot, {"xaxis.range": range})))
    .finally(() => (isFollowing = false));
};
for (const plot of plots) plot.on("plotly_relayout", (change) => {
  if ("xaxis.range[0]" in change) show([change["xaxis.range[0]"], change["xaxis.range[1]"]], plot);
  else if (change["xaxis.autorange"]) show([0, DURATION]);
});
show([0, DURATION]);
"""


def render(bag: BagReader, data: ReportData, topic_rates: dict[BagTopic, TopicRate]) -> str:
    """Return the HTML of the page."""
    title = html.escape(_name(bag))
    duration_s = (bag.end_ns - bag.start_ns) / NANOSECONDS_PER_SECOND
    body = "\n".join(_sections(bag, data, topic_rates))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<script>{get_plotlyjs()}</script></head><body>{body}"
        f"<script>{_ONE_TIME_AXIS.replace('DURATION', f'{duration_s:.3f}')}</script></body></html>\n"
    )


def _name(bag: BagReader) -> str:
    """Return the name of the bag with its parent folder, since many bags are called 'bag'."""
    return "/".join(bag.path.resolve().parts[-2:]).lstrip("/")


def _sections(bag: BagReader, data: ReportData, topic_rates: dict[BagTopic, TopicRate]) -> Iterator[str]:
    duration_s = (bag.end_ns - bag.start_ns) / NANOSECONDS_PER_SECOND
    yield f"<h1>{html.escape(_name(bag))}</h1>"
    yield (
        f'<p class="facts">{beginning(bag)}: {duration_s:.1f} s, {bag.count} messages of '
        f"{len(bag.topics)} topics, {bag.size_bytes / 1e6:.1f} MB</p>"
    )
    yield "".join(f'<p class="verdict">{html.escape(sentence)}</p>' for sentence in data.verdict.sentences)
    if happened := _events(bag):
        yield "<h2>Events</h2>" + happened
    if data.tracks:
        yield "<h2>Track</h2>" + _plot(figures.track(data.tracks))
    if data.states:
        yield "<h2>States</h2>" + _plot(figures.states(data.states), has_tools=False)
    if data.pictures:
        yield "<h2>Camera images</h2>" + "".join(_pictures(data))
    if data.diagnostics:
        yield "<h2>Diagnostics</h2>" + _plot(figures.states(data.diagnostics), has_tools=False)
    plots = [(topic, figures.lines(series)) for topic, series in sorted(data.series.items())]
    yield "<h2>Numbers</h2>" + "".join(f"<h3>{html.escape(name)}</h3>{_plot(plot)}" for name, plot in plots if plot)
    yield "<h2>Topics</h2>" + _topics(bag, topic_rates) + _illegible(data)


def _events(bag: BagReader) -> str:
    rows = "".join(
        f'<tr><td class="number">{(event.time_ns - bag.start_ns) / NANOSECONDS_PER_SECOND:.1f} s</td>'
        f"<td>{event.kind}</td><td>{html.escape(event.text)}</td></tr>"
        for event in events(bag)
    )
    return f'<div class="events"><table>{rows}</table></div>' if rows else ""


def _plot(figure: Any, has_tools: bool = True) -> str:
    """Return a figure as HTML. Low plots need `has_tools=False`, since the tools would cover them."""
    config = {"displaylogo": False} if has_tools else {"displayModeBar": False}
    text: str = figure.to_html(full_html=False, include_plotlyjs=False, config=config)
    return text


def _pictures(data: ReportData) -> Iterator[str]:
    for topic, pictures in sorted(data.pictures.items()):
        shown = [(picture.time_s, uri) for picture in pictures if (uri := data_uri(picture))]
        yield f'<h3>{html.escape(topic)}</h3><div class="pictures">'
        for time_s, uri in shown:
            yield f'<figure><img src="{uri}" alt=""><figcaption>{time_s:.1f} s</figcaption></figure>'
        yield "</div>"


def _topics(bag: BagReader, topic_rates: dict[BagTopic, TopicRate]) -> str:
    rows = ""
    for topic in bag.topics:
        measured = topic_rates.get(topic, TopicRate())
        rate = "" if measured.rate_hz is None else f"{measured.rate_hz:.1f}"
        gap = f"{measured.longest_gap_ns / NANOSECONDS_PER_SECOND:.3f}" if measured.count > 1 else ""
        rows += (
            f"<tr><td>{html.escape(topic.name)}</td><td>{html.escape(topic.type_name)}</td>"
            f'<td class="number">{topic.count}</td><td class="number">{rate}</td><td class="number">{gap}</td></tr>'
        )
    heads = "".join(f'<th class="number">{name}</th>' for name in ("messages", "per second", "longest gap, s"))
    return f'<div class="scroll"><table><tr><th>topic</th><th>type</th>{heads}</tr>{rows}</table></div>'


def _illegible(data: ReportData) -> str:
    """Return the reasons for topics that are left out, fully or in part."""
    return "".join(
        f"<p>{html.escape(name)} is left out: {html.escape(why)}</p>" for name, why in data.illegible.items()
    )


def data_uri(picture: ReportPicture) -> str | None:
    """Return an image as a data URI, or None if it is not supported. Compressed images are not converted."""
    if picture.type_name == "sensor_msgs/msg/CompressedImage":
        kind = "png" if "png" in picture.message.format else "jpeg"
        return _uri(bytes(picture.message.data), kind)
    image = picture.message
    importlib.import_module("cv2")  # a missing one ends the command
    try:
        pixels = rgb_of_raw(image.data, image.encoding, image.width, image.height, image.step)
        return _uri(jpeg_of_rgb(pixels, _JPEG_QUALITY), "jpeg")
    except ImageError:
        return None


def _uri(data: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
