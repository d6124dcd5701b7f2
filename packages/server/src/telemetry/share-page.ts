import { setTimeout as after } from "node:timers/promises";

/** A page is not rendered again before it has rested this many times as long as rendering it took, or for a quarter of a second. */
const restFactor = 10;
const maxRestMs = 250;

/**
 * Renders a page once for all who ask for it at the same time. A rendering that has begun is nothing for those who ask after that: it
 * might lack what happened in between, so they wait together for the next one. An answer is therefore never older than its
 * question, and however many ask, rendering takes a tenth of the time.
 */
export function sharePage(render: () => Promise<string>): () => Promise<string> {
  let next: Promise<string> | undefined;
  let running: Promise<unknown> = Promise.resolve();
  let restUntilMs = 0;

  async function renderNext(): Promise<string> {
    // A failure is for those who asked for it.
    await running.catch(() => {});
    const restMs = restUntilMs - performance.now();
    if (restMs > 0) await after(restMs);
    next = undefined;
    const beganMs = performance.now();
    const rendering = render();
    running = rendering;
    try {
      return await rendering;
    } finally {
      const tookMs = performance.now() - beganMs;
      restUntilMs = performance.now() + Math.min(tookMs * restFactor, maxRestMs);
    }
  }

  return () => {
    next ??= renderNext();
    return next;
  };
}
