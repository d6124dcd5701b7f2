import { type LiveOverviewBody, liveOverview } from "@sluice/protocol/admin";
import { redactText } from "sluice/internal";
import type { ServerStatus } from "../../data-plane/status/server-status.ts";
import type { StoreReport } from "../../data-plane/status/store-report.ts";
import { addTotals, type DecisionTotals, ratesBetween } from "../../observe/telemetry/decision-totals.ts";
import type { WorkerLink } from "../../observe/worker-link.ts";

export interface LiveOverviewOptions {
  readonly totals: () => DecisionTotals;
  readonly status: () => ServerStatus;
  readonly node: { readonly id: string; readonly name: string };
  readonly worker?: WorkerLink | undefined;
  /** How many processes are behind the same ports. Absent: 1. */
  readonly processes?: number | undefined;
}

/** What a process decided so far. */
interface ProcessTotals {
  readonly process: string;
  readonly totals: DecisionTotals;
  readonly inFlight: number;
}

/** The rates of this process and its fellow workers, from one reading to the next. */
export class LiveOverview {
  readonly #options: LiveOverviewOptions;
  #before: ReadonlyMap<string, DecisionTotals> = new Map();
  #beforeMs = 0;

  constructor(options: LiveOverviewOptions) {
    this.#options = options;
    options.worker?.answer("live overview", async () => JSON.stringify(this.#readOwn()));
  }

  /** Rates begin with the next reading. */
  async begin(): Promise<void> {
    await this.#readAll();
  }

  async read(): Promise<LiveOverviewBody> {
    const { node, processes = 1 } = this.#options;
    const before = this.#before;
    const beforeMs = this.#beforeMs;
    const all = await this.#readAll();
    // A process without an earlier reading has no rate yet.
    const known = all.filter(({ process }) => before.has(process));
    const now = sumTotals(known.map(({ totals }) => totals));
    const then = sumTotals(known.map(({ process }) => before.get(process)!));
    const seconds = Math.max(0.001, (this.#beforeMs - beforeMs) / 1_000);
    const { latencyMs, deniedBy, ...perSecond } = ratesBetween(then, now, seconds);
    const { state, degraded, store } = this.#options.status();
    return liveOverview.render({
      atMs: Date.now(),
      ...{ seconds, node, perSecond, deniedBy, latencyMs },
      workers: { heard: all.length, silent: Math.max(0, processes - all.length) },
      inFlight: all.reduce((sum, { inFlight }) => sum + inFlight, 0),
      ...{ status: state, degraded, store: store && storeView(store), killSwitch: store?.killSwitch },
    });
  }

  #readOwn(): ProcessTotals {
    const { totals, status } = this.#options;
    return { process: String(process.pid), totals: totals(), inFlight: status().queue.pending };
  }

  async #readAll(): Promise<readonly ProcessTotals[]> {
    const others = (await this.#options.worker?.askOthers("live overview")) ?? [];
    const all = [this.#readOwn(), ...others.flatMap(parseTotals)];
    this.#before = new Map(all.map(({ process, totals }) => [process, totals]));
    this.#beforeMs = performance.now();
    return all;
  }
}

const maxReasonLength = 1_000;

interface StoreView {
  readonly state: StoreReport["state"];
  readonly generation: number;
  readonly newestGeneration: number;
  readonly reason: string | undefined;
}

/** The policy store as events show it. */
export function storeView({ state, generation, newest, reason }: StoreReport): StoreView {
  const shown = reason === undefined ? undefined : redactText(reason, maxReasonLength);
  return { state, generation, newestGeneration: newest, reason: shown };
}

const nothing: DecisionTotals = { allowed: 0, denied: 0, degraded: 0, shadowDenied: 0, denials: {}, durations: [] };

function sumTotals(all: readonly DecisionTotals[]): DecisionTotals {
  return all.reduce((sum, one) => addTotals(one, sum), nothing);
}

/** Fellow workers have the same version: an unreadable text was cut off. */
function parseTotals(text: string): readonly ProcessTotals[] {
  try {
    return [JSON.parse(text) as ProcessTotals];
  } catch {
    return [];
  }
}
