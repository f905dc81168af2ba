// SPDX-License-Identifier: Apache-2.0
// Several gamepads: which one steers, and STOP on each of them.

/** Required parts of a Gamepad. */
export interface Pad {
  index: number;
  id: string;
  mapping: string;
  axes: readonly number[];
  buttons: readonly { pressed: boolean }[];
}

/** Red button of most gamepads, B or a circle. */
export const STOP_BUTTON = 1;

/** The pad that steers: the chosen one, else the first with known axes, else the first. */
export function chosenPad<P extends Pad>(pads: readonly P[], chosenId: string | undefined, isMapped: (pad: P) => boolean): P | undefined {
  const sticks = pads.filter(({ axes }) => axes.length >= 2);
  return sticks.find(({ id }) => id === chosenId) ?? sticks.find(isMapped) ?? sticks[0];
}

/** STOP on any pad: when its button is pressed after it was seen released. */
export class StopButtons {
  #released = new Set<string>();

  /** Return whether STOP was pressed on any of the pads since the last call. */
  look(pads: readonly Pad[]): boolean {
    const before = this.#released;
    this.#released = new Set(pads.filter(({ buttons }) => buttons[STOP_BUTTON]?.pressed === false).map(nameOf));
    return pads.some((pad) => pad.buttons[STOP_BUTTON]?.pressed === true && before.has(nameOf(pad)));
  }
}

function nameOf({ index, id }: Pad): string {
  return `${index} ${id}`;
}
