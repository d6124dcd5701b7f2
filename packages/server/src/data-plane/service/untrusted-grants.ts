import type { CheckRequest } from "sluice";
import type { SettledGrant } from "sluice/store";

/** The fields that say which counters are leased. */
type Check = Pick<CheckRequest, "domain" | "dimensions" | "policies">;

/** The most checks whose grants are remembered; beyond it, units returned for others are not credited. */
const maxChecks = 10_000;

/**
 * What this process granted to callers that may not credit counters, by check, as far as it is unsettled.
 *
 * Any caller can name an epoch in which others, servers among them, hold units. So what such a caller returns is
 * credited only up to what callers like it were granted here; the rest is settled as spent, which leaves it charged.
 */
export class UntrustedGrants {
  readonly #held = new Map<string, { units: number; untilMs: number }>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** The part of a caller's report that may be settled. */
  settle(check: Check, settled: SettledGrant | undefined): SettledGrant | undefined {
    if (settled === undefined) return undefined;
    const { spent, kept, returned } = settled;
    const held = this.#find(check);
    const credited = Math.min(returned, Math.max((held?.units ?? 0) - spent - kept, 0));
    if (held !== undefined) held.units = Math.max(held.units - spent - credited, 0);
    return { ...settled, spent: spent + returned - credited, returned: credited };
  }

  note(check: Check, granted: number, heldMs: number): void {
    const untilMs = this.#nowMs() + heldMs;
    const held = this.#find(check);
    if (held !== undefined) {
      held.units += granted;
      held.untilMs = Math.max(held.untilMs, untilMs);
    } else if (granted > 0 && this.#hasRoom()) this.#held.set(renderKey(check), { units: granted, untilMs });
  }

  #find(check: Check): { units: number; untilMs: number } | undefined {
    const held = this.#held.get(renderKey(check));
    return held !== undefined && held.untilMs > this.#nowMs() ? held : undefined;
  }

  #hasRoom(): boolean {
    if (this.#held.size < maxChecks) return true;
    for (const [key, { untilMs }] of this.#held) if (untilMs <= this.#nowMs()) this.#held.delete(key);
    return this.#held.size < maxChecks;
  }
}

function renderKey({ domain, dimensions = {}, policies }: Check): string {
  return JSON.stringify([
    domain,
    policies,
    Object.entries(dimensions).sort(([one], [other]) => (one < other ? -1 : 1)),
  ]);
}
