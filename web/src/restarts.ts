// SPDX-License-Identifier: Apache-2.0
// Restarts of vehicles: their positions may begin again somewhere else.

import type { Helm } from "./helm";

/** Call back with the topic of a vehicle of which a node has restarted, also if the vehicle was gone meanwhile. */
export function whenRestarted(helm: Helm, call: (topic: string) => void): void {
  const known = new Map<string, Record<string, string>>();
  helm.addEventListener("change", () => {
    for (const { topic, runs } of helm.vehicles) {
      const before = known.get(topic) ?? {};
      known.set(topic, { ...before, ...runs });
      if (Object.entries(runs).some(([node, run]) => (before[node] ?? run) !== run)) call(topic);
    }
  });
}
