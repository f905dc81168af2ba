// SPDX-License-Identifier: Apache-2.0
// What matters of a vehicle, by the names and types that its topics have; and any number that somebody asks for.

import { isKnown, numberAt, unitOf } from "./fields";
import type { Vehicle } from "./helm";
import type { Message } from "./stream";

interface Source {
  /** Below the vehicle's namespace. */
  topic: string;
  /** A number, or that there is none just now. */
  read: (message: Message) => number | undefined;
}
export interface Quantity {
  name: string;
  unit: string;
  places: number;
  /** The least range of the vertical axis, so that noise looks like noise. */
  span: number;
  /** Whether it means anything for a vehicle; of a recording's, nothing is known. */
  isOf?: (vehicle: Vehicle | undefined) => boolean;
  /** A topic that says it better: a vehicle that has it has no such quantity. */
  unless?: string;
  /** Of an angle in degrees: the least one, to which it goes back after a turn. */
  turnsAt?: number;
  /** The first one that exists, and says something, is plotted. */
  sources: Source[];
}
/** A plot in somebody's layout: a quantity by its name, or a field of a topic. */
export type Entry = { quantity: string } | { topic: string; path: string };

/** A model that is at a depth. */
const DIVES = "submarine";
const STATE = "drone_controller/state";

const norm = ({ x, y, z }: { x: number; y: number; z: number }): number => Math.hypot(x, y, z);
const finite = (value: number): number | undefined => (Number.isFinite(value) ? value : undefined);
const percent = (value: number): number | undefined => finite(100 * value);
function yaw({ x, y, z, w }: { x: number; y: number; z: number; w: number }): number {
  return (Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)) * 180) / Math.PI;
}
/** Clockwise from north, of a yaw that counts from east. */
const heading = (orientation: Message): number => (450 - yaw(orientation)) % 360;
/** What knows how the vehicle lies, read by a function. */
const oriented = (read: (orientation: Message) => number): Source[] => [
  { topic: "imu/data", read: (m) => (isKnown(m.orientation_covariance) ? read(m.orientation) : undefined) },
  { topic: "odom", read: ({ pose }) => (isKnown(pose.covariance) ? read(pose.pose.orientation) : undefined) },
];
function speed({ twist, vector }: Message): number | undefined {
  if (vector) return norm(vector);
  const { linear } = twist.twist ?? twist;
  return isKnown(twist.covariance) ? norm(linear) : undefined;
}

function flies(vehicle: Vehicle | undefined): boolean {
  return !vehicle || (vehicle.axes.includes("z") && vehicle.model !== DIVES);
}

/** Return the quantities that a vehicle with these topics may have. */
export function quantitiesOf(vehicle: Vehicle | undefined, topics: ReadonlyMap<string, string>): Quantity[] {
  return QUANTITIES.filter(({ isOf, unless }) => isOf?.(vehicle) !== false && !(unless && topics.has(unless)));
}

export const QUANTITIES: Quantity[] = [
  { name: "Altitude", unit: "m", places: 2, span: 1, isOf: flies, sources: [{ topic: "height", read: (m) => m.point?.z ?? m.pose?.pose.position.z }] },
  { name: "Above start", unit: "m", places: 2, span: 1, isOf: flies, unless: "height", sources: [
    { topic: "odom", read: ({ pose }) => (isKnown(pose.covariance) ? pose.pose.position.z : undefined) },
  ] },
  { name: "Depth", unit: "m", places: 2, span: 1, isOf: (vehicle) => vehicle?.model === DIVES, sources: [
    { topic: "odom", read: ({ pose }) => (isKnown(pose.covariance) ? -pose.pose.position.z : undefined) },
  ] },
  { name: "Distance to target", unit: "m", places: 2, span: 1, sources: [{ topic: STATE, read: (m) => finite(m.distance) }] },
  { name: "Speed", unit: "m/s", places: 2, span: 1, sources: [{ topic: "velocity", read: speed }, { topic: "odom", read: speed }] },
  { name: "Heading", unit: "°", places: 0, span: 30, turnsAt: 0, isOf: (vehicle) => vehicle?.has_north === true, sources: oriented(heading) },
  { name: "Yaw", unit: "°", places: 0, span: 30, turnsAt: -180, isOf: (vehicle) => !vehicle?.has_north, sources: oriented(yaw) },
  { name: "Battery", unit: "%", places: 0, span: 10, sources: [{ topic: "battery_state", read: (m) => percent(m.percentage) }] },
  { name: "Voltage", unit: "V", places: 1, span: 1, sources: [{ topic: "battery_state", read: (m) => finite(m.voltage) }] },
  ...[["Climb", "gas"], ["Pitch", "pitch"], ["Roll", "roll"], ["Yaw", "yaw"]].map(([name, field]): Quantity => ({
    name: `${name} command`, unit: "%", places: 0, span: 50, sources: [{ topic: "dronegui/state", read: (m) => percent(m[field!]) }],
  })),
];

/** What a field of any message is, as a quantity; its topic is whole. */
export function fieldQuantity(topic: string, path: string): Quantity {
  return { name: `${topic} ${path}`, unit: unitOf(topic, path), places: 3, span: 1e-3, sources: [{ topic, read: (m) => numberAt(m, path) }] };
}
