// SPDX-License-Identifier: Apache-2.0
// Positions of everything in the root frame: vehicles with their trails, and their targets.

import {
  AmbientLight, AxesHelper, Box3, BufferAttribute, BufferGeometry, CylinderGeometry, DirectionalLight, Group,
  Fog, LineBasicMaterial, LineSegments, Matrix4, Mesh, MeshStandardMaterial, Object3D, PerspectiveCamera, Quaternion,
  RingGeometry, Scene as World, SphereGeometry, Vector3, WebGLRenderer,
} from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import URDFLoader from "urdf-loader";
import { areFinite, withWebGL } from "./browser_features";
import { ageText, h, panel } from "./dom";
import { drawing } from "./drawing_budget";
import type { Fleet } from "./fleet";
import { Goals } from "./goals";
import type { Helm } from "./helm";
import { whenRestarted } from "./restarts";
import { Scans } from "./scans";
import { GRID_M, SceneKey } from "./scene_key";
import type { Stream } from "./stream";
import { Trail } from "./trail";
import { type Landed, Sighting } from "./sightings";
import { isPad, Transforms } from "./transforms";

const REACH_M = 25;
/** Colours of trails, by the order in which vehicles appear. */
const TRAIL_COLORS = [0xff8a1f, 0x3e63dd, 0x30a46c, 0xe93d82, 0x8e4ec6, 0x00a2c7];
const DIM_OPACITY = 0.35;
/** Vehicles that have left are kept, but not more than this number. */
const MOST_GONE = 8;
const FRAME_MS = 1000 / 30;
/** Size of a vehicle that is drawn alone, pixels. */
const PORTRAIT: [number, number] = [320, 240];
/** Distance of the camera from its target, its factor of half the distance to the vehicle's target, and its time constant. */
const NEAREST_M = 3;
const BOTH_IN_VIEW = 3;
const EASE_MS = 300;
const DESCRIPTION = "robot_description";
const COLORS: Record<string, number> = { red: 0xe5484d, green: 0x30a46c, yellow: 0xf5d90a, blue: 0x3e63dd, gate: 0xff8a1f };

/** Vehicle with its model, if one is published. */
class Body {
  readonly object = new Group();
  frame = "";
  /** Height of its origin above its lowest part, m. */
  gear = 0;
  /** Age of its last sighting by another vehicle, s; 0 if it is new, or if it reports its place itself. */
  oldS = 0;
  readonly trail: Trail;
  /** Time at which its description disappeared; undefined while it is there. */
  goneMs?: number;

  constructor(world: World, color: number) {
    world.add(this.object);
    this.trail = new Trail(world, color);
  }

  model(description: string): void {
    const loader = new URDFLoader();
    loader.parseVisual = true;
    loader.parseCollision = false;
    const robot = loader.parse(description);
    this.frame = robot.urdfName ?? "";
    this.object.clear();
    this.gear = -new Box3().setFromObject(robot).min.z;
    this.object.add(robot);
  }

  /** Dim a vehicle that has left. */
  set isOld(isOld: boolean) {
    this.trail.isOld = isOld;
    this.object.traverse((part) => {
      if (!(part instanceof Mesh)) return;
      for (const material of [part.material].flat()) {
        material.transparent = isOld;
        material.opacity = isOld ? DIM_OPACITY : 1;
      }
    });
  }
}

export class Scene {
  readonly element: HTMLElement;
  #view = h("div.scene-view");
  #world = new World();
  /** Where a vehicle is drawn alone. */
  #portrait = new World();
  #camera = new PerspectiveCamera(50, 1, 0.02, 2000);
  #renderer?: WebGLRenderer;
  /** Of its own, so that the scene keeps its size. */
  #portraits?: WebGLRenderer;
  /** Signalled when the last picture is on the screen: without a graphics card that takes longer than the call. */
  #finished?: WebGLSync;
  #controls?: OrbitControls;
  #grid = new LineSegments(ground(), new LineBasicMaterial());
  #fog = new Fog(0, 8, 30);
  #transforms: Transforms;
  #bodies = new Map<string, Body>();
  #ends = new Map<string, () => void>();
  #marks = new Map<string, Object3D>();
  #root = "";
  /** Whether a vehicle has reported that it stands on the ground, and when, by the topic of its model. */
  #landed = new Map<string, Landed>();
  /** By the pad's frame. */
  #sightings = new Map<string, Sighting>();
  #drawnMs = 0;
  #lastTarget = new Vector3();
  #aside = new Vector3();
  #distance = NEAREST_M;
  #isVisible = true;
  #follow: HTMLInputElement;
  #goals: Goals;
  #scans: Scans;
  #levelPose = new Matrix4();
  #levelEnds: (() => void)[] = [];
  #levelPrefix = "";
  #height = 0;
  #target = markFor("target");
  #targetDistance?: number;
  #endTarget?: () => void;
  #isToReset = true;
  #key = new SceneKey();

  constructor(private stream: Stream, private fleet: Fleet, private helm: Helm, say: (text: string) => void) {
    this.#transforms = new Transforms(stream);
    this.#scans = new Scans(this.#world, stream, this.#transforms);
    this.#goals = new Goals(this.#world, this.#camera, stream, helm, fleet, say);
    this.#follow = h("input", { type: "checkbox", checked: true });
    const reset = h("button.small", { onclick: () => this.#lookFromBehind(), title: "View from behind the vehicle" }, "Reset view");
    const clear = h("button.small", { onclick: () => this.#bodies.forEach((body) => body.trail.clear()) }, "Clear trails");
    this.element = panel("scene", "Scene", [h("label.check", {}, this.#follow, "follow"), this.#goals.button, clear, reset], this.#view, this.#goals.element);
    this.#build();
    this.#view.append(this.#key.element);
    stream.addEventListener("graph", () => this.#findModels());
    stream.addEventListener("status", () => this.#showAges());
    whenRestarted(helm, (topic) => {
      this.#sightings.clear();
      this.#bodies.get(topic.slice(0, topic.lastIndexOf("/") + 1) + DESCRIPTION)?.trail.interrupt();
    });
    stream.addEventListener("seek", () => this.#sightings.clear());
    fleet.addEventListener("change", () => this.#onSubject());
    new ResizeObserver(() => this.#resize()).observe(this.#view);
    new IntersectionObserver((entries) => (this.#isVisible = entries.some((entry) => entry.isIntersecting))).observe(this.#view);
    requestAnimationFrame((nowMs) => this.#onFrame(nowMs));
  }

  #build(): void {
    Object3D.DEFAULT_UP.set(0, 0, 1);
    this.#camera.up.set(0, 0, 1);
    for (const world of [this.#world, this.#portrait]) {
      const sun = new DirectionalLight(0xffffff, 2.2);
      sun.position.set(-4, -6, 10);
      world.add(new AmbientLight(0xffffff, 1.4), sun);
    }
    this.#world.fog = this.#fog;
    this.#world.add(this.#grid, new AxesHelper(0.5), this.#target);
    this.#renderer = withWebGL(() => new WebGLRenderer({ antialias: true, alpha: true }));
    if (!this.#renderer) {
      const reason = "The scene needs WebGL, which this browser does not support.";
      this.#view.append(h("p.hint", {}, reason));
      this.#goals.disable(reason);
      return;
    }
    this.#renderer.domElement.role = "img";
    this.#renderer.domElement.ariaLabel = "The vehicles, their trails and their targets, in three dimensions";
    this.#view.append(this.#renderer.domElement);
    this.#goals.watch(this.#renderer.domElement);
    this.#controls = new OrbitControls(this.#camera, this.#renderer.domElement);
    this.#controls.enableDamping = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.#lookFromBehind();
  }

  /** Draw a vehicle alone, dimmed where it was last. Return whether it has a model and a place. */
  portray(prefix: string, canvas: HTMLCanvasElement): boolean {
    const body = this.#bodies.get(prefix + DESCRIPTION);
    const root = this.#transforms.root(body?.frame ?? "");
    const pose = body?.frame ? this.#transforms.toRoot(body.frame, root, true) : undefined;
    if (!body || !pose) return false;
    canvas.style.opacity = this.#transforms.toRoot(body.frame, root) ? "" : String(DIM_OPACITY);
    pose.decompose(body.object.position, body.object.quaternion, body.object.scale);
    const { position } = body.object;
    this.#grid.position.set(Math.round(position.x), Math.round(position.y), position.z < -0.2 ? Math.floor(position.z - 0.5) : 0);
    body.object.visible = true;
    this.#portrait.add(body.object, this.#grid);
    const camera = new PerspectiveCamera(40, PORTRAIT[0] / PORTRAIT[1], 0.02, 2000);
    camera.up.set(0, 0, 1);
    camera.position.copy(position).add(new Vector3(-1.3, -0.9, 0.8));
    camera.lookAt(position);
    this.#grid.material.color.set(getComputedStyle(document.documentElement).getPropertyValue("--grid").trim());
    this.#portraits ??= withWebGL(() => new WebGLRenderer({ antialias: true, alpha: true }));
    if (!this.#portraits) return false;
    this.#portraits.setSize(...PORTRAIT);
    this.#portraits.render(this.#portrait, camera);
    [canvas.width, canvas.height] = PORTRAIT;
    canvas.getContext("2d")!.drawImage(this.#portraits.domElement, 0, 0);
    this.#grid.position.set(0, 0, 0);
    this.#world.add(body.object, this.#grid);
    return true;
  }

  #lookFromBehind(): void {
    const target = this.#chosen()?.object.position ?? new Vector3();
    this.#camera.position.copy(target).add(new Vector3(-2.3, -1.5, 1.4));
    this.#controls?.target.copy(target);
    this.#lastTarget.copy(target);
    this.#aside.set(0, 0, 0);
    this.#distance = NEAREST_M;
  }

  #chosen(): Body | undefined {
    return this.#bodies.get(this.fleet.subject.prefix + DESCRIPTION) ?? this.#bodies.values().next().value;
  }

  /** Each trail with the name of its vehicle, or of its namespace. */
  #trails(): [string, Trail][] {
    return [...this.#bodies].map(([topic, { trail, goneMs, oldS }]) => {
      const prefix = topic.slice(0, -DESCRIPTION.length);
      const name = this.fleet.subjects.find((subject) => subject.prefix === prefix)?.name ?? (prefix.replace(/^\/|\/$/g, "") || "vehicle");
      const goneS = goneMs === undefined ? this.helm.link.ageS(Date.now()) : (performance.now() - goneMs) / 1000;
      const age = goneS > 0 ? ageText(goneS) : "";
      const seen = oldS ? `last seen${Number.isFinite(oldS) ? ` ${ageText(oldS)}` : " at the landing"}` : "";
      return [[name, age || seen, trail.isInterrupted && "restarted"].filter(Boolean).join(" · "), trail];
    });
  }

  #findModels(): void {
    const present = [...this.stream.topics].filter(([topic]) => topic.endsWith(`/${DESCRIPTION}`)).map(([topic]) => topic);
    for (const topic of present) {
      if (this.#ends.has(topic)) continue;
      const prefix = topic.slice(0, -DESCRIPTION.length);
      const landed = this.stream.subscribe(`${prefix}landed`, (arrival) => {
        this.#landed.set(topic, { receivedMs: arrival.receivedMs, isLanded: arrival.value.data === true });
      });
      const model = this.stream.subscribe(topic, (arrival) => {
        const body = this.#bodies.get(topic) ?? new Body(this.#world, TRAIL_COLORS[this.#bodies.size % TRAIL_COLORS.length]!);
        this.#bodies.set(topic, body);
        body.model(arrival.value.data);
        body.goneMs = undefined;
        this.#showAges();
      });
      this.#ends.set(topic, () => [landed, model].forEach((end) => end()));
    }
    for (const [topic, end] of this.#ends) {
      if (present.includes(topic)) continue;
      end();
      this.#ends.delete(topic);
      const body = this.#bodies.get(topic);
      if (body) body.goneMs = performance.now();
    }
    this.#forgetOldest();
    this.#showAges();
  }

  /** Dim the vehicles that have left, and all without a connection. */
  #showAges(): void {
    const isLost = this.stream.status === "lost";
    const bodies = [...this.#bodies.values()];
    for (const body of bodies) body.isOld = isLost || body.goneMs !== undefined || body.oldS > 0;
    this.element.dataset["models"] = String(bodies.filter(({ goneMs }) => goneMs === undefined).length);
    this.element.dataset["old"] = String(bodies.filter(({ goneMs }) => isLost || goneMs !== undefined).length);
  }

  /** Keep at most MOST_GONE vehicles that have left. */
  #forgetOldest(): void {
    const gone = [...this.#bodies].filter(([, { goneMs }]) => goneMs !== undefined).sort(([, a], [, b]) => b.goneMs! - a.goneMs!);
    for (const [topic, body] of gone.slice(MOST_GONE)) {
      this.#world.remove(body.object);
      body.trail.remove();
      this.#bodies.delete(topic);
    }
  }

  #onSubject(): void {
    if (this.fleet.subject.prefix === this.#levelPrefix) return;
    this.#watchLevel();
    this.#watchTarget();
    this.#isToReset = true;
  }

  /** Target of seek_target: straight ahead, to which it turns, at the estimated distance. */
  #watchTarget(): void {
    this.#endTarget?.();
    this.#targetDistance = undefined;
    const topic = `${this.fleet.subject.prefix}drone_controller/state`;
    this.#endTarget = this.stream.subscribe(topic, ({ value: { behaviour, distance } }) => {
      this.#targetDistance = behaviour === "seek_target" && Number.isFinite(distance) ? distance : undefined;
    });
  }

  /** Vehicle without a tf frame: its attitude and altitude are measured, and drawn as such. */
  #watchLevel(): void {
    const { prefix } = this.fleet.subject;
    this.#levelPrefix = prefix;
    for (const end of this.#levelEnds) end();
    this.#levelPose.identity();
    this.#height = 0;
    this.#levelEnds = [
      this.stream.subscribe(`${prefix}imu/data`, ({ value: { orientation, orientation_covariance: covariance } }) => {
        if (covariance[0] === -1 || !areFinite(orientation)) return;
        const { x, y, z, w } = orientation;
        this.#levelPose.makeRotationFromQuaternion(new Quaternion(x, y, z, w)).setPosition(0, 0, this.#height);
      }),
      this.stream.subscribe(`${prefix}height`, ({ value }) => {
        if (!Number.isFinite(value.point.z)) return;
        this.#height = value.point.z;
        this.#levelPose.setPosition(0, 0, this.#height);
      }),
    ];
  }

  #resize(): void {
    const { clientWidth, clientHeight } = this.#view;
    if (!clientWidth || !clientHeight) return;
    this.#renderer?.setSize(clientWidth, clientHeight);
    this.#camera.aspect = clientWidth / clientHeight;
    this.#camera.updateProjectionMatrix();
    this.#paint();
    drawing.charge(() => this.#renderer?.render(this.#world, this.#camera)); // it is empty now
  }

  #onFrame(nowMs: number): void {
    requestAnimationFrame((next) => this.#onFrame(next));
    if (nowMs - this.#drawnMs >= FRAME_MS && !this.#isBusy) drawing.request(this, (scale) => this.#draw(scale));
  }

  get #isBusy(): boolean {
    const context = this.#renderer?.getContext() as WebGL2RenderingContext | undefined;
    return !context || (this.#finished !== undefined && context.clientWaitSync(this.#finished, 0, 0) === context.TIMEOUT_EXPIRED);
  }

  #draw(scale: number): void {
    const nowMs = performance.now();
    this.#place(nowMs - this.#drawnMs);
    this.#drawnMs = nowMs;
    if (!this.#isVisible || !this.#renderer) return;
    this.#paint();
    this.#controls?.update();
    this.#key.show(this.#camera, this.fleet.subject.vehicle?.has_north === true, this.#trails());
    const ratio = scale * Math.min(2, window.devicePixelRatio);
    if (this.#renderer.getPixelRatio() !== ratio) this.#renderer.setPixelRatio(ratio);
    this.#renderer.render(this.#world, this.#camera);
    const context = this.#renderer.getContext() as WebGL2RenderingContext;
    context.deleteSync(this.#finished ?? null);
    this.#finished = context.fenceSync(context.SYNC_GPU_COMMANDS_COMPLETE, 0) ?? undefined;
    context.flush();
  }

  #paint(): void {
    const style = getComputedStyle(document.documentElement);
    this.#grid.material.color.set(style.getPropertyValue("--grid").trim());
    this.#fog.color.set(style.getPropertyValue("--panel").trim());
    const distance = this.#camera.position.distanceTo(this.#controls?.target ?? new Vector3());
    this.#fog.near = 2 * distance;
    this.#fog.far = 6 * distance + 10;
  }

  #place(elapsedMs: number): void {
    const chosen = this.#chosen();
    // Without a model, other frames are drawn anyway.
    const frame = chosen?.frame || this.#transforms.first;
    const root = frame ? this.#transforms.root(frame) : "";
    if (root !== this.#root) {
      this.#root = root;
      for (const body of this.#bodies.values()) body.trail.clear();
      this.#sightings.clear();
      this.#isToReset = true;
    }
    const isTop = chosen !== undefined && root === chosen.frame;
    const lift = isTop ? this.#levelPose : undefined;
    this.#see(root);
    for (const body of this.#bodies.values()) {
      const sighting = this.#sightings.get(this.#transforms.padOf(body.frame) ?? "");
      const pose = !body.frame ? undefined : sighting ? this.#onPad(sighting, body) : this.#transforms.toRoot(body.frame, root, body.goneMs !== undefined);
      body.object.visible = pose !== undefined;
      if (!pose) continue;
      if (lift) pose.premultiply(lift);
      pose.decompose(body.object.position, body.object.quaternion, body.object.scale);
      if (body.goneMs === undefined && (!isTop || body !== chosen)) body.trail.add(body.object.position, performance.now());
    }
    this.#placeMarks(root, lift);
    this.element.dataset["scanned"] = String(this.#scans.place(root, lift));
    this.#goals.place(root, chosen?.object, (frame) => (frame === root || frame === "" ? new Matrix4() : this.#transforms.toRoot(frame, root)));
    this.#target.visible = this.#targetDistance !== undefined && chosen !== undefined && chosen.object.visible;
    if (this.#target.visible) {
      this.#target.position.set(this.#targetDistance!, 0, 0).applyQuaternion(chosen!.object.quaternion).add(chosen!.object.position);
    }
    if (this.#isToReset && chosen?.object.visible) {
      this.#isToReset = false;
      this.#lookFromBehind();
    }
    // Under water the ground is below the vehicle, instead of a line at eye level.
    const height = chosen?.object.visible ? chosen.object.position.z : 0;
    this.#grid.position.z = height < -0.2 ? Math.floor(height - 0.5) : 0;
    if (chosen && this.#controls) this.#frameBoth(chosen, this.#controls.target, elapsedMs);
  }

  /** Follow the vehicle and its target: look at their midpoint, from a distance that shows both. */
  #frameBoth(chosen: Body, lookedAt: Vector3, elapsedMs: number): void {
    if (this.#follow.checked) this.#aside.lerp(this.#halfwayFrom(chosen), 1 - Math.exp(-elapsedMs / EASE_MS));
    const middle = chosen.object.position.clone().add(this.#aside);
    if (this.#follow.checked) {
      const moved = middle.clone().sub(this.#lastTarget);
      lookedAt.add(moved);
      const distance = Math.max(NEAREST_M, BOTH_IN_VIEW * this.#aside.length());
      const zoom = distance / this.#distance;
      this.#distance = distance;
      this.#camera.position.add(moved).sub(lookedAt).multiplyScalar(zoom).add(lookedAt);
    }
    this.#lastTarget.copy(middle);
  }

  /** Vector from the vehicle to the midpoint between it and its target; none without a visible target. */
  #halfwayFrom(chosen: Body): Vector3 {
    const prefix = chosen.frame.slice(0, chosen.frame.lastIndexOf("/") + 1);
    const target = this.#target.visible ? this.#target : this.#marks.get(`${prefix}landing_pad`);
    return target?.visible ? target.position.clone().sub(chosen.object.position).divideScalar(2) : new Vector3();
  }

  /** Update the sightings of pads by the drones above them. */
  #see(root: string): void {
    for (const pad of this.#transforms.frames) {
      const prefix = pad.slice(0, pad.lastIndexOf("/") + 1);
      const [topic, body] = [...this.#bodies].find(([, { frame }]) => isPad(pad) && frame === `${prefix}base_link`) ?? [];
      const drone = body && this.#transforms.toRoot(body.frame, root);
      if (!drone) continue;
      const sighting = this.#sightings.get(pad) ?? new Sighting();
      this.#sightings.set(pad, sighting);
      const receivedMs = this.#transforms.receivedMs(pad);
      const pose = receivedMs === undefined ? undefined : this.#transforms.toRoot(pad, root);
      if (pose) sighting.see(pose, receivedMs!, drone);
      const { vehicle } = this.fleet.subjects.find((subject) => subject.prefix + DESCRIPTION === topic) ?? {};
      sighting.stand(this.#landed.get(topic!), drone, body!.gear, vehicle?.below);
    }
  }

  /** Pose of a vehicle that another one sees by its pad; undefined before the first sighting. */
  #onPad(sighting: Sighting, body: Body): Matrix4 | undefined {
    const wasOld = body.oldS > 0;
    body.oldS = this.stream.isRecording ? 0 : sighting.oldS(performance.now());
    if (wasOld !== body.oldS > 0) this.#showAges();
    const onPad = this.#transforms.toRoot(body.frame, this.#transforms.padOf(body.frame)!, true);
    return onPad && sighting.pose?.clone().multiply(onPad);
  }

  /** Frames that represent objects: landing pad, buoys, targets. */
  #placeMarks(root: string, lift: Matrix4 | undefined): void {
    const seen = new Set<string>();
    for (const frame of this.#transforms.frames) {
      const name = frame.slice(frame.lastIndexOf("/") + 1);
      if (!/pad$|target|buoy|gate/.test(name)) continue;
      const pose = this.#sightings.has(frame) ? this.#sightings.get(frame)!.pose?.clone() : this.#transforms.toRoot(frame, root);
      if (!pose) continue;
      if (lift) pose.premultiply(lift);
      let mark = this.#marks.get(frame);
      if (!mark) {
        mark = markFor(name);
        this.#marks.set(frame, mark);
        this.#world.add(mark);
      }
      pose.decompose(mark.position, mark.quaternion, mark.scale);
      seen.add(frame);
    }
    for (const [frame, mark] of this.#marks) mark.visible = seen.has(frame);
    this.element.dataset["marks"] = String(seen.size);
  }
}

/** Grid of GRID_M, in pieces: some machines do not draw a line that passes behind the camera. */
function ground(): BufferGeometry {
  const points: number[] = [];
  for (let along = -REACH_M; along < REACH_M; along += GRID_M) {
    for (let across = -REACH_M; across <= REACH_M; across += GRID_M) {
      points.push(along, across, 0, along + GRID_M, across, 0, across, along, 0, across, along + GRID_M, 0);
    }
  }
  return new BufferGeometry().setAttribute("position", new BufferAttribute(new Float32Array(points), 3));
}

function markFor(name: string): Object3D {
  const color = Object.entries(COLORS).find(([word]) => name.includes(word))?.[1] ?? 0xe5484d;
  const material = new MeshStandardMaterial({ color, roughness: 0.6 });
  if (name.endsWith("pad")) {
    const pad = new Group();
    const plate = new Mesh(new CylinderGeometry(0.3, 0.3, 0.02, 40), new MeshStandardMaterial({ color: 0x3b4252 }));
    plate.rotateX(Math.PI / 2);
    const ring = new Mesh(new RingGeometry(0.17, 0.21, 40), new MeshStandardMaterial({ color: 0xffffff, side: 2 }));
    ring.position.z = 0.012;
    pad.add(plate, ring);
    return pad;
  }
  if (name.includes("gate")) {
    const pole = new Mesh(new CylinderGeometry(0.08, 0.08, 2, 20), material);
    pole.rotateX(Math.PI / 2);
    return new Group().add(pole);
  }
  return new Mesh(new SphereGeometry(0.25, 28, 20), material);
}
