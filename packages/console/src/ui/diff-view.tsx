import type { ReactNode } from "react";
import { lazy, Suspense } from "react";
import type { DiffViewProps } from "./merge-mirror.tsx";
import { Skeleton } from "./skeleton.tsx";

const MergeMirror = lazy(() => import("./merge-mirror.tsx"));

/** Two texts side by side, with what differs. */
export function DiffView(props: DiffViewProps): ReactNode {
  return (
    <Suspense fallback={<Skeleton className="h-64 w-full" />}>
      <MergeMirror {...props} />
    </Suspense>
  );
}
