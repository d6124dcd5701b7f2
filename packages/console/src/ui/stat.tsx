import type { ReactNode } from "react";
import type { Tone } from "./badge.tsx";
import { classNames } from "./class-names.ts";

interface StatProps {
  readonly label: string;
  readonly value: ReactNode;
  /** Beneath the number, smaller. */
  readonly about?: ReactNode;
  readonly tone?: Tone;
}

const tones: Readonly<Record<Tone, string>> = {
  plain: "text-ink",
  accent: "text-accent",
  allowed: "text-allowed",
  denied: "text-denied",
  degraded: "text-degraded",
  warning: "text-warning",
  good: "text-good",
};

/** One number that matters, with what it counts. */
export function Stat({ label, value, about, tone = "plain" }: StatProps): ReactNode {
  return (
    <div className="flex min-w-0 flex-col gap-0.5 rounded-lg border border-line bg-surface px-3 py-3">
      <dt className="text-xs font-medium text-balance text-ink-faint">{label}</dt>
      <dd className={classNames("truncate text-2xl font-semibold tracking-tight", tones[tone])}>{value}</dd>
      {about !== undefined && <dd className="text-xs text-balance text-ink-faint">{about}</dd>}
    </div>
  );
}

export function StatRow({ label, children }: { readonly label: string; readonly children: ReactNode }): ReactNode {
  return (
    <dl aria-label={label} className="grid grid-cols-2 gap-3 md:grid-cols-3 xl:grid-cols-6">
      {children}
    </dl>
  );
}
