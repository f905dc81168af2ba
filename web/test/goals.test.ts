// SPDX-License-Identifier: Apache-2.0
// A target that was tapped for one vehicle is not sent to another one.
import assert from "node:assert/strict";
import test from "node:test";
import { PerspectiveCamera, Scene as World } from "three";
import { Fleet } from "../src/fleet";
import { Goals, otherController } from "../src/goals";
import type { Helm, Vehicle } from "../src/helm";
import type { Stream } from "../src/stream";

/** As much of an element as the form of a goal needs. */
class Element extends EventTarget {
  readonly classList = { add: () => undefined, toggle: () => undefined };
  hidden = false;
  textContent = "";
  value = "";
  readonly clientWidth = 2;
  readonly clientHeight = 2;
  constructor(readonly name: string) {
    super();
  }
  append(): void {}
  setAttribute(): void {}
}

test("choosing another vehicle gives up a target that was tapped before", (context) => {
  context.mock.timers.enable({ apis: ["setInterval"] });
  const made: Element[] = [];
  const createElement = (name: string): Element => (made.push(new Element(name)), made.at(-1)!);
  Object.assign(globalThis, { document: { createElement } });
  const sent: string[] = [];
  const vehicle = (name: string): Vehicle => ({ topic: `/${name}/cmd_vel_stamped`, name, axes: ["x"], takes_goals: true, goal: null }) as unknown as Vehicle;
  const helm = Object.assign(new EventTarget(), { vehicles: [vehicle("a"), vehicle("b")], maySteer: true, setGoal: (topic: string) => sent.push(topic) });
  const stream = Object.assign(new EventTarget(), { topics: new Map(), subscribe: () => () => undefined });
  const fleet = new Fleet(stream as unknown as Stream, helm as unknown as Helm);
  helm.dispatchEvent(new Event("change"));
  const camera = new PerspectiveCamera();
  camera.position.z = 5;
  camera.updateMatrixWorld();
  const goals = new Goals(new World(), camera, stream as unknown as Stream, helm as unknown as Helm, fleet, () => undefined);
  const canvas = new Element("canvas");
  goals.watch(canvas as unknown as HTMLCanvasElement);
  const tap = (): void => {
    goals.button.dispatchEvent(new Event("click"));
    for (const name of ["pointerdown", "pointerup"]) canvas.dispatchEvent(Object.assign(new Event(name), { offsetX: 1, offsetY: 1 }));
  };
  const [, go] = made.filter(({ name }) => name === "button");
  tap();
  fleet.choose("/b/");
  go!.dispatchEvent(new Event("click"));
  assert.deepEqual(sent, []);
  tap();
  go!.dispatchEvent(new Event("click"));
  assert.deepEqual(sent, ["/b/cmd_vel_stamped"]);
});

test("the text of a goal has one full stop at most", (context) => {
  context.mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
  const made: Element[] = [];
  Object.assign(globalThis, { document: { createElement: (name: string): Element => (made.push(new Element(name)), made.at(-1)!) } });
  const goal = { state: "going", text: "Accepted.", distance: 3, left_s: null, age_s: 2 };
  const helm = Object.assign(new EventTarget(), { vehicles: [{ topic: "/cmd_vel_stamped", name: "a", axes: ["x"], goal }] });
  const stream = Object.assign(new EventTarget(), { topics: new Map() }) as unknown as Stream;
  new Goals(new World(), new PerspectiveCamera(), stream, helm as unknown as Helm, new Fleet(stream, helm as unknown as Helm), () => undefined);
  const shown = (): string | undefined => (helm.dispatchEvent(new Event("change")), made.find(({ name }) => name === "span")?.textContent);
  assert.equal(shown(), "On its way: Accepted (3.0 m left)");
  Object.assign(goal, { state: "done", text: "Is at the goal.", distance: null });
  assert.equal(shown(), "Arrived: Is at the goal, 2 s ago");
});

test("a vehicle with odometry and another controller takes no goals, which its button says", () => {
  const state: [string, string] = ["drone_controller/state", "drone_bridge/msg/ControllerState"], odom: [string, string] = ["odom", "nav_msgs/msg/Odometry"];
  assert.deepEqual([[state, odom], [odom], [state]].map((topics) => otherController(new Map(topics))), ["drone_controller", undefined, undefined]);
});
