import type { Window } from "../policy/policy.ts";
import type { Decision } from "./decision.ts";

// Answers go out with every decision, and much of their text about a limit never changes. Windows live as long as their
// snapshot, so text made from one can be kept with it.

/** Calls `make` once per window. */
export function rememberPerWindow<T>(make: (window: Window) => T): (window: Window) => T {
  const known = new WeakMap<Window, { readonly value: T }>();
  return (window) => {
    const found = known.get(window);
    if (found !== undefined) return found.value;
    const value = make(window);
    known.set(window, { value });
    return value;
  };
}

type LimitFields = Pick<Decision, "policy" | "version" | "scope" | "limit">;

/** Calls `make` once for as long as decisions say the same about their deciding limit. */
export function rememberPerLimit<T>(
  make: (decision: Decision, window: Window) => T,
): (decision: Decision, window: Window) => T {
  const known = new WeakMap<Window, LimitFields & { readonly value: T }>();
  return (decision, window) => {
    const { policy, version, scope, limit } = decision;
    const found = known.get(window);
    // Two limits may have been given the same window object.
    if (
      found !== undefined &&
      found.policy === policy &&
      found.scope === scope &&
      found.version === version &&
      found.limit === limit
    )
      return found.value;
    const value = make(decision, window);
    known.set(window, { policy, version, scope, limit, value });
    return value;
  };
}
