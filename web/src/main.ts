// SPDX-License-Identifier: Apache-2.0
// Puts the page together.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import "./inspect.css";
import "./pilot_view.css";
import { Cameras } from "./cameras";
import { h } from "./dom";
import { Feel } from "./feel";
import { Fleet } from "./fleet";
import { Health } from "./health";
import { Helm } from "./helm";
import { Links } from "./links";
import { Log } from "./log";
import { Overview } from "./overview";
import { Parameters } from "./parameters";
import { PilotView } from "./pilot_view";
import { Plots } from "./plots";
import { Publisher } from "./publish";
import { Recorder } from "./recorder";
import { Scene } from "./scene";
import { Services } from "./services";
import { Steering } from "./steering";
import { Stop } from "./stop";
import { Stream } from "./stream";
import { Summary } from "./summary";
import { Timeline } from "./timeline";
import { Topics } from "./topics";

const SAID_MS = 6_000;
const THEMES = ["auto", "light", "dark"];

const notice = h("div.notice", { role: "status", hidden: true });
let noticeTimer = 0;
function say(text: string): void {
  notice.textContent = text;
  notice.hidden = false;
  clearTimeout(noticeTimer);
  noticeTimer = window.setTimeout(() => (notice.hidden = true), SAID_MS);
}

/** Buttons of which one is chosen, and what each one shows. */
function tabs(name: string, parts: [string, HTMLElement][]): HTMLElement {
  const buttons = parts.map(([label, body]) => {
    body.id = `${name}-${label.toLowerCase()}`;
    body.role = "tabpanel";
    body.ariaLabel = label;
    return h("button", { role: "tab", "aria-controls": body.id, onclick: () => choose(body) }, label);
  });
  const choose = (chosen: HTMLElement): void => {
    parts.forEach(([, body], index) => {
      body.hidden = body !== chosen;
      buttons[index]!.setAttribute("aria-selected", String(body === chosen));
    });
  };
  choose(parts[0]![1]);
  return h("section.panel", { id: name, "aria-label": "Details" }, h("div.tabs", { role: "tablist" }, ...buttons), ...parts.map(([, body]) => body));
}

function themeButton(): HTMLElement {
  const button = h("button.small.theme", { title: "Light, dark or system theme" });
  const show = (theme: string): void => {
    document.documentElement.dataset["theme"] = theme;
    button.textContent = { auto: "◐", light: "☀", dark: "☾" }[theme]!;
    button.setAttribute("aria-label", `theme: ${theme}`);
  };
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(document.documentElement.dataset["theme"] ?? "auto") + 1) % THEMES.length]!;
    localStorage.setItem("theme", next);
    show(next);
  });
  const stored = localStorage.getItem("theme") ?? "auto";
  show(THEMES.includes(stored) ? stored : "auto");
  return button;
}

/** One button per vehicle, when there are several. */
function vehicleSwitch(fleet: Fleet): HTMLElement {
  const element = h("nav.vehicles", { "aria-label": "Vehicles" });
  let shown = "";
  fleet.addEventListener("change", () => {
    const { subjects, subject } = fleet;
    const wanted = [subject.prefix, ...subjects.map(({ prefix, name }) => `${prefix} ${name}`)].join("\n");
    if (wanted === shown) return;
    shown = wanted;
    element.replaceChildren(...subjects.map((each) =>
      h("button", { "aria-pressed": String(each.prefix === subject.prefix), "data-vehicle": each.name, onclick: () => fleet.choose(each.prefix) }, each.name)));
    element.parentElement?.classList.toggle("several", subjects.length > 1);
    element.querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    document.title = subject.name ? `${subject.name} · drone_bridge` : "drone_bridge";
  });
  return element;
}

/** On a phone one part of the page is shown at a time. */
function sections(): HTMLElement {
  const names: [string, string][] = [["look", "Look"], ["steer", "Steer"], ["plots", "Plots"], ["more", "More"]];
  const buttons = names.map(([name, label]) => h("button", {
    "data-section": name,
    onclick: () => {
      document.body.dataset["section"] = name;
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset["section"] === name));
      window.scrollTo(0, 0);
    },
  }, label));
  document.body.dataset["section"] = "look";
  buttons[0]!.setAttribute("aria-pressed", "true");
  return h("nav.sections", { "aria-label": "Parts of the page" }, ...buttons);
}

const stream = new Stream();
const helm = new Helm();
const fleet = new Fleet(stream, helm);
const health = new Health(stream);
const scene = new Scene(stream, fleet, helm);
const links = new Links(stream, helm, fleet);
const summary = new Summary(stream, helm, fleet, health, links);
const stop = new Stop(stream, helm, fleet);
const plots = new Plots(stream, fleet);
const overview = new Overview(stream, helm, fleet, links);
const cameras = new Cameras(stream, fleet);
const feel = new Feel(helm, fleet);
const details = tabs("details", [
  ["Log", new Log(stream).element],
  ["Topics", new Topics(stream, new Publisher(stream, helm), (topic, path) => plots.add(topic, path)).element],
  ["Services", new Services(stream, helm).element],
  ["Parameters", new Parameters(stream).element],
  ["Sticks", feel.element],
]);

document.getElementById("page")!.append(
  h("header.top", {}, h("h1", {}, h("span.mark"), "drone_bridge"), overview.button, vehicleSwitch(fleet),
    h("div.tools", {}, new Recorder(stream, say).element, themeButton()), stop.element),
  stop.banner,
  overview.element,
  new PilotView(stream, fleet, cameras).element,
  summary.element,
  h("main", {},
    h("div.column.left", {}, cameras.element, plots.element),
    h("div.column.middle", {}, scene.element, new Steering(stream, helm, fleet, links, feel, say).element),
    h("div.column.right", {}, health.element, details)),
  new Timeline(stream).element,
  sections(),
  notice,
);

helm.addEventListener("lost", () => stream.reconnect());
stream.connect();
helm.connect();
