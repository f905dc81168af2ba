// SPDX-License-Identifier: Apache-2.0
// DOM elements without a framework.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | EventListener | undefined>;

/** Time for the second press, ms. */
const ARMED_MS = 3_000;
/** Time after the first press of an emergency in which a second one is ignored, as that of a bouncing finger, ms. */
const LIFTED_MS = 300;

/** Create an element: `h("button.small", { onclick: go }, "Go")`. */
export function h<K extends keyof HTMLElementTagNameMap>(
  selector: K | `${K}.${string}`,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag as K);
  element.classList.add(...classes);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child): child is Node | string => child != null && child !== false));
  return element;
}

/** Set the text of an element only if it changes, which keeps selections and saves layout. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Panel with a heading; `tools` are at the end of the heading. */
export function panel(name: string, title: string, tools: Child[], ...children: Child[]): HTMLElement {
  return h("section.panel", { id: name, "aria-label": title },
    h("header.panel-head", {}, h("h2", {}, title), h("div.tools", {}, ...tools)),
    ...children);
}

/** Act on each press: of any pointer when it goes down, as a second finger or one that slides makes no click; of keyboards and screen readers by their click. */
export function onPress(element: HTMLElement, act: (pointer?: PointerEvent) => void): void {
  let isPointer = false;
  element.addEventListener("pointerdown", (event) => {
    isPointer = true;
    act(event);
  });
  element.addEventListener("click", ({ detail }) => {
    const hasActed = isPointer && detail > 0; // 0: without a pointer
    isPointer = false;
    if (!hasActed) act();
  });
}

/** Button that acts on the second of two presses, for actions that can't be undone; `question` is its label in between. */
export function twoPresses(label: string, act: () => void, attributes: Attributes = {}, question = `${label}: press again`): HTMLButtonElement {
  const { button, press } = armed(label, act, attributes, question);
  button.addEventListener("click", press);
  return button;
}

/** The same for an emergency: by any pointer, as STOP. That of a second press has to go down LIFTED_MS after the first was lifted. */
export function twoUrgentPresses(label: string, act: () => void, attributes: Attributes, question: string): HTMLButtonElement {
  const { button, press } = armed(label, act, attributes, question);
  let first: number | undefined;
  let liftedMs = -Infinity;
  onPress(button, (pointer) => {
    if (pointer && (first !== undefined || performance.now() - liftedMs < LIFTED_MS)) return;
    if (!press() && pointer) button.setPointerCapture((first = pointer.pointerId));
  });
  button.addEventListener("lostpointercapture", ({ pointerId }) => {
    if (pointerId !== first) return;
    first = undefined;
    liftedMs = performance.now();
  });
  return button;
}

/** Button, and the function for its presses, which returns whether it has acted. */
function armed(label: string, act: () => void, attributes: Attributes, question: string): { button: HTMLButtonElement; press: () => boolean } {
  const button = h("button", attributes, label);
  let timer = 0;
  const disarm = (): void => {
    clearTimeout(timer);
    timer = 0;
    button.classList.remove("armed");
    setText(button, label);
  };
  const press = (): boolean => {
    if (timer) {
      disarm();
      act();
      return true;
    }
    timer = window.setTimeout(disarm, ARMED_MS);
    button.classList.add("armed");
    setText(button, question);
    return false;
  };
  return { button, press };
}

/** Set the text of a value, dimmed with its age if its source is silent for some seconds. */
export function setValue(element: Element, text: string, silentS: number): void {
  element.classList.toggle("silent", silentS > 0);
  setText(element, silentS > 0 ? `${text} · ${ageText(silentS)}` : text);
}

/** Age of a value in a few words. */
export function ageText(seconds: number): string {
  return seconds < 100 ? `${Math.floor(seconds)} s ago` : `${Math.floor(seconds / 60)} min ago`;
}

/** A text that goes on, without its full stop. */
export const clause = (text: string): string => text.replace(/\.$/, "");
/** Names as the subject of a sentence. */
export const are = (names: string[]): string => `${names.join(" and ")} ${names.length > 1 ? "are" : "is"}`;

/** Run a function at most once per frame, for any number of requests. */
export function oncePerFrame(work: () => unknown): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}

/** Format a number with this many decimal places, or a dash. */
export function decimal(value: number | undefined, places = 2): string {
  if (value === undefined || !Number.isFinite(value)) return "–";
  const text = value.toFixed(places);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

const ICONS = {
  up: "M3 10 8 5l5 5", down: "M3 6l5 5 5-5", remove: "M4 4l8 8M12 4l-8 8", plot: "M2 12l3-6 4 4 5-8", play: "M4 3l9 5-9 5z", pause: "M5 3v10M11 3v10",
};

/** Small icon, because fonts lack some symbols. */
export function icon(name: keyof typeof ICONS): SVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(svg.namespaceURI, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}
