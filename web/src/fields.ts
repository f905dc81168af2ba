// SPDX-License-Identifier: Apache-2.0
// Fields of messages: which are numbers, their paths, and their units.

import type { Definitions, Message } from "./stream";

const NUMBERS = /^(u?int(8|16|32|64)|float(32|64)|byte|char|bool)$/;
const DEEPEST = 8;
const MOST = 200;

/** Units by the end of a path, in this order. The second expression limits it to some topics. */
const UNITS: [RegExp, string, RegExp?][] = [
  [/covariance/, ""],
  [/(^|\.)(stamp|time)\.sec$/, "s"],
  [/nanosec$/, "ns"],
  [/(linear_acceleration|accel\.linear)\.[xyz]$/, "m/s²"],
  [/(angular_velocity|angular)\.[xyz]$/, "rad/s"],
  [/linear\.[xyz]$|(^|\.)velocity$|vertical_velocity$/, "m/s"],
  [/vector\.[xyz]$/, "m/s", /velocity/],
  [/magnetic_field\.[xyz]$/, "T"],
  [/orientation\.[xyzw]$|rotation\.[xyzw]$/, ""],
  [/(position|translation|point)\.[xyz]$|altitude$|distance$|range(_min|_max)?$|height$/, "m"],
  [/latitude$|longitude$/, "°"],
  [/voltage$/, "V"],
  [/current$/, "A"],
  [/temperature$/, "°C"],
  [/charge$|capacity$/, "Ah"],
  [/^(thrust|pitch|roll|yaw)$/, "share", /cmd_axes$/],
  [/thrust$|force\.[xyz]$/, "N"],
  [/torque\.[xyz]$/, "N m"],
  [/angle(_min|_max|_increment)?$/, "rad"],
];

/** Variance of an unknown value in our bridges' covariances. */
const UNKNOWN_VARIANCE = 1e6;

/** Whether a covariance has a known value: −1 in its first element, or a huge variance, means unknown. */
export function isKnown(covariance: ArrayLike<number> | undefined): boolean {
  const first = covariance?.[0] ?? 0;
  return first !== -1 && !(first >= UNKNOWN_VARIANCE);
}

/** Unit of a topic's field, by REP 103 and the usual names in messages; empty if unknown. */
export function unitOf(topic: string, path: string): string {
  return UNITS.find(([end, , only]) => end.test(path) && (!only || only.test(topic)))?.[1] ?? "";
}

/** Paths of all numbers that every message of this type has. */
export function numericPaths(definitions: Definitions): string[] {
  const paths: string[] = [];
  const walk = (definition: Definitions[number] | undefined, prefix: string, depth: number): void => {
    for (const field of definition?.definitions ?? []) {
      if (field.isConstant || field.isArray || depth > DEEPEST || paths.length >= MOST) continue;
      if (field.isComplex) walk(definitions.find(({ name }) => name === field.type || name === field.type.replace("/", "/msg/")), `${prefix}${field.name}.`, depth + 1);
      else if (NUMBERS.test(field.type) && field.name !== "structure_needs_at_least_one_member") paths.push(prefix + field.name);
    }
  };
  walk(definitions[0], "", 0);
  return paths;
}

/** Value at a path, such as "status[0].level". */
export function valueAt(message: Message, path: string): unknown {
  let at: unknown = message;
  for (const key of path.split(/[.[\]]+/).filter(Boolean)) at = (at as Record<string, unknown> | undefined)?.[key];
  return at;
}

/** Value as a number to plot; undefined if it is not one. */
export function numberAt(message: Message, path: string): number | undefined {
  const value = valueAt(message, path);
  const number = typeof value === "bigint" || typeof value === "boolean" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}
