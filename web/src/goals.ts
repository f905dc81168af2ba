// SPDX-License-Identifier: Apache-2.0
// A goal, set by a tap on the ground: position, height, and its progress. Shown if the vehicle accepts goals.

import {
  BufferGeometry, Camera, Group, Line, LineBasicMaterial, Mesh, MeshBasicMaterial, Object3D, Plane, Raycaster, RingGeometry, Vector2,
  Vector3, type Matrix4, type Scene as World,
} from "three";
import { ageText, clause, decimal, h, setText } from "./dom";
import type { Fleet } from "./fleet";
import type { Helm } from "./helm";
import { opened } from "./open_forms";
import type { Stream } from "./stream";

/** Distance of mouse movement above which a press rotates the view. */
const TAP_PX = 5;
const COLOR = 0x3ecf6e;
const IS_OVER = new Set(["done", "refused", "ended"]);
const SHOWN_MS = 15_000;

/** Node with a controller of a vehicle with odometry, by its topics; undefined if there is none. */
export function otherController(topics: Map<string, string>): string | undefined {
  const state = [...topics].find(([, type]) => type === "drone_bridge/msg/ControllerState")?.[0];
  return topics.has("odom") ? state?.slice(0, state.lastIndexOf("/")) : undefined;
}

export class Goals {
  readonly button = h("button.small.set-goal", { "aria-pressed": "false", hidden: true, onclick: () => this.#press() }, "Set a goal");
  readonly element = h("div.goal", { hidden: true, role: "status" });
  #text = h("span.goal-text");
  #height = h("input", { type: "number", step: 0.01, "aria-label": "Height of the goal, m" });
  #heightLabel = h("label.check", {}, "height", this.#height, "m");
  #go = h("button.primary", { onclick: () => this.#send() }, "Go");
  #cancel = h("button", { onclick: () => this.#giveUp() }, "Cancel");
  #mark = new Group();
  #way = new Line(new BufferGeometry(), new LineBasicMaterial({ color: COLOR }));
  #isArmed = false;
  /** Namespace of the vehicle for which a target is being tapped. */
  #prefix = "";
  #chosen?: Vector3;
  #root = "";
  /** Odometry of the vehicle, in whose frame its controller reports the position. */
  #frame = "";
  #endFrame = (): void => undefined;
  #poseOf: (frame: string) => Matrix4 | undefined = () => undefined;
  #vehicle?: Object3D;
  #shown = "";
  #overMs = Infinity;

  constructor(world: World, private camera: Camera, private stream: Stream, private helm: Helm, private fleet: Fleet, private say: (text: string) => void) {
    const ring = new Mesh(new RingGeometry(0.16, 0.24, 40), new MeshBasicMaterial({ color: COLOR, side: 2 }));
    ring.position.z = 0.01;
    this.#mark.add(ring, new Line(new BufferGeometry(), new LineBasicMaterial({ color: COLOR })));
    this.#mark.visible = this.#way.visible = this.#way.frustumCulled = false;
    world.add(this.#mark, this.#way);
    this.element.append(this.#text, this.#heightLabel, this.#go, this.#cancel);
    helm.addEventListener("change", () => this.#show());
    fleet.addEventListener("change", () => this.#show());
    setInterval(() => this.element.hidden || this.#show(), 1000); // for the age of a goal that is over
  }

  /** Offer no goals, for lack of a drawn scene. */
  disable(reason: string): void {
    this.button.disabled = true;
    this.button.title = reason;
  }

  /** Handle taps on the drawn scene. */
  watch(canvas: HTMLCanvasElement): void {
    let down: { x: number; y: number } | undefined;
    canvas.addEventListener("pointerdown", ({ offsetX: x, offsetY: y }) => (down = { x, y }));
    canvas.addEventListener("pointerup", ({ offsetX: x, offsetY: y }) => {
      if (this.#isArmed && down && Math.hypot(x - down.x, y - down.y) < TAP_PX) this.#tap(new Vector2((2 * x) / canvas.clientWidth - 1, 1 - (2 * y) / canvas.clientHeight));
    });
  }

  /** Draw the goal, and the straight line to it. */
  place(root: string, vehicle: Object3D | undefined, poseOf: (frame: string) => Matrix4 | undefined): void {
    this.#root = root;
    this.#poseOf = poseOf;
    this.#vehicle = vehicle?.visible ? vehicle : undefined;
    const goal = this.#goal;
    const isKept = goal && (!IS_OVER.has(goal.state) || performance.now() - this.#overMs < SHOWN_MS);
    const at = this.#chosen?.clone() ?? (isKept ? poseOf(goal.frame) && new Vector3(goal.x, goal.y, goal.z).applyMatrix4(poseOf(goal.frame)!) : undefined);
    this.#mark.visible = at !== undefined;
    this.#way.visible = at !== undefined && this.#vehicle !== undefined && (this.#chosen !== undefined || goal?.state === "going");
    if (!at) return;
    this.#mark.position.set(at.x, at.y, 0);
    (this.#mark.children[1] as Line).geometry.setFromPoints([new Vector3(), new Vector3(0, 0, at.z)]);
    if (this.#vehicle) this.#way.geometry.setFromPoints([this.#vehicle.position, at]);
  }

  get #goal() {
    return this.fleet.subject.vehicle?.goal ?? undefined;
  }

  get #flies(): boolean {
    return this.fleet.subject.vehicle?.axes.includes("z") ?? false;
  }

  #press(): void {
    if (this.fleet.subject.vehicle?.takes_goals) return this.#arm(!this.#isArmed);
    this.say(this.button.title);
  }

  #arm(isArmed: boolean): void {
    this.#isArmed = isArmed;
    this.#prefix = this.fleet.subject.prefix;
    if (!isArmed) this.#chosen = undefined;
    this.#endFrame();
    this.#frame = "";
    this.#endFrame = isArmed ? this.stream.subscribe(`${this.fleet.subject.prefix}odom`, ({ value }) => (this.#frame = value.header.frame_id)) : () => undefined;
    this.button.setAttribute("aria-pressed", String(isArmed));
    if (isArmed) opened(this.button, () => this.#isArmed && this.#arm(false));
    this.#show();
  }

  #tap(where: Vector2): void {
    const ray = new Raycaster();
    ray.setFromCamera(where, this.camera);
    const point = ray.ray.intersectPlane(new Plane(new Vector3(0, 0, 1), 0), new Vector3());
    if (!point) return;
    const height = this.#flies ? (this.#vehicle?.position.z ?? 1) : 0;
    this.#chosen = point.setZ(height);
    this.#height.value = height.toFixed(2);
    this.#show();
  }

  #send(): void {
    const { vehicle } = this.fleet.subject;
    if (!vehicle || !this.#chosen) return;
    const { frame, at } = this.#place(this.#chosen.clone().setZ(this.#flies ? Number(this.#height.value) : 0));
    this.helm.setGoal(vehicle.topic, frame, at.x, at.y, at.z);
    this.#arm(false);
  }

  /** Position in the scene, in the frame of the odometry if known. */
  #place(at: Vector3): { frame: string; at: Vector3 } {
    const pose = this.#frame ? this.#poseOf(this.#frame) : undefined;
    return pose ? { frame: this.#frame, at: at.clone().applyMatrix4(pose.clone().invert()) } : { frame: this.#root, at };
  }

  #giveUp(): void {
    const { vehicle } = this.fleet.subject;
    if (this.#isArmed) this.#arm(false);
    else if (vehicle) this.helm.cancelGoal(vehicle.topic);
  }

  #show(): void {
    const { vehicle } = this.fleet.subject;
    const may = this.helm.maySteer && vehicle?.takes_goals === true;
    const other = this.helm.maySteer && vehicle && !may ? otherController(this.fleet.topics()) : undefined;
    this.button.hidden = !may && !other;
    if (!this.button.disabled) this.button.title = other ? `No goals while ${other} controls it: start without control:=true.` : "";
    if (this.#isArmed && (!may || this.fleet.subject.prefix !== this.#prefix)) return this.#arm(false);
    const goal = this.#goal;
    const state = `${vehicle?.topic} ${goal?.state} ${goal?.text}`;
    if (state !== this.#shown) {
      this.#shown = state;
      this.#overMs = goal && IS_OVER.has(goal.state) ? performance.now() - 1000 * goal.age_s : Infinity;
      if (this.#overMs !== Infinity) setTimeout(() => this.#show(), SHOWN_MS + 100);
    }
    const isGone = !goal || (IS_OVER.has(goal.state) && performance.now() - this.#overMs > SHOWN_MS);
    this.element.hidden = !this.#isArmed && isGone;
    this.#go.hidden = this.#chosen === undefined;
    this.#heightLabel.hidden = this.#chosen === undefined || !this.#flies;
    this.#cancel.hidden = !this.#isArmed && (!goal || goal.state === "sent" || IS_OVER.has(goal.state));
    this.element.classList.toggle("error", !this.#isArmed && goal?.state === "refused");
    if (this.#isArmed && this.#chosen) {
      const { frame, at } = this.#place(this.#chosen);
      setText(this.#text, `Goal at x ${decimal(at.x)} y ${decimal(at.y)} m in ${frame}`);
    } else if (this.#isArmed) setText(this.#text, "Tap the target on the ground");
    else if (goal) {
      const left = [goal.distance != null ? `${decimal(goal.distance, 1)} m` : "", goal.left_s != null ? `${decimal(goal.left_s, 0)} s` : ""].filter(Boolean).join(", ");
      setText(this.#text, `${{ asked: "Goal", sent: "Goal", going: "On its way", done: "Arrived", refused: "Goal refused", ended: "Goal ended" }[goal.state]}: ${clause(goal.text)}${left && ` (${left} left)`}${IS_OVER.has(goal.state) ? `, ${ageText((performance.now() - this.#overMs) / 1000)}` : ""}`);
    }
  }
}
