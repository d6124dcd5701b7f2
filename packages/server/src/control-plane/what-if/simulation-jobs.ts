import type { Worker } from "node:worker_threads";
import { SluiceError } from "sluice";
import { startThread } from "../../job-thread.ts";
import { makeTimedId } from "../audit/make-id.ts";
import { notFound } from "../control-errors.ts";
import type { SimulationView } from "../what-if-control.ts";
import { findRoomBytes, leastRoomBytes, planSimulationMemory } from "./simulation-memory.ts";
import type { SimulationInput, SimulationMessage, SimulationOrder } from "./simulation-order.ts";

export interface SimulationJobsOptions {
  readonly node: string;
  readonly nowMs: () => number;
  readonly withinMs?: number | undefined;
  /** The memory that this process may still take. */
  readonly findRoomBytes?: (() => number) | undefined;
  readonly maxWaiting?: number | undefined;
  readonly maxWaitingOfOne?: number | undefined;
  readonly maxKept?: number | undefined;
  readonly keptMs?: number | undefined;
}

export interface NewSimulation {
  readonly createdBy: string;
  /** The key of the caller, which no other token has. */
  readonly owner: string;
  readonly recording: string | undefined;
  readonly logBytes: number | undefined;
  readonly order: SimulationOrder;
}

interface Job {
  view: SimulationView;
  readonly owner: string;
  order: SimulationOrder | undefined;
}

/**
 * Simulations, each in a separate thread, one at a time, so that decisions never wait for them:
 *
 *     waiting ──► running ──► done, or failed (refused, too long, too much memory)
 *        └────────────┴─────► cancelled
 */
export class SimulationJobs {
  readonly #options: SimulationJobsOptions;
  /** Oldest first. */
  readonly #jobs: Map<string, Job> = new Map();
  #running: { readonly id: string; readonly worker: Worker; readonly timer: NodeJS.Timeout } | undefined;
  #isClosed = false;

  constructor(options: SimulationJobsOptions) {
    this.#options = options;
  }

  /** Throws `overloaded` if too many wait, or if there is too little memory. Asked before anything of a request is read. */
  demandRoom(owner: string, createdBy: string): void {
    const { maxWaiting = 4, maxWaitingOfOne = 2 } = this.#options;
    const waiting = [...this.#jobs.values()].filter(({ view }) => view.state === "waiting");
    const own = waiting.filter((job) => job.owner === owner).length;
    if (this.#isClosed) throw new SluiceError("overloaded", "the server is stopping");
    if (own >= maxWaitingOfOne) throw new SluiceError("overloaded", `${own} simulations of ${createdBy} wait already`);
    if (waiting.length >= maxWaiting)
      throw new SluiceError("overloaded", `${waiting.length} simulations wait already; try again later, or cancel one`);
    if (this.#planMemory() === undefined) throw new SluiceError("overloaded", tooLittleMemory);
  }

  /** Throws `overloaded`, as `demandRoom`. */
  add({ createdBy, owner, recording, logBytes, order }: NewSimulation): SimulationView {
    this.#forgetOld();
    this.demandRoom(owner, createdBy);
    const { node, nowMs } = this.#options;
    const createdMs = nowMs();
    const view: SimulationView = {
      ...{ id: makeTimedId(createdMs), node, state: "waiting", createdMs, createdBy, recording, logBytes },
      ...{ startedMs: undefined, endedMs: undefined, progress: 0, requests: 0, error: undefined, document: undefined },
    };
    this.#jobs.set(view.id, { view, owner, order });
    this.#runNext();
    return this.find(view.id);
  }

  /** Newest first, without documents. */
  list(): readonly SimulationView[] {
    this.#forgetOld();
    return [...this.#jobs.values()].map(({ view }) => ({ ...view, document: undefined })).reverse();
  }

  /** Throws `resource_not_found`. */
  find(id: string): SimulationView {
    this.#forgetOld();
    const job = this.#jobs.get(id);
    if (job === undefined) throw notFound(`simulation ${id}`);
    return job.view;
  }

  /** Whether a caller asked for it. Throws `resource_not_found`. */
  isOwn(id: string, owner: string): boolean {
    this.find(id);
    return this.#jobs.get(id)?.owner === owner;
  }

  /** Cancels it, or forgets it if it has ended. */
  delete(id: string): SimulationView {
    const { state } = this.find(id);
    if (state === "waiting" || state === "running") {
      this.#end(id, { state: "cancelled" });
      return this.find(id);
    }
    const { view } = this.#jobs.get(id)!;
    this.#jobs.delete(id);
    return view;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const worker = this.#running?.worker;
    clearTimeout(this.#running?.timer);
    this.#running = undefined;
    await worker?.terminate();
  }

  #planMemory() {
    return planSimulationMemory((this.#options.findRoomBytes ?? findRoomBytes)());
  }

  #runNext(): void {
    const next = [...this.#jobs.values()].find(({ view }) => view.state === "waiting");
    if (next === undefined || this.#running !== undefined || this.#isClosed) return;
    const { withinMs = 300_000, nowMs } = this.#options;
    const { id } = next.view;
    const memory = this.#planMemory();
    if (memory === undefined) {
      this.#end(id, { state: "failed", error: { message: tooLittleMemory } });
      return;
    }
    const { heapMb: maxMemoryMb, counterBytes: maxCounterBytes } = memory;
    const input: SimulationInput = { ...next.order!, maxCounterBytes };
    const worker = startThread({
      module: new URL("simulation-worker.js", import.meta.url),
      input,
      maxMemoryMb,
    });
    // Its log may be large.
    next.order = undefined;
    const tooLong = `it took more than ${Math.round(withinMs / 1000)} s; simulate less at a time, or with the command sluice simulate`;
    const timer = setTimeout(() => this.#end(id, { state: "failed", error: { message: tooLong } }), withinMs).unref();
    this.#running = { id, worker, timer };
    next.view = { ...next.view, state: "running", startedMs: nowMs() };
    worker.on("message", (message: SimulationMessage) => this.#receive(id, message));
    worker.on("error", (error: NodeJS.ErrnoException) => {
      const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      this.#end(id, {
        state: "failed",
        error: { message: isMemory ? `it took more than ${maxMemoryMb} MB of memory` : error.message },
      });
    });
    worker.on("exit", (code) =>
      this.#end(id, { state: "failed", error: { message: `its thread ended with ${code}` } }),
    );
  }

  #receive(id: string, message: SimulationMessage): void {
    if (message.kind === "done") this.#end(id, { state: "done", progress: 1, document: message.document });
    else if (message.kind === "refused") this.#end(id, { state: "failed", error: { message: message.message } });
    else {
      const job = this.#jobs.get(id);
      if (job?.view.state !== "running") return;
      job.view = { ...job.view, progress: message.share, requests: message.requests };
    }
  }

  /** The first end counts. */
  #end(id: string, end: Pick<SimulationView, "state"> & Partial<SimulationView>): void {
    const job = this.#jobs.get(id);
    if (job === undefined || (job.view.state !== "running" && job.view.state !== "waiting")) return;
    job.order = undefined;
    job.view = {
      ...job.view,
      ...end,
      endedMs: this.#options.nowMs(),
      requests: countRequests(end) ?? job.view.requests,
    };
    if (this.#running?.id === id) {
      clearTimeout(this.#running.timer);
      void this.#running.worker.terminate();
      this.#running = undefined;
    }
    this.#runNext();
  }

  #forgetOld(): void {
    const { maxKept = 20, keptMs = 3_600_000, nowMs } = this.#options;
    const ended = [...this.#jobs.values()].filter(({ view }) => view.endedMs !== undefined);
    for (const [i, { view }] of ended.entries())
      if (i < ended.length - maxKept || nowMs() - view.endedMs! > keptMs) this.#jobs.delete(view.id);
  }
}

const tooLittleMemory = `this server has less than ${leastRoomBytes / 1024 ** 2} MiB of memory left, too little for a simulation beside its decisions; give it more, or simulate with the command sluice simulate`;

function countRequests({ document }: Partial<SimulationView>): number | undefined {
  return (document as { readonly result: { readonly requests: number } } | undefined)?.result.requests;
}
