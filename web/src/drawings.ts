// SPDX-License-Identifier: Apache-2.0
// Drawing of each message type. Loaded when the first layer is switched on.

import {
  AxesHelper, BoxGeometry, BufferAttribute, BufferGeometry, CanvasTexture, Color, CylinderGeometry, DataTexture, DoubleSide,
  Group, Line, LineBasicMaterial, LineSegments, Matrix4, Mesh, MeshBasicMaterial, MeshStandardMaterial, NearestFilter, Object3D,
  PlaneGeometry, Points, PointsMaterial, Quaternion, RGBAFormat, SphereGeometry, Sprite, SpriteMaterial, Vector3, ConeGeometry,
} from "three";
import { areFinite } from "./browser_features";
import type { Arrival, Message } from "./stream";

const MOST_POINTS = 200_000;
const MOST_MARKERS = 2_000;
const MOST_CELLS = 4096 * 4096;
const TRACK_POINTS = 5_000;
const EARTH_M = 6_371_000;
const PATH = 0x3e9bff, SCAN = 0xff4fa0, POSES = 0x30c48d, TRACK = 0xf5b50a;

/** Group of objects that shows the messages of one layer. */
export interface Drawing {
  readonly group: Group;
  /** Frame of the group; undefined if each part has its own. */
  frame?: string;
  take: (arrival: Arrival) => void;
  /** Position parts with their own frames, and remove expired ones. */
  place?: (poseOf: (frame: string) => Matrix4 | undefined) => void;
  close: () => void;
}

/** An undrawable message leaves nothing. */
export function drawingOf(type: string): Drawing | undefined {
  const make = DRAWINGS[type];
  return make?.();
}

/** Object that is created anew by each message. */
function remade(make: (message: Message) => Object3D | undefined): Drawing {
  const group = new Group();
  const drawing: Drawing = {
    group,
    frame: "",
    take: ({ value }: Arrival) => {
      drawing.frame = value.header.frame_id;
      empty(group);
      const object = make(value);
      if (object) group.add(object);
    },
    close: () => empty(group),
  };
  return drawing;
}

const DRAWINGS: Record<string, () => Drawing> = {
  "sensor_msgs/msg/LaserScan": () => remade(scan),
  "sensor_msgs/msg/PointCloud2": () => remade(cloud),
  "nav_msgs/msg/Path": () => remade(({ poses }) => line(poses.filter(({ pose }: Message) => areFinite(pose.position)).map(({ pose }: Message) => vector(pose.position)), PATH)),
  "geometry_msgs/msg/PoseArray": () => remade(({ poses }) => arrows(poses)),
  "geometry_msgs/msg/PoseStamped": () => remade(({ pose }) => arrows([pose])),
  "nav_msgs/msg/OccupancyGrid": () => remade(grid),
  "sensor_msgs/msg/NavSatFix": track,
  "visualization_msgs/msg/Marker": () => markers((message) => [message]),
  "visualization_msgs/msg/MarkerArray": () => markers((message) => message.markers),
};

function vector({ x, y, z }: Message): Vector3 {
  return new Vector3(x, y, z);
}

function geometryOf(positions: Float32Array, colours?: Float32Array): BufferGeometry {
  const geometry = new BufferGeometry().setAttribute("position", new BufferAttribute(positions, 3));
  if (colours) geometry.setAttribute("color", new BufferAttribute(colours, 3));
  return geometry;
}

function line(points: Vector3[], color: number): Line {
  return uncut(new Line(new BufferGeometry().setFromPoints(points), new LineBasicMaterial({ color })));
}

function uncut<T extends Object3D>(object: T): T {
  object.frustumCulled = false;
  return object;
}

function dots(positions: Float32Array, size: number, color: number, colours?: Float32Array): Points {
  const material = new PointsMaterial({ size, sizeAttenuation: size < 1, vertexColors: colours !== undefined, color: colours ? 0xffffff : color });
  return uncut(new Points(geometryOf(positions, colours), material));
}

function scan({ angle_min: first, angle_increment: step, range_min: least, range_max: most, ranges }: Message): Points {
  const positions: number[] = [];
  for (let index = 0; index < Math.min(ranges.length, MOST_POINTS); index++) {
    const range = ranges[index] as number;
    if (!(range >= least && range <= most)) continue;
    positions.push(range * Math.cos(first + index * step), range * Math.sin(first + index * step), 0);
  }
  return dots(new Float32Array(positions), 3, SCAN);
}

const READERS: Record<number, [keyof DataView, number]> = {
  1: ["getInt8", 1], 2: ["getUint8", 1], 3: ["getInt16", 2], 4: ["getUint16", 2], 5: ["getInt32", 4], 6: ["getUint32", 4], 7: ["getFloat32", 4], 8: ["getFloat64", 8],
};

function cloud({ fields, width, height, point_step: step, data, is_bigendian: isBig }: Message): Points | undefined {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const reader = (name: string): ((at: number) => number) | undefined => {
    const field = fields.find((each: Message) => each.name === name);
    const [method, size] = READERS[field?.datatype] ?? [];
    if (!field || !method || !size || field.offset + size > step) return undefined;
    return (at) => (view[method] as (offset: number, isLittle: boolean) => number).call(view, at + field.offset, !isBig);
  };
  const [x, y, z] = [reader("x"), reader("y"), reader("z")];
  const total = step > 0 ? Math.min(width * height, Math.floor(view.byteLength / step)) : 0;
  if (!x || !y || !z || total === 0) return undefined;
  const every = Math.max(1, Math.ceil(total / MOST_POINTS));
  const packed = fields.find((each: Message) => each.name === "rgb" || each.name === "rgba");
  const shade = reader("intensity") ?? z;
  const positions: number[] = [], shades: number[] = [], colours: number[] = [];
  for (let index = 0; index < total; index += every) {
    const at = index * step;
    const point = [x(at), y(at), z(at)];
    if (!point.every(Number.isFinite)) continue;
    positions.push(...point);
    if (packed) {
      const bits = view.getUint32(at + packed.offset, !isBig);
      colours.push(((bits >> 16) & 255) / 255, ((bits >> 8) & 255) / 255, (bits & 255) / 255);
    } else shades.push(shade(at));
  }
  if (!packed) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of shades) [low, high] = [Math.min(low, value), Math.max(high, value)];
    const color = new Color();
    for (const value of shades) {
      color.setHSL(0.68 * (1 - (value - low) / (high - low || 1)), 0.85, 0.55);
      colours.push(color.r, color.g, color.b);
    }
  }
  return dots(new Float32Array(positions), 2.5, 0xffffff, new Float32Array(colours));
}

/** Arrow along x of each pose. */
function arrows(poses: Message[]): LineSegments {
  const points: Vector3[] = [];
  for (const { position, orientation } of poses.slice(0, MOST_MARKERS)) {
    if (!areFinite(position, orientation)) continue;
    const { x, y, z, w } = orientation;
    const turn = new Quaternion(x, y, z, w);
    if (turn.lengthSq() < 1e-9) turn.identity();
    const at = (along: number, across: number): Vector3 => new Vector3(along, across, 0).applyQuaternion(turn.normalize()).add(vector(position));
    points.push(at(0, 0), at(0.5, 0), at(0.5, 0), at(0.38, 0.08), at(0.5, 0), at(0.38, -0.08));
  }
  return uncut(new LineSegments(new BufferGeometry().setFromPoints(points), new LineBasicMaterial({ color: POSES })));
}

function grid({ info: { width, height, resolution, origin }, data }: Message): Object3D | undefined {
  if (!areFinite(origin.position, origin.orientation)) return undefined;
  if (width * height === 0 || width * height > MOST_CELLS || data.length < width * height) return undefined;
  const pixels = new Uint8Array(4 * width * height);
  for (let index = 0; index < width * height; index++) {
    const cell = data[index] as number;
    if (cell < 0) continue; // unknown cells are not drawn
    pixels.fill(Math.round(235 - 2 * Math.min(100, cell)), 4 * index, 4 * index + 3);
    pixels[4 * index + 3] = 215;
  }
  const texture = new DataTexture(pixels, width, height, RGBAFormat);
  texture.magFilter = NearestFilter;
  texture.needsUpdate = true;
  const plane = new Mesh(new PlaneGeometry(width * resolution, height * resolution), new MeshBasicMaterial({ map: texture, transparent: true, side: DoubleSide, depthWrite: false }));
  plane.position.set((width * resolution) / 2, (height * resolution) / 2, -0.005);
  const map = new Group().add(plane);
  const { x, y, z, w } = origin.orientation;
  map.position.copy(vector(origin.position));
  if (x || y || z || w) map.quaternion.set(x, y, z, w);
  return map;
}

const NO_FIX = -1;

/** Track of a receiver, east and north of its first fix. It does not use the receiver's own frame. */
function track(): Drawing {
  const group = new Group();
  const points: Vector3[] = [];
  let first: { latitude: number; longitude: number; altitude: number } | undefined;
  return {
    group,
    take: ({ value: { latitude, longitude, altitude, status } }) => {
      if (status.status === NO_FIX || ![latitude, longitude].every(Number.isFinite)) return;
      const up = Number.isFinite(altitude) ? altitude : 0;
      first ??= { latitude, longitude, altitude: up };
      const radians = Math.PI / 180;
      const east = (longitude - first.longitude) * radians * EARTH_M * Math.cos(first.latitude * radians);
      points.push(new Vector3(east, (latitude - first.latitude) * radians * EARTH_M, up - first.altitude));
      if (points.length > TRACK_POINTS) points.splice(0, TRACK_POINTS / 4);
      empty(group);
      group.add(line(points, TRACK), dots(new Float32Array(points.at(-1)!.toArray()), 7, TRACK));
    },
    close: () => empty(group),
  };
}

// Markers, each with a frame, a lifetime, and an id for changes and deletion.

const ADD = 0, DELETE = 2, DELETE_ALL = 3;

interface Marked {
  object: Object3D;
  frame: string;
  pose: Matrix4;
  endsMs: number;
}

function markers(all: (message: Message) => Message[]): Drawing {
  const group = new Group();
  const known = new Map<string, Marked>();
  const remove = (identity: string): void => {
    const marked = known.get(identity);
    if (!marked) return;
    group.remove(marked.object);
    dispose(marked.object);
    known.delete(identity);
  };
  return {
    group,
    take: ({ value }) => {
      for (const marker of all(value)) {
        const identity = `${marker.ns} ${marker.id}`;
        if (marker.action === DELETE_ALL) [...known.keys()].forEach(remove);
        else if (marker.action === DELETE) remove(identity);
        else if (marker.action === ADD && (known.has(identity) || known.size < MOST_MARKERS)) {
          remove(identity);
          const object = areFinite(marker.pose.position, marker.pose.orientation) ? markerObject(marker) : undefined;
          if (!object) continue;
          const { position, orientation: { x, y, z, w } } = marker.pose;
          const turn = x || y || z || w ? new Quaternion(x, y, z, w).normalize() : new Quaternion();
          const lifeS = marker.lifetime.sec + marker.lifetime.nanosec / 1e9;
          object.matrixAutoUpdate = false;
          known.set(identity, {
            object, frame: marker.header.frame_id, pose: new Matrix4().compose(vector(position), turn, new Vector3(1, 1, 1)),
            endsMs: lifeS > 0 ? performance.now() + 1000 * lifeS : Infinity,
          });
          group.add(object);
        }
      }
    },
    place: (poseOf) => {
      const nowMs = performance.now();
      for (const [identity, { object, frame, pose, endsMs }] of known) {
        const base = endsMs < nowMs ? undefined : poseOf(frame);
        object.visible = base !== undefined;
        if (endsMs < nowMs) remove(identity);
        else if (base) object.matrix.multiplyMatrices(base, pose);
      }
    },
    close: () => [...known.keys()].forEach(remove),
  };
}

function markerObject(marker: Message): Object3D | undefined {
  const { scale, color, points, colors, text } = marker;
  const colour = new Color(color.r, color.g, color.b);
  const look = { color: colour, transparent: color.a < 1, opacity: color.a };
  const solid = (): MeshStandardMaterial => new MeshStandardMaterial({ ...look, roughness: 0.7, side: DoubleSide });
  const positions = (): Float32Array => new Float32Array(points.slice(0, MOST_POINTS).flatMap(({ x, y, z }: Message) => [x, y, z]));
  const own = colors.length > 0 && colors.length === points.length;
  const colours = own ? new Float32Array(colors.flatMap(({ r, g, b }: Message) => [r, g, b])) : undefined;
  const lines = (): LineBasicMaterial => new LineBasicMaterial({ ...look, color: own ? 0xffffff : colour, vertexColors: own });
  const scaled = (object: Object3D): Group => {
    object.scale.set(scale.x || 1e-3, scale.y || 1e-3, scale.z || 1e-3);
    return new Group().add(object);
  };
  const many = (make: () => BufferGeometry): Group => {
    const group = new Group();
    const geometry = make();
    points.slice(0, MOST_MARKERS).forEach((point: Message, index: number) => {
      const mesh = new Mesh(geometry, own ? new MeshStandardMaterial({ color: new Color(colors[index].r, colors[index].g, colors[index].b) }) : solid());
      mesh.position.copy(vector(point));
      mesh.scale.set(scale.x, scale.y, scale.z);
      group.add(mesh);
    });
    return group;
  };
  switch (marker.type) {
    case 0: return points.length === 2 ? arrow(vector(points[0]), vector(points[1]), scale.x, solid()) : arrow(new Vector3(), new Vector3(scale.x, 0, 0), scale.y, solid());
    case 1: return scaled(new Mesh(new BoxGeometry(1, 1, 1), solid()));
    case 2: return scaled(new Mesh(new SphereGeometry(0.5, 24, 16), solid()));
    case 3: return scaled(new Mesh(new CylinderGeometry(0.5, 0.5, 1, 24).rotateX(Math.PI / 2), solid()));
    case 4: return uncut(new Line(geometryOf(positions(), colours), lines()));
    case 5: return uncut(new LineSegments(geometryOf(positions(), colours), lines()));
    case 6: return many(() => new BoxGeometry(1, 1, 1));
    case 7: return many(() => new SphereGeometry(0.5, 12, 8));
    case 8: return dots(positions(), Math.max(0.01, Math.min(0.99, scale.x)), colour.getHex(), colours);
    case 9: return label(text, scale.z || 0.2, `#${colour.getHexString()}`);
    case 10: return scaled(new Mesh(new BoxGeometry(1, 1, 1), new MeshStandardMaterial({ ...look, wireframe: true }))); // mesh files can't be fetched
    case 11: {
      const geometry = geometryOf(positions(), colours);
      geometry.computeVertexNormals();
      return scaled(new Mesh(geometry, own ? new MeshStandardMaterial({ vertexColors: true, side: DoubleSide }) : solid()));
    }
    default: return undefined;
  }
}

function arrow(from: Vector3, to: Vector3, width: number, material: MeshStandardMaterial): Group {
  const length = Math.max(1e-3, from.distanceTo(to));
  const radius = Math.max(0.005, width / 2);
  const head = Math.min(0.3 * length, 4 * radius);
  const shaft = new Mesh(new CylinderGeometry(radius, radius, length - head).translate(0, (length - head) / 2, 0), material);
  const tip = new Mesh(new ConeGeometry(2 * radius, head).translate(0, length - head / 2, 0), material);
  const body = new Group().add(shaft, tip);
  body.position.copy(from);
  body.quaternion.setFromUnitVectors(new Vector3(0, 1, 0), to.clone().sub(from).normalize());
  return new Group().add(body);
}

/** Text that faces the camera, with this height in metres. */
export function label(text: string, height: number, color: string): Sprite {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d")!;
  const font = "600 40px system-ui, sans-serif";
  context.font = font;
  canvas.width = Math.min(1024, Math.ceil(context.measureText(text).width) + 8);
  canvas.height = 52;
  context.font = font;
  context.fillStyle = color;
  context.fillText(text, 4, 40);
  const sprite = new Sprite(new SpriteMaterial({ map: new CanvasTexture(canvas), transparent: true, depthTest: false }));
  sprite.scale.set((height * canvas.width) / canvas.height, height, 1);
  return sprite;
}

/** Axes with the name of each frame. */
export function axesOfFrames(): { group: Group; place: (frames: Iterable<string>, poseOf: (frame: string) => Matrix4 | undefined) => void } {
  const group = new Group();
  const known = new Map<string, Group>();
  const place = (frames: Iterable<string>, poseOf: (frame: string) => Matrix4 | undefined): void => {
    for (const axes of known.values()) axes.visible = false;
    for (const frame of frames) {
      const pose = poseOf(frame);
      if (!pose || (known.size >= 500 && !known.has(frame))) continue;
      let axes = known.get(frame);
      if (!axes) {
        const name = label(frame, 0.07, getComputedStyle(document.documentElement).getPropertyValue("--muted").trim());
        name.position.set(0, 0, 0.06);
        axes = new Group().add(new AxesHelper(0.25), name);
        known.set(frame, axes);
        group.add(axes);
      }
      axes.visible = true;
      pose.decompose(axes.position, axes.quaternion, axes.scale);
    }
  };
  return { group, place };
}

function empty(group: Group): void {
  for (const child of [...group.children]) {
    group.remove(child);
    dispose(child);
  }
}

/** Free an object's memory on the graphics card. */
function dispose(object: Object3D): void {
  object.traverse((each) => {
    const { geometry, material } = each as Partial<Mesh>;
    geometry?.dispose();
    for (const one of material === undefined ? [] : Array.isArray(material) ? material : [material]) {
      (one as MeshBasicMaterial).map?.dispose();
      one.dispose();
    }
  });
}
