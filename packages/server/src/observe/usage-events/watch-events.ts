import type { UsageEvent } from "./usage-event.ts";
import type { UsageEvents } from "./usage-events.ts";
import type { UsageStream } from "./usage-stream.ts";

/** Calls with every event, and has decisions counted meanwhile, even if there is no sink. Returns what ends both. */
export function watchEvents(
  events: Pick<UsageEvents, "active">,
  stream: Pick<UsageStream, "watch" | "isHeard">,
  onEvent: (event: UsageEvent) => void,
): () => void {
  const unwatch = stream.watch(onEvent);
  events.active = true;
  return () => {
    unwatch();
    events.active = stream.isHeard;
  };
}
