import type { Sluice } from "./start-sluice.ts";

/** Like a load balancer: repeatedly checks which servers are ready, and uses no others. */
export function followReadiness(
  known: readonly Sluice[],
  use: (ready: readonly Sluice[]) => void,
): () => Promise<void> {
  let on = true;
  let last = "";
  const looking = (async () => {
    while (on) {
      const readiness = await Promise.all(known.map((server) => server.isReady()));
      const ready = known.filter((_, index) => readiness[index]);
      const now = readiness.join();
      if (now !== last && ready.length > 0) use(ready);
      last = now;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  return async () => {
    on = false;
    await looking;
  };
}
