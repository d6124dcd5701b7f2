import { setTimeout as pause } from "node:timers/promises";

/** Asks again and again until the answer is true. Two cores that others use as well: a short step may take long. */
export async function until(what: string, ask: () => Promise<boolean>, withinMs = 120_000): Promise<void> {
  const untilMs = performance.now() + withinMs;
  while (!(await ask())) {
    if (performance.now() > untilMs) throw new Error(`not within ${withinMs} ms: ${what}`);
    await pause(50);
  }
}
