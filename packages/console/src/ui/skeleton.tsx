import type { ReactNode } from "react";
import { classNames } from "./class-names.ts";

/** Stands in for what is being loaded, in about its size. */
export function Skeleton({ className }: { readonly className?: string }): ReactNode {
  return <div aria-hidden="true" className={classNames("animate-breathe rounded-md bg-sunken", className)} />;
}

export function SkeletonRows({
  rows = 6,
  label = "Loading",
}: {
  readonly rows?: number;
  readonly label?: string;
}): ReactNode {
  return (
    <div aria-label={label} className="flex flex-col gap-2 p-4" role="status">
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike.
        <Skeleton className="h-7" key={row} />
      ))}
    </div>
  );
}
