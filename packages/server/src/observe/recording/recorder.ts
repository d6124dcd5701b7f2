import type { CounterStore, Limiter, PolicySet } from "sluice";
import type { CounterChange, LimiterWatch } from "sluice/internal";
import type { Logger } from "../telemetry/logger.ts";
import type { RecordingFigures } from "../telemetry/recording-metrics.ts";
import { HiddenValues, type HiddenValuesOptions } from "./hidden-values.ts";
import { followInstants } from "./instants.ts";
import { type EndReason, Recording } from "./recording.ts";
import { RecordingFile } from "./recording-file.ts";

export interface RecorderOptions {
  readonly limiter: Pick<Limiter, "snapshot" | "counters">;
  readonly watch: LimiterWatch;
  readonly store: CounterStore;
  readonly renderPolicies: (policies: PolicySet) => unknown;
  readonly version: string;
  readonly node: string;
  readonly worker: number | undefined;
  readonly workers: number | undefined;
  readonly ipv6PrefixBits: number;
  readonly log: Logger;
  readonly nowMs?: (() => number) | undefined;
}

export interface RecordingRequest extends Pick<HiddenValuesOptions, "share" | "shareBy" | "hashed"> {
  readonly path: string;
  readonly forMs: number;
  readonly maxBytes: number;
  readonly onEnd?: ((reason: EndReason) => void) | undefined;
}

/** A recording that runs or has ended. */
export interface StartedRecording {
  readonly recording: Recording;
  readonly file: RecordingFile;
}

/**
 * Records what this process decides, one recording at a time. While there is none, a check costs a comparison.
 */
export class Recorder {
  readonly #options: RecorderOptions;
  #active: Recording | undefined;
  #latest: Recording | undefined;
  #isStarting = false;
  /** Of the recordings before the latest. */
  #before = { requests: 0, dropped: 0, leftOut: 0, failed: 0 };

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  /** Undefined while nothing is recorded. */
  get active(): Recording | undefined {
    return this.#active;
  }

  /** Sums of all recordings since the start. */
  get figures(): RecordingFigures {
    const { requests = 0, dropped = 0, leftOut = 0 } = this.#latest?.totals ?? {};
    return {
      active: this.#active !== undefined,
      requests: this.#before.requests + requests,
      dropped: this.#before.dropped + dropped,
      leftOut: this.#before.leftOut + leftOut,
      failed: this.#before.failed + (this.#latest?.end === "error" ? 1 : 0),
    };
  }

  /** Undefined if another recording runs. Rejects with the file system's error. */
  async start(request: RecordingRequest): Promise<StartedRecording | undefined> {
    if (this.#active !== undefined || this.#isStarting) return undefined;
    this.#isStarting = true;
    try {
      const file = await RecordingFile.create(request.path);
      const recording = this.#begin(request, file);
      this.#options.log.info("recording.started", { file: request.path, share: request.share });
      return { recording, file };
    } finally {
      this.#isStarting = false;
    }
  }

  /** Ends what runs, for a server that stops; resolves when it is on disk. */
  async close(): Promise<void> {
    await this.#latest?.stop("shutdown");
  }

  #begin({ path, share, shareBy, hashed, forMs, maxBytes, onEnd }: RecordingRequest, file: RecordingFile): Recording {
    const { limiter, watch, store, renderPolicies, version, node, ipv6PrefixBits, log } = this.#options;
    const { worker, workers, nowMs = Date.now } = this.#options;
    const fromMs = nowMs();
    const instants = followInstants(store, watch);
    const recording = new Recording({
      head: {
        ...{ version, node, worker, workers, from_ms: fromMs, counters: store.local ? "memory" : "server" },
        ...{ fresh: isFresh(store), leases: store.leases === true, share, share_by: share < 1 ? shareBy : undefined },
        hashed,
      },
      ...{ file, limiter, renderPolicies, maxBytes, nowMs, findInstant: (decision) => instants.find(decision) },
      hidden: new HiddenValues({ share, shareBy, hashed, ipv6PrefixBits }),
      endsMs: fromMs + forMs,
      onEnd: (reason) => {
        instants.close();
        watch.onChanged = undefined;
        this.#active = undefined;
        const { requests, dropped } = recording.totals;
        const fields = { file: path, reason, requests, dropped, bytes: file.bytes };
        if (reason === "error") log.warn("recording.failed", { ...fields, err: file.error });
        else log.info("recording.ended", fields);
        onEnd?.(reason);
      },
    });
    watch.onChanged = (change: CounterChange) => recording.note(change);
    this.#before = this.figures;
    this.#active = recording;
    this.#latest = recording;
    return recording;
  }
}

/** Undefined if it is not known, as of counters on a server. */
function isFresh(store: CounterStore): boolean | undefined {
  const { stats } = store as { readonly stats?: { readonly counters?: unknown } };
  return store.local && typeof stats?.counters === "number" ? stats.counters === 0 : undefined;
}
