import type { ResolvedLimit, SettledGrant } from "./counter-store.ts";
import { ExpiringMap } from "./expiring-map.ts";

/** Units by the epoch at whose end they are forgotten. */
type Ledger = Map<number, number>;

type Of = Pick<ResolvedLimit, "limit" | "subject">;

/** The part of a settled grant that the ledger knows. */
export type SettledUnits = Pick<SettledGrant, "kept" | "returned">;

/**
 * What is granted and unspent: one ledger per limit and subject, in bounded number. When there is no room, no ledger is
 * forgotten for another: nothing more is granted. What was never granted is neither kept nor returned. Times are those
 * of epochs.
 */
export class LeaseLedgers {
  readonly #ledgers: ExpiringMap<Ledger>;

  constructor(max: number) {
    this.#ledgers = new ExpiringMap(max);
  }

  unspent(of: Of, nowMs: number): number {
    let units = 0;
    for (const [epoch, held] of this.#find(of, nowMs)) if (epoch > nowMs) units += held;
    return units;
  }

  /** Whether there is room for the ledgers of all of these. */
  hasRoom(limits: readonly Of[], nowMs: number): boolean {
    const fresh = limits.filter((of) => this.#ledgers.find(ledgerName(of), nowMs) === undefined);
    return fresh.length === 0 || fresh.length <= this.#ledgers.roomAt(nowMs);
  }

  add(of: Of, epoch: number, units: number, nowMs: number): void {
    if (!this.hasRoom([of], nowMs)) return;
    const ledger: Ledger = new Map();
    for (const [known, held] of this.#find(of, nowMs)) if (known > nowMs && held > 0) ledger.set(known, held);
    ledger.set(epoch, (ledger.get(epoch) ?? 0) + units);
    this.#ledgers.set(ledgerName(of), ledger, Math.max(...ledger.keys()), nowMs);
  }

  /**
   * Removes what was settled. Returns how much of the kept and returned units was granted in that epoch and still
   * there: a client that claims more made it up, or the ledger was lost. Kept units come first, since they stay in the
   * ledger, then spent ones.
   */
  settle(of: Of, { epoch, spent, kept, returned }: SettledGrant, nowMs: number): SettledUnits {
    const ledger = this.#find(of, nowMs);
    const held = epoch > nowMs ? (ledger.get(epoch) ?? 0) : 0;
    if (held === 0) return { kept: 0, returned: 0 };
    const keptHere = Math.min(held, kept);
    const unspent = Math.max(held - keptHere - spent, 0);
    const returnedHere = Math.min(unspent, returned);
    ledger.set(epoch, unspent - returnedHere);
    if ([...ledger.values()].every((units) => units === 0)) this.#ledgers.delete(ledgerName(of));
    return { kept: keptHere, returned: returnedHere };
  }

  #find(of: Of, nowMs: number): Ledger {
    return this.#ledgers.find(ledgerName(of), nowMs) ?? new Map();
  }
}

/** Both may hold any character. */
function ledgerName({ limit, subject }: Of): string {
  return `${limit.identity.length} ${limit.identity}${subject}`;
}
