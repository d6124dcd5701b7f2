import type { FaultResult } from "./fault-result.ts";
import type { FaultScenario } from "./fault-scenario.ts";

const begin = "<!-- results: written by npm run faults -->";
const end = "<!-- end of results -->";

/** The page about faults, with what came of playing them. */
export function renderFaultPage(scenarios: readonly FaultScenario[], results: readonly FaultResult[]): string {
  return `# What failing servers cost

Counters in Valkey and Redis are asked over a network, by servers that crash, stand still and change places. This page says
what that does to decisions, and shows what was measured: every fault below is played on real servers while traffic runs.
\`npm run faults\` plays them all and writes this page; \`npm test\` plays most of them, and fails where a promise is broken.

Traffic is some 600 checks a second, with the deadline that policies have by default (25 ms): limits by GCRA, one with several
windows and a fixed window, under \`on_failure\` \`open\`, \`closed\` and \`local\`. Beside them run *probes*, whose limits
nobody reaches, so that what was charged can be compared with what was admitted.

## Promised under every fault

- **No check outlives its deadline**, but for what the calling process itself stood still and 150 ms for a busy machine. None
  hangs, none rejects; as many are answered as are asked.
- **Nothing is charged twice, and nothing is admitted uncharged.** What the probes' counters hold is at least what was
  admitted, and at most that plus the checks that were sent and never answered. Limits of one request are charged together.
- **No more is admitted than the fault must cost.** In no stretch of time does a limit admit more than burst + rate × time by
  shared counters. Where a server loses its memory, one burst more; where a replica takes over, at most one burst.
- **\`on_failure\` is kept to**: \`closed\` lets nothing through, \`open\` turns nothing away, \`local\` admits no more than this
  node's share.
- **Limits are enforced again within 10 s** of the end of the fault.
- **Nothing is left behind**: after closing, no connection on either side, and no rejection that nobody handled.

## The faults

| fault | what happens | and it is asserted that |
|---|---|---|
${scenarios.map(({ name, fault, beside }) => `| ${name} | ${fault} | ${beside} |`).join("\n")}

## Measured

On two cores, servers and traffic together. *Degraded* checks were answered by \`on_failure\`: as the storage was unavailable
(which is said at once) / late. *Beyond deadline* is the slowest check's, without stalls of the test itself. *Charged* is what
the probes' counters held at the end, *admitted* what they must hold at least, *unanswered* how much more could be explained;
for a crash, all of it since then, and for a failover *admitted* counts what came after it. *Over* is the
most that a limit admitted beyond burst + rate × time. *Enforced after* is counted from the end of the fault: the breaker asks
a server that failed again every five seconds.

${begin}
| fault | on | checks | degraded | beyond deadline | charged | admitted | unanswered | over | enforced after | |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|
${results.map(renderRow).join("\n")}
${end}
`;
}

function renderRow(result: FaultResult): string {
  const { degraded, breaches, facts } = result;
  const cells = [
    result.scenario,
    result.flavor,
    result.checks,
    `${degraded.storage_unavailable} / ${degraded.storage_timeout}`,
    `${result.beyondDeadlineMs.toFixed(0)} ms`,
    result.charged,
    result.counted,
    result.lost,
    result.overAdmitted,
    Number.isFinite(result.enforcedAfterMs) ? `${(result.enforcedAfterMs / 1000).toFixed(2)} s` : "never",
    [...breaches.map((breach) => `**${breach}**`), ...facts].join("; "),
  ];
  return `| ${cells.join(" | ")} |`;
}
