import type { Clock } from "../clock.ts";
import type { CounterStore, PeekOptions, ResolvedLimit, TakeAnswer } from "../counters/counter-store.ts";
import { ExpiringMap } from "../counters/expiring-map.ts";
import { renderFingerprint } from "./take-options.ts";

const maxPreviews = 5000;

export interface PreviewCacheOptions {
  readonly counters: CounterStore;
  readonly clock: Clock;
  /** How old a preview may be. 0 asks the store for every preview. */
  readonly maxAgeMs: number;
  /** Called for every preview answered from memory. */
  readonly onHit: (() => void) | undefined;
}

/** Previews under one snapshot, answered from memory while they are young enough. */
export class PreviewCache {
  readonly #options: PreviewCacheOptions;
  readonly #previews = new ExpiringMap<{ readonly answer: TakeAnswer; readonly askedMs: number }>(maxPreviews);

  constructor(options: PreviewCacheOptions) {
    this.#options = options;
  }

  peek(limits: readonly ResolvedLimit[], { deadlineMs, record }: PeekOptions): TakeAnswer | Promise<TakeAnswer> {
    const { counters, clock, maxAgeMs, onHit } = this.#options;
    if (maxAgeMs === 0 || record === true) return counters.peek(limits, { deadlineMs, record });
    const key = renderPreviewKey(limits);
    const nowMs = clock.nowMs();
    const known = this.#previews.find(key, nowMs);
    // A preview dated after now was made before the clock stepped back.
    if (known !== undefined && known.askedMs <= nowMs) {
      onHit?.();
      return known.answer;
    }
    const remember = (answer: TakeAnswer): TakeAnswer => {
      this.#previews.set(key, { answer, askedMs: nowMs }, nowMs + maxAgeMs, nowMs);
      return answer;
    };
    const answer = counters.peek(limits, { deadlineMs });
    return answer instanceof Promise ? answer.then(remember) : remember(answer);
  }

  clear(): void {
    this.#previews.clear();
  }
}

/** The fingerprint, and the windows, which differ by tier. */
function renderPreviewKey(limits: readonly ResolvedLimit[]): string {
  const windows = limits.map((limit) =>
    limit.windows.map(({ identity, source }) => [identity, source.limit, source.burst]),
  );
  return `${renderFingerprint(limits)}\n${JSON.stringify(windows)}`;
}
