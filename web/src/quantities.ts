// SPDX-License-Identifier: Apache-2.0
// What matters of a vehicle, by the names and types that its topics have; and any number that somebody asks for.

import { isKnown, numberAt, unitOf } from "./fields";
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
  /** Whether it is meaningless for a vehicle that stays on the ground. */
  flying?: boolean;
  /** Whether it is an angle in degrees, which goes on at ±180. */
  turns?: boolean;
  /** The first one that exists, and says something, is plotted. */
  sources: Source[];
}
/** A plot in somebody's layout: a quantity by its name, or a field of a topic. */
export type Entry = { quantity: string } | { topic: string; path: string };

const STATE = "drone_controller/state";

const norm = ({ x, y, z }: { x: number; y: number; z: number }): number => Math.hypot(x, y, z);
const finite = (value: number): number | undefined => (Number.isFinite(value) ? value : undefined);
const percent = (value: number): number | undefined => finite(100 * value);
function heading({ x, y, z, w }: { x: number; y: number; z: number; w: number }): number {
  return (Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)) * 180) / Math.PI;
}
function speed({ twist, vector }: Message): number | undefined {
  if (vector) return norm(vector);
  const { linear } = twist.twist ?? twist;
  return isKnown(twist.covariance) ? norm(linear) : undefined;
}

export const QUANTITIES: Quantity[] = [
  { name: "Altitude", unit: "m", places: 2, span: 1, flying: true, sources: [
    { topic: "height", read: (m) => m.point?.z ?? m.pose?.pose.position.z },
    { topic: "odom", read: ({ pose }) => (isKnown(pose.covariance) ? pose.pose.position.z : undefined) },
  ] },
  { name: "Distance to target", unit: "m", places: 2, span: 1, sources: [{ topic: STATE, read: (m) => finite(m.distance) }] },
  { name: "Speed", unit: "m/s", places: 2, span: 1, sources: [{ topic: "velocity", read: speed }, { topic: "odom", read: speed }] },
  { name: "Heading", unit: "°", places: 0, span: 30, turns: true, sources: [
    { topic: "imu/data", read: (m) => (isKnown(m.orientation_covariance) ? heading(m.orientation) : undefined) },
    { topic: "odom", read: ({ pose }) => (isKnown(pose.covariance) ? heading(pose.pose.orientation) : undefined) },
  ] },
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
