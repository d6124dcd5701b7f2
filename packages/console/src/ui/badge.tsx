import type { ReactNode } from "react";
import { classNames } from "./class-names.ts";

export type Tone = "plain" | "accent" | "allowed" | "denied" | "degraded" | "warning" | "good";

const tones: Readonly<Record<Tone, string>> = {
  plain: "bg-sunken text-ink-soft border-line",
  accent: "bg-accent-soft text-accent border-transparent",
  allowed: "bg-allowed-soft text-allowed border-transparent",
  denied: "bg-denied-soft text-denied border-transparent",
  degraded: "bg-degraded-soft text-degraded border-transparent",
  warning: "bg-warning-soft text-warning border-transparent",
  good: "bg-good-soft text-good border-transparent",
};

/** A word about a state. The word says it; the colour only repeats it. */
export function Badge({
  tone = "plain",
  children,
  title,
}: {
  readonly tone?: Tone;
  readonly children: ReactNode;
  readonly title?: string;
}): ReactNode {
  return (
    <span
      className={classNames(
        "inline-flex h-5 items-center gap-1 rounded border px-1.5 text-xs font-medium whitespace-nowrap",
        tones[tone],
      )}
      title={title}
    >
      {children}
    </span>
  );
}
