import type { ReactNode } from "react";
import { formatShare } from "../format/numbers.ts";

interface MeterProps {
  /** What is measured, for screen readers. */
  readonly label: string;
  /** 0 to 1. */
  readonly share: number;
  readonly tone?: "allowed" | "denied" | "warning" | "accent";
}

/** How full something is, as wide as there is room. */
export function Meter({ label, share, tone = "allowed" }: MeterProps): ReactNode {
  const filled = Math.max(0, Math.min(1, share));
  return (
    <svg
      aria-label={`${label}: ${formatShare(filled)}`}
      className="block h-1.5 w-full overflow-hidden rounded-full bg-line"
      preserveAspectRatio="none"
      role="img"
      viewBox="0 0 100 1"
    >
      <rect fill={`var(--${tone})`} height="1" width={filled * 100} />
    </svg>
  );
}
