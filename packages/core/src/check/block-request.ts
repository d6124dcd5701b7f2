import { SluiceError } from "../errors.ts";
import type { Resolution } from "../match/resolve.ts";
import { maxBlockMs } from "../policy/bounds.ts";

export function checkBlockMs(forMs: number): void {
  if (Number.isInteger(forMs) && forMs >= 1 && forMs <= maxBlockMs) return;
  const message = `must be a whole number of milliseconds from 1 to ${maxBlockMs}, not ${String(forMs)}`;
  throw new SluiceError("invalid_request", `forMs ${message}`, [{ path: ["forMs"], message }]);
}

/** Refuses to block a request if no limit would look for the block. */
export function checkBlockable({ limits, candidates }: Resolution): void {
  if (limits.some(({ limit, group }) => limit.blockable && group === 0)) return;
  const ids = [...new Set(candidates.map(({ policy }) => policy.policy.id))].join(", ");
  const shadowed = limits.some(({ limit }) => limit.blockable) ? ", of a policy that is enforced," : "";
  const message =
    ids === ""
      ? "cannot be blocked: no policy applies to it"
      : `cannot be blocked by policy ${ids}: a limit that applies to it${shadowed} needs blockable: true, or block_for`;
  throw new SluiceError("invalid_request", `the request ${message}`, [{ path: [], message }]);
}
