// SPDX-License-Identifier: Apache-2.0
// Open forms, which Escape closes, the newest first.

interface OpenForm {
  element: HTMLElement;
  close: () => void;
}

const forms: OpenForm[] = [];

/** Note that a form was opened. It may be closed by other means. */
export function opened(element: HTMLElement, close: () => void): void {
  const index = forms.findIndex((each) => each.element === element);
  if (index >= 0) forms.splice(index, 1);
  forms.push({ element, close });
}

/** Close the newest form that is still on the screen. Return whether there was one. */
export function closeNewest(): boolean {
  for (let form = forms.pop(); form; form = forms.pop()) {
    if (!form.element.checkVisibility()) continue;
    form.close();
    return true;
  }
  return false;
}
