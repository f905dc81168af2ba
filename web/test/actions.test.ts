// SPDX-License-Identifier: Apache-2.0
// Buttons of a class's requests: one press or two, on hold, and while another person steers.
import assert from "node:assert/strict";
import test from "node:test";
import { Actions } from "../src/actions";
import { Fleet } from "../src/fleet";
import type { Helm } from "../src/helm";
import type { Stream } from "../src/stream";

/** As much of an element as a button needs. */
class Element extends EventTarget {
  readonly classList = { add: () => undefined, remove: () => undefined };
  children: Element[] = [];
  textContent = "";
  append(...parts: (Element | string)[]): void {
    this.textContent = parts.filter((part) => typeof part === "string").join("");
    this.replaceChildren(...parts.filter((part): part is Element => part instanceof Element));
  }
  replaceChildren(...children: Element[]): void {
    this.children = children;
  }
  setAttribute(): void {}
}

const NODE = "/arm_bridge";
const FURTHER = Object.fromEntries([...Array(6).keys()].map((number) => [`${NODE}/light_${number}`, false]));
const BUTTONS: Record<string, boolean> = { [`${NODE}/leap`]: true, [`${NODE}/land`]: false, [`${NODE}/beep`]: false, [`${NODE}/emergency`]: false };
const CUTS = { [`${NODE}/emergency`]: { action: "cut motors", effect: "it falls" } };

/** Return the buttons of a vehicle by label, and the services that they call. */
function shown(state: { pilot?: "other"; isStopped?: boolean; buttons?: typeof BUTTONS }): { rows: string[][]; buttons: Map<string, Element>; called: string[] } {
  Object.assign(globalThis, { document: { createElement: () => new Element() }, window: globalThis });
  const called: string[] = [];
  const vehicle = { topic: "/cmd_vel_stamped", name: "arm", buttons: BUTTONS, emergencies: CUTS, ...state };
  const helm = Object.assign(new EventTarget(), { vehicles: [vehicle], isStopped: () => state.isStopped === true });
  const services = new Map([...Object.keys(vehicle.buttons), `${NODE}/pause`, "/takeoff"].map((name) => [name, { type: "std_srvs/srv/Trigger" }]));
  const call = (name: string): Promise<object> => Promise.resolve((called.push(name), { message: "done" }));
  const stream = Object.assign(new EventTarget(), { topics: new Map(), services, node: "/web_bridge", call });
  const fleet = new Fleet(stream as unknown as Stream, helm as unknown as Helm);
  const { element } = new Actions(stream as unknown as Stream, helm as unknown as Helm, fleet, () => undefined);
  helm.dispatchEvent(new Event("change"));
  const [first, further, emergencies] = (element as unknown as Element).children;
  const rows = [first!, further!.children[1]!, emergencies!].map(({ children }) => children);
  return { rows: rows.map((row) => row.map(({ textContent }) => textContent)), buttons: new Map(rows.flat().map((each) => [each.textContent, each])), called };
}

test("the requests of a class are buttons, eight of them at once, and the other services of its node are not", () => {
  assert.deepEqual(shown({}).rows, [["leap", "land", "beep", "takeoff"], [], ["Emergency: cut motors"]]);
  const many = ["leap", "land", "beep", "light 0", "light 1", "light 2", "light 3", "takeoff"];
  assert.deepEqual(shown({ buttons: { ...BUTTONS, ...FURTHER } }).rows, [many, ["light 4", "light 5"], ["Emergency: cut motors"]]);
});

for (const [name, state, moves] of [
  ["free", {}, true],
  ["held", { isStopped: true }, false],
  ["steered by another person", { pilot: "other" }, false],
] as const) {
  test(`one press ends a motion, and two presses begin one, of a vehicle that is ${name}`, (context) => {
    context.mock.timers.enable({ apis: ["setTimeout"] });
    const { buttons, called } = shown(state);
    const press = (label: string): void => void buttons.get(label)!.dispatchEvent(new Event("click"));
    for (const label of ["land", "beep", "leap", "takeoff"]) press(label);
    assert.deepEqual(called, [`${NODE}/land`, `${NODE}/beep`]);
    for (const label of ["leap", "takeoff"]) press(label);
    assert.deepEqual(called.slice(2), moves ? [`${NODE}/leap`, "/takeoff"] : []);
  });
}
