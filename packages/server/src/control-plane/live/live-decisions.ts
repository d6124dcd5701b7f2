import { type LiveDecisionBody, type LiveDecisionsBody, liveDecision } from "@sluice/protocol/admin";
import type { Limiter } from "sluice";
import { findLimitDimensions } from "../../observe/denials/find-limit-dimensions.ts";
import type { DecisionTail, DrawnDecision, TailWatcher } from "../../observe/live/decision-tail.ts";
import type { WorkerLink } from "../../observe/worker-link.ts";
import { noteFromSample } from "../denials/note-from-sample.ts";
import { createIsShown, type LiveFilter } from "./live-filter.ts";

export interface LiveDecisionsOptions {
  readonly tail: DecisionTail;
  readonly limiter: Pick<Limiter, "snapshot">;
  readonly ipv6PrefixBits: number | undefined;
  readonly node: { readonly id: string; readonly name: string };
  /** Set if several processes decide behind the same ports. */
  readonly worker?: WorkerLink | undefined;
  /** How many processes these are. Absent: 1. */
  readonly processes?: number | undefined;
}

/** The decisions that one watcher wants to see. */
export interface DecisionWatch {
  /** Those since the last call; undefined if there were none. */
  take(): Promise<LiveDecisionsBody | undefined>;
  close(): void;
}

/** The most decisions in one answer, unless there are more processes. */
const maxItems = 10;
/** A process that no longer asks has closed its watch, or has ended. */
const forgottenAfterMs = 5_000;

/** What one process saw since it was last asked. */
interface Seen {
  readonly sinceMs: number;
  readonly atMs: number;
  readonly matched: number;
  readonly items: readonly LiveDecisionBody[];
}

interface Question {
  readonly watch: string;
  readonly filter: LiveFilter;
  readonly atMost: number;
}

/** Watches the decisions of this process, and of its fellow workers by asking them. */
export class LiveDecisions {
  readonly #options: LiveDecisionsOptions;
  /** Watches that fellow workers ask for. */
  readonly #asked = new Map<string, { readonly watcher: TailWatcher; readonly timer: NodeJS.Timeout }>();
  #watches = 0;

  constructor(options: LiveDecisionsOptions) {
    this.#options = options;
    options.worker?.answer("live decisions", async (question) =>
      JSON.stringify(this.#answer(JSON.parse(question) as Question)),
    );
  }

  watch(filter: LiveFilter): DecisionWatch {
    const { tail, worker } = this.#options;
    const watcher = tail.watch(createIsShown(filter, this.#options));
    this.#watches += 1;
    const watch = `${process.pid}-${this.#watches}`;
    let heard = 1;
    return {
      take: async () => {
        const atMost = Math.max(1, Math.floor(maxItems / heard));
        const question: Question = { watch, filter, atMost };
        const others = (await worker?.askOthers("live decisions", JSON.stringify(question))) ?? [];
        const seen = [this.#read(watcher, atMost), ...others.flatMap(parseSeen)];
        heard = seen.length;
        return this.#join(seen);
      },
      close: () => watcher.close(),
    };
  }

  /** Has a watch of another process begin, or continue. */
  #answer({ watch, filter, atMost }: Question): Seen {
    const known = this.#asked.get(watch);
    clearTimeout(known?.timer);
    const watcher = known?.watcher ?? this.#options.tail.watch(createIsShown(filter, this.#options));
    const timer = setTimeout(() => {
      this.#asked.delete(watch);
      watcher.close();
    }, forgottenAfterMs).unref();
    this.#asked.set(watch, { watcher, timer });
    return this.#read(watcher, atMost);
  }

  #read(watcher: TailWatcher, atMost: number): Seen {
    const { sinceMs, atMs, matched, drawn } = watcher.take(atMost);
    return { sinceMs, atMs, matched, items: drawn.map((one) => this.#render(one)) };
  }

  #join(seen: readonly Seen[]): LiveDecisionsBody | undefined {
    const matched = seen.reduce((sum, one) => sum + one.matched, 0);
    if (matched === 0) return undefined;
    const { node, processes = 1 } = this.#options;
    return {
      at_ms: Math.max(...seen.map(({ atMs }) => atMs)),
      since_ms: Math.min(...seen.map(({ sinceMs }) => sinceMs)),
      node,
      workers: { heard: seen.length, silent: Math.max(0, processes - seen.length) },
      matched,
      items: seen.flatMap(({ items }) => items).sort((a, b) => a.at_ms - b.at_ms),
    };
  }

  /** Bounded and without secrets, like a denial that is stored. */
  #render({ request, decision, atMs, standsFor, mixed }: DrawnDecision): LiveDecisionBody {
    const { limiter, node, ipv6PrefixBits } = this.#options;
    const { policy = "", scope = "" } = decision;
    const given = request.limits?.find(({ name }) => name === scope)?.by;
    const names = given ?? findLimitDimensions(limiter.snapshot, policy, scope) ?? scope.split(",");
    const by = names.filter((name) => request.dimensions?.[name] !== undefined);
    const sample = { request, decision, shadow: undefined, by, atMs, sinceMs: atMs, denials: standsFor, mixed };
    const { record } = noteFromSample(sample, { node: node.name, ipv6PrefixBits });
    const shadow = decision.shadow.length > 0;
    return liveDecision.render({ ...record, shadow, allowed: decision.allowed, standsFor });
  }
}

/** Fellow workers have the same version: an unreadable text was cut off. */
function parseSeen(text: string): readonly Seen[] {
  try {
    return [JSON.parse(text) as Seen];
  } catch {
    return [];
  }
}
