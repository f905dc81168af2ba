// SPDX-License-Identifier: Apache-2.0
// Parts of the page below STOP. A part that fails is replaced by a message, and the others work.

import { Alarm } from "./alarm";
import { missing, reasonOf, storage } from "./browser_features";
import { Cameras } from "./cameras";
import { h } from "./dom";
import { Feel } from "./feel";
import type { Fleet } from "./fleet";
import { Health } from "./health";
import type { Helm } from "./helm";
import { Links } from "./links";
import { Log } from "./log";
import { Overview } from "./overview";
import { PilotView } from "./pilot_view";
import { Plots } from "./plots";
import { Recorder } from "./recorder";
import { Recordings } from "./recordings";
import { Scene } from "./scene";
import { Steering } from "./steering";
import type { Stop } from "./stop";
import type { Stream } from "./stream";
import { Summary } from "./summary";
import { Timeline } from "./timeline";

const SAID_MS = 6_000;
/** Themes with their drawings: a half disc, a sun, a moon. */
const THEMES: Record<string, string> = {
  auto: '<circle cx="8" cy="8" r="6"/><path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor"/>',
  light: '<circle cx="8" cy="8" r="3"/><path d="M8 1v2m0 10v2M1 8h2m10 0h2M3 3l1.5 1.5m7 7L13 13m0-10l-1.5 1.5m-7 7L3 13"/>',
  dark: '<path d="M6 2a6 6 0 1 0 8 8A6 6 0 0 1 6 2z" fill="currentColor"/>',
};

const notice = h("div.notice", { role: "status", hidden: true });
let noticeTimer = 0;
function say(text: string): void {
  notice.textContent = text;
  notice.hidden = false;
  clearTimeout(noticeTimer);
  noticeTimer = window.setTimeout(() => (notice.hidden = true), SAID_MS);
}

/** Buttons of which one is selected, and the content of each. */
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
    button.innerHTML = `<svg viewBox="0 0 16 16" width="14" height="14" fill="none" stroke="currentColor" aria-hidden="true">${THEMES[theme]}</svg>`;
    button.setAttribute("aria-label", `theme: ${theme}`);
  };
  button.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    const next = names[(names.indexOf(document.documentElement.dataset["theme"] ?? "auto") + 1) % names.length]!;
    storage.set("theme", next);
    show(next);
  });
  const stored = storage.get("theme") ?? "auto";
  show(stored in THEMES ? stored : "auto");
  return button;
}

/** One button per vehicle, if there are several. */
function vehicleSwitch(fleet: Fleet): HTMLElement {
  const element = h("nav.vehicles", { "aria-label": "Vehicles" });
  let shown = "";
  fleet.addEventListener("change", () => {
    const { subjects, subject } = fleet;
    const wanted = [subject.prefix, ...subjects.map(({ prefix, name }) => `${prefix} ${name}`)].join("\n");
    if (wanted === shown) return;
    shown = wanted;
    element.replaceChildren(...subjects.map((each) =>
      h("button", { "aria-pressed": String(each.prefix === subject.prefix), "data-vehicle": each.name, title: each.vehicle?.title || undefined, onclick: () => fleet.choose(each.prefix) }, each.name)));
    element.parentElement?.classList.toggle("several", subjects.length > 1);
    element.querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    document.title = subject.name ? `${subject.name} · drone_bridge` : "drone_bridge";
  });
  return element;
}

/** A phone shows one part of the page at a time. */
function sections(onChoose: () => void): HTMLElement {
  const names: [string, string][] = [["look", "Look"], ["steer", "Steer"], ["plots", "Plots"], ["more", "More"]];
  const buttons = names.map(([name, label]) => h("button", {
    "data-section": name,
    onclick: () => {
      document.body.dataset["section"] = name;
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset["section"] === name));
      window.scrollTo(0, 0);
      onChoose();
    },
  }, label));
  document.body.dataset["section"] = "look";
  buttons[0]!.setAttribute("aria-pressed", "true");
  return h("nav.sections", { "aria-label": "Parts of the page" }, ...buttons);
}

/** Return a part of the page, or a message why it failed. */
function part(name: string, make: () => HTMLElement): HTMLElement {
  try {
    return make();
  } catch (error) {
    console.error(error);
    missing.report(name, reasonOf(error));
    return h("p.hint", {}, `${name} failed to load: ${reasonOf(error)}`);
  }
}

interface Base {
  stream: Stream;
  helm: Helm;
  fleet: Fleet;
  /** Its element in the header is preceded by the others. */
  stop: Stop;
}

/** Add everything except STOP and its banner, which exist already. */
export function addParts(page: HTMLElement, { stream, helm, fleet, stop }: Base): void {
  const health = new Health(stream, helm);
  const links = new Links(stream, helm, fleet);
  let scene: Scene | undefined;
  const cameras = new Cameras(stream, fleet, (canvas) => scene?.portray(fleet.subject.prefix, canvas), () => {
    const { prefix, vehicle } = fleet.subject;
    return links.lacksPictures(prefix, vehicle?.node);
  });
  const feel = new Feel(helm, fleet, new Alarm(helm, links));
  const plots = part("Plots", () => new Plots(stream, fleet, helm).element);
  let overviewButton: HTMLElement | undefined;
  let closeOverview = (): void => undefined;
  const overview = part("All vehicles", () => {
    const made = new Overview(stream, helm, fleet, links, (prefix, canvas) => scene?.portray(prefix, canvas) ?? false);
    overviewButton = made.button;
    closeOverview = () => made.close();
    return made.element;
  });
  const details = (): HTMLElement => tabs("details", [
    ["Log", part("Log", () => new Log(stream).element)],
    ["Sticks", feel.element],
    ["Bags", part("Bags", () => new Recordings(stream, helm).element)],
  ]);
  stop.element.before(...[overviewButton, part("Vehicles", () => vehicleSwitch(fleet)),
    h("div.tools", {}, part("Record", () => new Recorder(stream, say).element), part("Theme", themeButton))].filter((each) => each !== undefined));
  page.append(
    part("Summary", () => new Summary(stream, helm, fleet, health, links).element),
    h("div.notices", {}, notice),
    overview,
    part("Pilot's view", () => new PilotView(stream, fleet, cameras).element),
    h("main", {},
      h("div.column.left", {}, cameras.element, plots),
      h("div.column.middle", {}, part("Scene", () => (scene = new Scene(stream, fleet, helm, say)).element), part("Steering", () => new Steering(stream, helm, fleet, links, feel, say, () => stop.press()).element)),
      h("div.column.right", {}, health.element, part("Details", details))),
    part("Timeline", () => new Timeline(stream).element),
    sections(() => closeOverview()),
  );
  // They have missed earlier events.
  if (helm.isOpen) helm.dispatchEvent(new Event("open"));
  helm.dispatchEvent(new Event("change"));
}
