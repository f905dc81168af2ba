// SPDX-License-Identifier: Apache-2.0
// Restarts of vehicles: their positions may begin again somewhere else.

import type { Helm } from "./helm";

/** Call back with the topic of a vehicle whose node has restarted, also if the vehicle was gone meanwhile. */
export function whenRestarted(helm: Helm, call: (topic: string) => void): void {
  const runs = new Map<string, string>();
  helm.addEventListener("change", () => {
    for (const { topic, runs: reported } of helm.vehicles) {
      const now = reported.join();
      const before = runs.get(topic);
      if (now === "" || now === before) continue;
      runs.set(topic, now);
      if (before !== undefined) call(topic);
    }
  });
}
