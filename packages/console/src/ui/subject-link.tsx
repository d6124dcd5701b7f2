import type { ReactNode } from "react";
import { PathLink } from "./path-link.tsx";

/** A subject, which leads to its page. `(other)` stands for many and leads nowhere. */
export function SubjectLink({ dimension, value }: { readonly dimension: string; readonly value: string }): ReactNode {
  if (value === "(other)") return <span className="text-ink-faint">all others</span>;
  return (
    <PathLink className="font-mono text-xs text-accent hover:underline" href={subjectPath(dimension, value)}>
      {value}
    </PathLink>
  );
}

export function subjectPath(dimension: string, value: string): string {
  return `/subjects/${encodeURIComponent(dimension)}/${encodeURIComponent(value)}`;
}
