import type { ReactNode } from "react";
import { formatAgo, formatMoment } from "../format/times.ts";
import { useNow } from "./now.ts";

/** `5 min ago`, with the moment itself on hover and for machines. */
export function RelativeTime({ ms }: { readonly ms: number }): ReactNode {
  const nowMs = useNow();
  return (
    <time className="whitespace-nowrap" dateTime={new Date(ms).toISOString()} title={formatMoment(ms)}>
      {formatAgo(ms, Math.max(nowMs, 0))}
    </time>
  );
}
