import {
  type RecordingCount,
  type RecordingHead,
  type RecordingLine,
  type RequestLine,
  recordingFormat,
} from "@sluice/simulate";
import type { CheckRequest, Decision, Limiter, PolicySet } from "sluice";
import type { HiddenValues } from "./hidden-values.ts";
import type { Instant } from "./instants.ts";
import type { RecordingFile } from "./recording-file.ts";

export type EndReason = "time" | "size" | "stopped" | "shutdown" | "error";

export interface RecordingOptions {
  readonly head: Omit<RecordingHead, "sluice_recording">;
  readonly file: RecordingFile;
  readonly hidden: HiddenValues;
  readonly limiter: Pick<Limiter, "snapshot">;
  readonly renderPolicies: (policies: PolicySet) => unknown;
  readonly findInstant: (decision: Decision) => Instant;
  /** Epoch milliseconds. */
  readonly endsMs: number;
  readonly maxBytes: number;
  readonly nowMs?: (() => number) | undefined;
  /** How many requests wait to be written, and how many characters they have; further ones are dropped. */
  readonly maxWaiting?: number | undefined;
  readonly maxWaitingLength?: number | undefined;
  /** Called once, when it stops taking requests. */
  readonly onEnd: (reason: EndReason) => void;
}

interface Waiting {
  readonly requests: readonly CheckRequest[];
  readonly decisions: readonly Decision[];
  readonly instant: Instant;
  readonly snapshot: Limiter["snapshot"];
  /** About how many characters it will be written with. */
  readonly length: number;
}

const usualWaiting = 20_000;
const usualWaitingLength = 16 * 1024 * 1024;
/** Rendered in one turn of the event loop, whichever is reached first: about half a millisecond. */
const linesPerTurn = 128;
const lengthPerTurn = 64 * 1024;
const flushAt = 128 * 1024;
const flushEveryMs = 500;
/** Policies are split into lines of this many characters, because readers bound the length of a line. */
const policyPart = 128 * 1024;

/**
 * Records decided requests, without delaying any: a check costs an entry in a queue, which is rendered between turns and
 * written by other threads. If that does not keep up, requests are dropped, and counted.
 */
export class Recording {
  readonly startedMs: number;
  readonly #options: RecordingOptions;
  readonly #nowMs: () => number;
  readonly #timer: NodeJS.Timeout;
  #waiting: Waiting[] = [];
  #waitingLength = 0;
  #isScheduled = false;
  #counts: Partial<Record<RecordingCount, number>> = {};
  #policies: Limiter["snapshot"] | undefined;
  #originMs: number | undefined;
  #requests = 0;
  #dropped = 0;
  #leftOut = 0;
  #end: EndReason | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: RecordingOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
    this.startedMs = options.head.from_ms;
    options.file.add(JSON.stringify({ sluice_recording: recordingFormat, ...options.head }));
    this.#writePolicies(options.limiter.snapshot);
    this.#timer = setInterval(() => this.#look(), flushEveryMs).unref();
  }

  /** Requests, dropped ones, and those of subjects outside the sample or that a replay could not use. */
  get totals(): { readonly requests: number; readonly dropped: number; readonly leftOut: number } {
    return { requests: this.#requests, dropped: this.#dropped, leftOut: this.#leftOut };
  }

  get end(): EndReason | undefined {
    return this.#end;
  }

  count(request: CheckRequest, decision: Decision): void {
    this.#countAll([request], decision, [decision]);
  }

  /** Requests that were decided all or none. */
  countTogether(requests: readonly CheckRequest[], decisions: readonly Decision[]): void {
    if (decisions[0] !== undefined) this.#countAll(requests, decisions[0], decisions);
  }

  /** Something happened that a replay cannot repeat. */
  note(what: RecordingCount): void {
    this.#counts[what] = (this.#counts[what] ?? 0) + 1;
  }

  /** Takes no more requests, and resolves when everything is on disk. A second call joins the first. */
  stop(reason: EndReason): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    this.#end = reason;
    clearInterval(this.#timer);
    this.#closing = this.#finish(reason);
    this.#options.onEnd(reason);
    return this.#closing;
  }

  #countAll(requests: readonly CheckRequest[], first: Decision, decisions: readonly Decision[]): void {
    const why = this.#whyLeftOut(requests, first);
    if (why === undefined) this.#add(requests, decisions);
    else {
      this.#leftOut += 1;
      this.note(why);
    }
  }

  #whyLeftOut(requests: readonly CheckRequest[], { preview, replayed }: Decision): RecordingCount | undefined {
    if (preview) return "previews";
    if (replayed) return "repeated";
    if (requests.some(({ limits }) => limits !== undefined)) return "own_limits";
    const { hidden } = this.#options;
    return requests.some(({ dimensions = {} }) => hidden.isRecorded(dimensions)) ? undefined : "sampled_out";
  }

  #add(requests: readonly CheckRequest[], decisions: readonly Decision[]): void {
    const { maxWaiting = usualWaiting, maxWaitingLength = usualWaitingLength, limiter } = this.#options;
    if (this.#end !== undefined) return;
    const length = requests.reduce((sum, request) => sum + estimateLength(request), 0);
    if (this.#waiting.length >= maxWaiting || this.#waitingLength + length > maxWaitingLength) {
      this.#dropped += 1;
      this.note("dropped");
      return;
    }
    const instant = this.#options.findInstant(decisions[0]!);
    this.#waiting.push({ requests, decisions, instant, snapshot: limiter.snapshot, length });
    this.#waitingLength += length;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#drain());
  }

  #drain(): void {
    this.#isScheduled = false;
    const { file } = this.#options;
    if (this.#end !== undefined) return;
    // What waits meanwhile is bounded; the timer tries again.
    if (file.isBehind) return;
    this.#render(this.#takeWaiting());
    if (file.textLength >= flushAt) void this.#flush();
    if (this.#waiting.length === 0 || this.#end !== undefined) return;
    this.#isScheduled = true;
    setImmediate(() => this.#drain());
  }

  /** As many as one turn may render, and at least one. */
  #takeWaiting(): readonly Waiting[] {
    let [lines, length] = [0, 0];
    while (lines < linesPerTurn && length < lengthPerTurn && lines < this.#waiting.length) {
      length += this.#waiting[lines]!.length;
      lines += 1;
    }
    this.#waitingLength -= length;
    return this.#waiting.splice(0, lines);
  }

  #render(waiting: readonly Waiting[]): void {
    for (const one of waiting) {
      if (one.snapshot !== this.#policies) this.#writePolicies(one.snapshot);
      const { originMs } = one.instant;
      if (originMs !== undefined && originMs !== this.#originMs) {
        this.#originMs = originMs;
        this.#write({ e: "clock", origin_ms: originMs });
      }
      this.#write(this.#renderRequest(one));
      this.#requests += 1;
    }
  }

  #renderRequest({ requests, decisions, instant }: Waiting): RequestLine {
    const { steadyMs, us, order } = instant;
    const time = us === undefined ? { t: steadyMs! } : { u: us, ...(order !== 0 && { q: order }) };
    if (requests.length === 1) return { ...time, ...this.#renderPart(requests[0]!, decisions[0]!) };
    const g = requests.map((request, i) => this.#renderPart(request, decisions[i]!));
    return { ...time, ...g[0]!, g };
  }

  #renderPart(request: CheckRequest, decision: Decision): Omit<RequestLine, "u" | "t" | "q" | "g"> {
    const { allowed, reason, degraded, remaining } = decision;
    const why = degraded === undefined ? reason : "degraded";
    return {
      d: this.#options.hidden.show(request.dimensions ?? {}),
      c: request.cost,
      o: request.domain,
      n: request.policies,
      a: allowed ? 1 : 0,
      r: why === "within_limits" ? undefined : why,
      p: decision.policy,
      v: decision.version,
      s: decision.scope,
      m: remaining !== undefined && Number.isFinite(remaining) ? remaining : undefined,
    };
  }

  #writePolicies(snapshot: Limiter["snapshot"]): void {
    this.#policies = snapshot;
    const { renderPolicies, hidden } = this.#options;
    const { disabled = [], blocks = [] } = snapshot.policySet;
    // Policies in the format of a file do not have them.
    if (disabled.length + blocks.length > 0) this.note("exceptions");
    const whole = JSON.stringify(renderPolicies(hidden.showPolicies(snapshot.policySet)));
    const parts = Math.ceil(whole.length / policyPart);
    for (let part = 0; part < parts; part++) {
      const text = whole.slice(part * policyPart, (part + 1) * policyPart);
      this.#write({ e: "policies", generation: snapshot.generation, part, parts, text });
    }
  }

  #write(line: RecordingLine): void {
    this.#options.file.add(JSON.stringify(line));
  }

  #writeCounts(): void {
    if (Object.keys(this.#counts).length === 0) return;
    this.#write({ e: "counts", counts: this.#counts });
    this.#counts = {};
  }

  #look(): void {
    if (this.#nowMs() >= this.#options.endsMs) void this.stop("time");
    else {
      this.#writeCounts();
      void this.#flush();
      if (this.#waiting.length > 0 && !this.#isScheduled) this.#drain();
    }
  }

  async #flush(): Promise<void> {
    const { file, maxBytes } = this.#options;
    await file.flush();
    if (file.error !== undefined) void this.stop("error");
    else if (file.bytes >= maxBytes) void this.stop("size");
  }

  async #finish(reason: EndReason): Promise<void> {
    const { file } = this.#options;
    while (this.#waiting.length > 0) {
      this.#render(this.#takeWaiting());
      if (file.textLength >= flushAt) await file.flush();
    }
    this.#writeCounts();
    this.#write({ e: "end", why: reason, requests: this.#requests });
    await file.close();
  }
}

/** Of what callers choose, with room for the rest of a line. */
function estimateLength({ dimensions = {}, domain = "", policies = [] }: CheckRequest): number {
  let length = 160 + domain.length;
  for (const name of Object.keys(dimensions)) length += name.length + dimensions[name]!.length + 6;
  for (const policy of policies) length += policy.length + 3;
  return length;
}
