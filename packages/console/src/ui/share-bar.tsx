import type { ReactNode } from "react";
import { formatShare } from "../format/numbers.ts";

interface ShareBarProps {
  /** 0 to 1, and beyond where bursts allow it. */
  readonly share: number;
  /** The share at which it warns. */
  readonly warnAt?: number;
  readonly label: string;
}

/** How much of something is used, as a bar and as a number. */
export function ShareBar({ share, warnAt = 0.8, label }: ShareBarProps): ReactNode {
  const tone = share >= 1 ? "var(--denied)" : share >= warnAt ? "var(--warning)" : "var(--allowed)";
  return (
    <span className="flex items-center gap-2" title={label}>
      <svg
        aria-label={`${label}: ${formatShare(share)}`}
        className="shrink-0"
        height="8"
        role="img"
        viewBox="0 0 64 8"
        width="64"
      >
        <rect fill="var(--sunken)" height="8" rx="2" stroke="var(--line)" width="64" />
        <rect fill={tone} height="8" rx="2" width={Math.max(share > 0 ? 1.5 : 0, Math.min(1, share) * 64)} />
      </svg>
      <span className="text-xs">{formatShare(share)}</span>
    </span>
  );
}
