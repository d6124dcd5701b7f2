/** A point of a curve that falls as `x` grows. */
export interface CurvePoint {
  readonly x: number;
  readonly y: number;
}

/**
 * The index of the point at which a falling curve stops falling steeply: the one furthest below the straight line from
 * its first point to its last, both axes scaled to 1. Undefined if the curve does not fall, or nowhere bends.
 */
export function findKnee(points: readonly CurvePoint[]): number | undefined {
  const first = points[0];
  const last = points.at(-1);
  if (first === undefined || last === undefined || !(last.x > first.x) || !(first.y > last.y)) return undefined;
  let knee: number | undefined;
  let furthest = leastBend;
  for (const [index, { x, y }] of points.entries()) {
    const along = (x - first.x) / (last.x - first.x);
    const fallen = (first.y - y) / (first.y - last.y);
    const bend = fallen - along;
    if (bend <= furthest) continue;
    furthest = bend;
    knee = index;
  }
  return knee;
}

/** Less is a straight line. */
const leastBend = 0.02;
