import type { IdentityReport } from "../replay/identity-report.ts";
import { renderCount, renderInstant, renderShare } from "./render-quantity.ts";

const shownExamples = 2;

/** What an identity run found, in sentences; the first is the verdict. */
export function listIdentity({
  requests,
  agreed,
  exact,
  causes,
  not_compared,
  examples,
}: IdentityReport): readonly string[] {
  const { degraded, forced, sampled } = not_compared;
  const left = degraded + forced + sampled;
  const verdict =
    requests === 0
      ? "No decision of the recording can be compared."
      : exact
        ? `Exactly: all ${renderCount(requests)} decisions are reproduced.`
        : `${renderShare(agreed, requests)} of ${renderCount(requests)} decisions are reproduced, ${renderCount(requests - agreed)} are not.`;
  return [
    verdict,
    ...causes.map((one) => (one.requests === 0 ? one.message : `${one.message}: ${renderCount(one.requests)} differ`)),
    ...(left === 0
      ? []
      : [`${renderCount(left)} decisions were not compared, because no limit that is replayed made them`]),
    ...examples
      .slice(0, shownExamples)
      .map(
        ({ at_ms, dimensions, recorded, replayed }) =>
          `for example ${JSON.stringify(dimensions)} at ${renderInstant(at_ms)}: ${recorded}; replayed: ${replayed}`,
      ),
  ];
}
