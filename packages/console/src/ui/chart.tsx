import { lazy, type ReactNode, Suspense } from "react";
import type { ChartProps } from "./chart-canvas.tsx";
import { Skeleton } from "./skeleton.tsx";

export type { ChartBand, ChartSeries } from "./chart-canvas.tsx";

const ChartCanvas = lazy(() => import("./chart-canvas.tsx"));

/** A chart over time, loaded only where one is shown. Its label says in words what it shows. */
export function Chart(props: ChartProps): ReactNode {
  return (
    <Suspense fallback={<Skeleton className="w-full" />}>
      <ChartCanvas {...props} />
    </Suspense>
  );
}
