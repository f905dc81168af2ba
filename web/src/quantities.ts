// SPDX-License-Identifier: Apache-2.0
// Quantities of a vehicle, by the names and types of its topics; and any number that the user selects.

import { decimal } from "./dom";
import { isKnown, numberAt, unitOf } from "./fields";
import type { Vehicle } from "./helm";
import type { Message } from "./stream";

interface Source {
  /** Name below the vehicle's namespace. */
  topic: string;
  /** Value, or undefined if there is none at the moment. */
  read: (message: Message) => number | undefined;
}
export interface Quantity {
  name: string;
  unit: string;
  places: number;
  /** Minimum range of the vertical axis, so that noise looks like noise. */
  span: number;
  /** Whether it is meaningful for a vehicle. Nothing is known about the vehicle of a recording. */
  isOf?: (vehicle: Vehicle | undefined) => boolean;
  /** Better topic: a vehicle with it does not have this quantity. */
  unless?: string;
  /** Of an angle in degrees: the lower end of its range. */
  turnsAt?: number;
  /** The first source that exists, and has a value, is plotted. */
  sources: Source[];
}
/** Plot in a user's layout: a quantity by its name, or a field of a topic. */
export type Entry = { quantity: string } | { topic: string; path: string };

/** Model of an underwater vehicle. */
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
/** Sources of the vehicle's orientation, with a function that reads a value from it. */
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

/** Wrap an angle to one turn from `least` on. Other values are unchanged. */
export function turned(value: number, least: number | undefined): number {
  return least === undefined ? value : ((value - least) % 360 + 360) % 360 + least;
}

/** Text of a value without its unit. An angle is rounded before it is wrapped, so that 359.7° is 0°, not 360°. */
export function textOf({ places, turnsAt }: Quantity, value: number, most = places): string {
  const shown = Math.min(most, places);
  return decimal(turned(Number(value.toFixed(shown)), turnsAt), shown);
}

/** Field of any message as a quantity, with the full topic name. */
export function fieldQuantity(topic: string, path: string): Quantity {
  return { name: `${topic} ${path}`, unit: unitOf(topic, path), places: 3, span: 1e-3, sources: [{ topic, read: (m) => numberAt(m, path) }] };
}
