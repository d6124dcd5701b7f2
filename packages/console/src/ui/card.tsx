import type { ReactNode } from "react";
import { classNames } from "./class-names.ts";

interface CardProps {
  /** Its heading, which names the region for screen readers. */
  readonly title: string;
  /** Next to the heading, at the right. */
  readonly aside?: ReactNode;
  readonly children: ReactNode;
  /** Without padding, for tables that reach the edge. */
  readonly flush?: boolean;
  readonly className?: string;
}

export function Card({ title, aside, children, flush = false, className }: CardProps): ReactNode {
  return (
    <section aria-label={title} className={classNames("min-w-0 rounded-lg border border-line bg-surface", className)}>
      <header className="flex min-h-11 flex-wrap items-center justify-between gap-2 px-4 pt-2.5 pb-1.5">
        <h2 className="text-sm font-semibold text-ink">{title}</h2>
        {aside !== undefined && <div className="flex items-center gap-2 text-sm text-ink-faint">{aside}</div>}
      </header>
      <div className={flush ? "pb-1" : "px-4 pb-4"}>{children}</div>
    </section>
  );
}
