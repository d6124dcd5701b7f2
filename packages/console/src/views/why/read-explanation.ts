import type { ExplanationBody } from "@sluice/protocol/http";

export type ExplainedLimit = ExplanationBody["limits"][number];
export type ExplainedWindow = ExplainedLimit["windows"][number];

/** A window of an explained limit, and how much room it has. */
export interface WindowRoom {
  readonly limit: ExplainedLimit;
  readonly window: ExplainedWindow;
  /** The most that it holds at once. */
  readonly capacity: number;
  /** The share of it that is taken, 0 to 1. */
  readonly used: number;
  readonly fits: boolean;
  /** Whether the decision is its doing. */
  readonly binding: boolean;
}

/** A window that takes a request and then has less than this share left would deny soon. */
const nearShare = 0.2;

/** Every window of every limit, the one that decides first, then by how little room they have. */
export function readWindows({ limits, decision }: ExplanationBody): readonly WindowRoom[] {
  const rooms = limits.flatMap((limit) =>
    limit.windows.map((window) => {
      const capacity = capacityOf(window);
      const used = capacity <= 0 ? 1 : Math.min(1, Math.max(0, 1 - window.remaining / capacity));
      return { limit, window, capacity, used, fits: limit.cost <= window.remaining, binding: false };
    }),
  );
  const sorted = rooms.toSorted((one, other) => leftAfter(one) - leftAfter(other));
  const speaks = (room: WindowRoom): boolean =>
    room.limit.policy === decision.policy && room.limit.scope === decision.scope;
  const isLimited = ["within_limits", "over_limit", "never_fits"].includes(decision.reason);
  const binding = isLimited ? (sorted.find((room) => speaks(room) && !room.fits) ?? sorted.find(speaks)) : undefined;
  return sorted
    .map((room) => (room === binding ? { ...room, binding: true } : room))
    .toSorted((one, other) => Number(other.binding) - Number(one.binding));
}

/** Windows that let the request pass and have little left, and the policies that would apply to a slightly different request. */
export function readNearMisses(explanation: ExplanationBody): {
  readonly windows: readonly WindowRoom[];
  readonly policies: ExplanationBody["policies"];
} {
  return {
    windows: readWindows(explanation).filter((room) => room.fits && !room.binding && leftAfter(room) < nearShare),
    policies: explanation.policies.filter(({ applies }) => !applies),
  };
}

/** The share of a window that would be left after the request; below 0 if it does not fit. */
function leftAfter({ limit, window, capacity }: Omit<WindowRoom, "binding">): number {
  return capacity <= 0 ? Number.NEGATIVE_INFINITY : (window.remaining - limit.cost) / capacity;
}

function capacityOf({ window }: ExplainedWindow): number {
  return window.burst ?? Math.max(1, window.limit);
}
