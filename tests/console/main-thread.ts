import type { Browser, Page } from "playwright-core";

export interface TaskTime {
  /** From its begin to its end. On a busy machine most of it may be waiting for a core. */
  readonly ms: number;
  /** The processor time that its thread took. */
  readonly cpuMs: number;
}

interface TraceEvent {
  readonly ph: string;
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  /** Microseconds. */
  readonly dur?: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

/** The task that took most time of a page's main thread while `work` ran, as Chromium traces it. */
export async function longestTask(browser: Browser, page: Page, work: () => Promise<void>): Promise<TaskTime> {
  await browser.startTracing(page, { categories: ["-*", "toplevel", "__metadata"] });
  let trace: Buffer;
  try {
    await work();
  } finally {
    trace = await browser.stopTracing();
  }
  const { traceEvents } = JSON.parse(trace.toString()) as { readonly traceEvents: readonly TraceEvent[] };
  const threads = new Set(
    traceEvents
      .filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain")
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  const tasks = traceEvents.filter(
    ({ ph, name, pid, tid }) => ph === "X" && name.endsWith("RunTask") && threads.has(`${pid} ${tid}`),
  );
  const longest = (of: (task: TraceEvent) => number | undefined): number =>
    Math.round(tasks.reduce((most, task) => Math.max(most, of(task) ?? 0), 0) / 1_000);
  return { ms: longest(({ dur }) => dur), cpuMs: longest(({ tdur }) => tdur) };
}
