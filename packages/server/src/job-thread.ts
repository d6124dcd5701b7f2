import { Worker } from "node:worker_threads";
import { type ErrorCode, type Problem, SluiceError } from "sluice";

/** The result of a job in another thread. Errors lose their class between threads, so they travel as plain data. */
export type JobAnswer<Result> =
  | { readonly kind: "done"; readonly result: Result }
  | {
      readonly kind: "refused";
      readonly code: ErrorCode;
      readonly message: string;
      readonly problems: readonly Problem[];
    };

export interface ThreadOptions {
  /** The module by its compiled name: `new URL("a-worker.js", import.meta.url)`. */
  readonly module: URL;
  /** The thread's initial data. */
  readonly input?: unknown;
  /** Beyond this the thread ends with `ERR_WORKER_OUT_OF_MEMORY`. Absent: Node's default. */
  readonly maxMemoryMb?: number;
}

/** Starts a thread that does not keep the process alive. */
export function startThread({ module, input, maxMemoryMb }: ThreadOptions): Worker {
  // From source, the thread's module is TypeScript as well, and finds the other packages' sources.
  const fromSource = import.meta.url.endsWith(".ts");
  const worker = new Worker(fromSource ? new URL(module.href.replace(/\.js$/, ".ts")) : module, {
    workerData: input,
    execArgv: fromSource ? ["--conditions=source"] : [],
    ...(maxMemoryMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: maxMemoryMb } }),
  });
  worker.unref();
  return worker;
}

/** In the thread: the answer to send. A problem with the input is an answer; any other error ends the thread. */
export function answerJob<Result>(work: () => Result): JobAnswer<Result> {
  try {
    return { kind: "done", result: work() };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return { kind: "refused", code: error.code, message: error.message, problems: error.problems };
  }
}

/** Outside: the job's result. Throws a `SluiceError` if it was refused. */
export function jobResult<Result>(answer: JobAnswer<Result>): Result {
  if (answer.kind === "done") return answer.result;
  throw new SluiceError(answer.code, answer.message, answer.problems);
}
