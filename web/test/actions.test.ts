// SPDX-License-Identifier: Apache-2.0
// Buttons of a vehicle's services: one press or two, on hold, and while another person steers; switches.
import assert from "node:assert/strict";
import test from "node:test";
import { Actions, outcome } from "../src/actions";
import { Fleet } from "../src/fleet";
import type { Helm } from "../src/helm";
import type { Stream } from "../src/stream";

/** As much of an element as a button needs. */
class Element extends EventTarget {
  readonly classList = { add: () => undefined, remove: () => undefined };
  children: Element[] = [];
  textContent = "";
  ariaChecked = "false";
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

/** Return the buttons of a vehicle by label, the requests that they make, and what they say. */
function shown(state: { pilot?: "other"; isStopped?: boolean; buttons?: typeof BUTTONS }, ...others: [string, string][]): { rows: string[][]; buttons: Map<string, Element>; called: string[]; asked: object[]; said: string[] } {
  Object.assign(globalThis, { document: { createElement: () => new Element() }, window: globalThis });
  const called: string[] = [], asked: object[] = [], said: string[] = [];
  const vehicle = { topic: "/cmd_vel_stamped", name: "arm", buttons: BUTTONS, emergencies: CUTS, ...state };
  const helm = Object.assign(new EventTarget(), { vehicles: [vehicle, { ...vehicle, topic: "/other/cmd_vel_stamped", name: "other" }], isStopped: () => state.isStopped === true });
  const triggers = [...Object.keys(vehicle.buttons), `${NODE}/pause`, "/takeoff"].map((name): [string, string] => [name, "std_srvs/srv/Trigger"]);
  const services = new Map([...triggers, ...others].map(([name, type]) => [name, { type }]));
  const call = (name: string, request: object): Promise<object> => Promise.resolve((called.push(name), asked.push(request), { message: "done", success: !name.endsWith("trim") }));
  const stream = Object.assign(new EventTarget(), { topics: new Map(), services, node: "/web_bridge", call });
  const fleet = new Fleet(stream as unknown as Stream, helm as unknown as Helm);
  const { element } = new Actions(stream as unknown as Stream, helm as unknown as Helm, fleet, (text) => void said.push(text));
  helm.dispatchEvent(new Event("change"));
  const [first, further, emergencies] = (element as unknown as Element).children;
  const rows = [first!, further!.children[1]!, emergencies!].map(({ children }) => children);
  return { rows: rows.map((row) => row.map(({ textContent }) => textContent)), buttons: new Map(rows.flat().map((each) => [each.textContent, each])), called, asked, said };
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
    context.mock.timers.tick(3_000); // the time for the second press
    press("leap");
    assert.equal(called.length, 2);
    for (const label of ["leap", "takeoff", "takeoff"]) press(label);
    assert.deepEqual(called.slice(2), moves ? [`${NODE}/leap`, "/takeoff"] : []);
  });
}

test("each answer is shown as a sentence", () => {
  assert.deepEqual([outcome("beep", "sent", true), outcome("takeoff", "ok", true), outcome("run", ""), outcome("land", "it flies", false), outcome("land", "Landed.", true)],
    ["beep was sent.", 'takeoff: the vehicle answers "ok".', "run: done.", "land failed: it flies.", "Landed."]);
});

test("a flat trim is a button of one press, whose answer is shown", async () => {
  const { buttons, called, said } = shown({}, ["/flat_trim", "std_srvs/srv/Trigger"]);
  buttons.get("flat trim")!.dispatchEvent(new Event("click"));
  await new Promise(setImmediate);
  assert.deepEqual([called, said], [["/flat_trim"], ["flat trim failed: done."]]);
});

test("a vehicle in a namespace within keeps its buttons to itself", () => {
  assert.deepEqual(shown({}, ["/other/flat_trim", "std_srvs/srv/Trigger"], ["/other/lights", "std_srvs/srv/SetBool"]).rows, shown({}).rows);
});

test("a service with a bool is a switch, except those of STOP and its kind", async () => {
  const { rows, buttons, asked } = shown({}, ...["lights", "hold", "hover", "assume_flying"].map((name): [string, string] => [`${NODE}/${name}`, "std_srvs/srv/SetBool"]));
  assert.deepEqual(rows[0], ["leap", "land", "beep", "takeoff", "lights"]);
  const lights = buttons.get("lights")!;
  for (const isOn of [true, false]) {
    lights.dispatchEvent(new Event("click"));
    await new Promise(setImmediate);
    assert.equal(lights.ariaChecked, String(isOn));
  }
  assert.deepEqual(asked, [{ data: true }, { data: false }]);
});
