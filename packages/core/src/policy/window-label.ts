import { renderDuration } from "./parse-duration.ts";
import type { Window } from "./policy.ts";

/** Labels of windows, by the window object in decisions. */
const labels = new WeakMap<Window, string>();

/**
 * What distinguishes a window from others under the same policy and scope, in header fields, problem bodies and
 * answers: its name, else its length. Undefined if it is the only one.
 */
export function windowLabel(window: Window): string | undefined {
  return labels.get(window);
}

/** Gives a window the label that another process, or the window that it stands in for, uses. */
export function withLabel(window: Window, label: string | undefined): Window {
  if (label !== undefined) labels.set(window, label);
  return window;
}

/**
 * Labels windows that decide together: `1s`, `1m`, `day`, `once`, or their names. Equal labels, and those already
 * taken, are numbered: `1s#2`. A label depends on no quota, so that it survives edits.
 */
export function labelWindows(windows: readonly Window[], taken: ReadonlySet<string>): void {
  const used = new Set(taken);
  for (const window of windows) {
    const wanted = window.name ?? lengthLabel(window);
    let label = wanted;
    for (let ordinal = 2; used.has(label); ordinal++) label = `${wanted}#${ordinal}`;
    used.add(label);
    labels.set(window, label);
  }
}

function lengthLabel({ per }: Window): string {
  if (per.kind === "never") return "once";
  return per.kind === "calendar" ? per.unit : renderDuration(per.ms);
}
