import type { Worker } from "node:worker_threads";
import { SluiceError } from "sluice";
import { type JobAnswer, jobResult, startThread } from "../../job-thread.ts";
import type { ThreadInput, ThreadJobs, ThreadResult } from "./thread-jobs.ts";

/**
 * Runs work in another thread that a request can make arbitrarily long, so that decisions never wait for it. There is
 * one thread, and jobs run in it one after the other:
 *
 *     no thread ──first job──► running ◄──► idle ──after a while, closed──► no thread
 *                                 └── took too long, or too much memory: the job is refused ──► no thread
 */
export interface WorkerThread {
  /**
   * Runs a job for a caller. Throws what the job throws; `overloaded` if too many wait, of this caller or of all;
   * `invalid_request` if it takes too long or too much memory.
   */
  run<Name extends keyof ThreadJobs>(name: Name, input: ThreadInput<Name>, who: string): Promise<ThreadResult<Name>>;
  /** Ends the thread. Jobs that wait are refused. */
  close(): Promise<void>;
}

export interface WorkerThreadOptions {
  /** How long one job may take before its thread is ended. */
  readonly withinMs?: number | undefined;
  /** How many jobs there may be at a time, running or waiting: of all callers, and of one. */
  readonly maxJobs?: number | undefined;
  readonly maxJobsOfOne?: number | undefined;
  readonly maxMemoryMb?: number | undefined;
  /** How long the thread stays without a job. */
  readonly idleMs?: number | undefined;
}

/** The message to the thread. */
export interface ThreadOrder {
  readonly name: keyof ThreadJobs;
  readonly input: unknown;
}

interface Waiting {
  readonly order: ThreadOrder;
  readonly who: string;
  resolve(result: unknown): void;
  reject(error: Error): void;
}

export function createWorkerThread(options: WorkerThreadOptions = {}): WorkerThread {
  const { withinMs = 30_000, maxJobs = 32, maxJobsOfOne = 8, maxMemoryMb = 1_024, idleMs = 60_000 } = options;
  /** The first one is running. */
  const jobs: Waiting[] = [];
  let worker: Worker | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  function startWorker(): Worker {
    const started = startThread({ module: new URL("thread-worker.js", import.meta.url), maxMemoryMb });
    started.on("message", (answer: JobAnswer<unknown>) => {
      if (started === worker) finish(answer);
    });
    started.on("error", (error: NodeJS.ErrnoException) => {
      if (started !== worker) return;
      worker = undefined;
      const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      fail(isMemory ? tooMuch(`more than ${maxMemoryMb} MB of memory`) : error);
    });
    started.on("exit", (code) => {
      if (started !== worker) return;
      worker = undefined;
      fail(new Error(`the worker thread ended with ${code}`));
    });
    return started;
  }

  function runNext(): void {
    clearTimeout(timer);
    const [next] = jobs;
    if (next === undefined) {
      timer = setTimeout(endWorker, idleMs).unref();
      return;
    }
    worker ??= startWorker();
    worker.postMessage(next.order);
    timer = setTimeout(() => {
      endWorker();
      fail(tooMuch(`more than ${withinMs / 1_000} s`));
    }, withinMs);
  }

  function endWorker(): void {
    const ended = worker;
    worker = undefined;
    void ended?.terminate();
  }

  function finish(answer: JobAnswer<unknown>): void {
    const job = jobs.shift();
    try {
      job?.resolve(jobResult(answer));
    } catch (error) {
      job?.reject(error as Error);
    }
    runNext();
  }

  function fail(error: Error): void {
    jobs.shift()?.reject(error);
    runNext();
  }

  function refuseTooMany(who: string): void {
    const own = jobs.filter((job) => job.who === who).length;
    if (closed) throw overloaded("the server is stopping");
    if (own >= maxJobsOfOne) throw overloaded(`${own} large requests of ${who} are being read already`);
    if (jobs.length >= maxJobs) throw overloaded(`${jobs.length} large requests are being read already`);
  }

  return {
    async run<Name extends keyof ThreadJobs>(
      name: Name,
      input: ThreadInput<Name>,
      who: string,
    ): Promise<ThreadResult<Name>> {
      refuseTooMany(who);
      return new Promise<unknown>((resolve, reject) => {
        jobs.push({ order: { name, input }, who, resolve, reject });
        if (jobs.length === 1) runNext();
      }) as Promise<ThreadResult<Name>>;
    },
    async close(): Promise<void> {
      closed = true;
      clearTimeout(timer);
      for (const job of jobs.splice(0)) job.reject(overloaded("the server is stopping"));
      const ended = worker;
      worker = undefined;
      await ended?.terminate();
    },
  };
}

function overloaded(why: string): SluiceError {
  return new SluiceError("overloaded", `${why}; try again in a moment`);
}

function tooMuch(what: string): SluiceError {
  const message = `takes ${what} to read; send less at a time`;
  return new SluiceError("invalid_request", `the request ${message}`, [{ path: [], message }]);
}
