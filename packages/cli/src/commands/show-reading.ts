import type { LogSource, LogTotals } from "@sluice/simulate/logs";
import { systemClock } from "sluice/internal";
import { createProgressLine, renderBar } from "../terminal/progress-line.ts";
import { renderSpan } from "../terminal/render-time.ts";
import type { Terminal } from "../terminal/terminal.ts";

export interface ReadingProgress {
  show(totals: Readonly<Pick<LogTotals, "lines" | "readBytes">>): void;
  end(): void;
}

const everyMs = 200;

/** Shows how far reading is, in a terminal; elsewhere nothing. */
export function showReading(sources: readonly LogSource[], { stderr }: Terminal): ReadingProgress {
  if (stderr.isTTY !== true) return { show() {}, end() {} };
  const line = createProgressLine(stderr);
  const startMs = systemClock.nowMs();
  let shownMs = startMs;
  const sizes = sources.map(({ bytes }) => bytes);
  const wholeBytes = sizes.includes(undefined) ? undefined : sizes.reduce((sum = 0, bytes = 0) => sum + bytes, 0);
  return {
    show({ lines, readBytes }): void {
      const nowMs = systemClock.nowMs();
      if (nowMs - shownMs < everyMs) return;
      shownMs = nowMs;
      line.show(renderReading(lines, readBytes, wholeBytes, nowMs - startMs));
    },
    end: () => line.end(),
  };
}

/** `[####----] 40%, 1.2M lines, 512k a second, 12s left`. Without a known size: lines and speed alone. */
export function renderReading(
  lines: number,
  readBytes: number,
  wholeBytes: number | undefined,
  spentMs: number,
): string {
  const speed = `${renderShort(lines)} lines, ${renderShort((lines * 1000) / Math.max(1, spentMs))} a second`;
  if (wholeBytes === undefined || wholeBytes === 0) return speed;
  const share = Math.min(1, readBytes / wholeBytes);
  const leftMs = share === 0 ? undefined : (spentMs * (1 - share)) / share;
  const left = leftMs === undefined ? "" : `, ${renderSpan(Math.ceil(leftMs / 1000) * 1000)} left`;
  return `${renderBar(share)} ${Math.floor(share * 100)}%, ${speed}${left}`;
}

function renderShort(count: number): string {
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)}M`;
  return count >= 1e3 ? `${(count / 1e3).toFixed(1)}k` : String(Math.round(count));
}
