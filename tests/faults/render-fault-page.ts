import type { FaultResult } from "./fault-result.ts";
import type { FaultScenario } from "./fault-scenario.ts";

const begin = "<!-- results: written by npm run faults -->";
const end = "<!-- end of results -->";

/** The page about faults, with the results of playing them. */
export function renderFaultPage(scenarios: readonly FaultScenario[], results: readonly FaultResult[]): string {
  return `# What failing servers cost

This page is for operators who want to know what a failing Valkey or Redis does to decisions.
It lists what Sluice promises under every fault, and what was measured:
each fault below is played on real servers while traffic runs.
\`npm run faults\` plays them all and writes this page.
\`npm test\` plays most of them, and fails if a promise is broken.

Traffic is some 600 checks a second, with the default deadline of policies (25 ms).
Its limits are GCRA, one with several windows and a fixed window, under \`on_failure\` \`open\`, \`closed\` and \`local\`.
Next to them run *probes*, whose limits are never reached,
so that what was charged can be compared with what was admitted.

## Promised under every fault

- **No check outlives its deadline**, except for the time the calling process itself did not run
  and 150 ms for a busy machine.
  None hangs and none rejects; every check gets an answer.
- **Nothing is charged twice, and nothing is admitted uncharged.**
  The probes' counters hold at least what was admitted,
  and at most that plus the checks that were sent and never answered.
  Limits of one request are charged together.
- **No more is admitted than the fault must cost.**
  In no stretch of time does a limit admit more than burst + rate × time by shared counters.
  If a server loses its memory, one burst more; if a replica takes over, at most one burst.
- **\`on_failure\` is kept**: \`closed\` lets nothing through, \`open\` refuses nothing,
  \`local\` admits no more than this node's share.
- **Limits are enforced again within 10 s** of the end of the fault.
- **Nothing is left behind**: after closing, no connection on either side, and no unhandled rejection.

## The faults

| fault | what happens | what the test also asserts |
|---|---|---|
${scenarios.map(({ name, fault, beside }) => `| ${name} | ${fault} | ${beside} |`).join("\n")}

## Measured

Measured on two cores, servers and traffic together.

- *degraded*: checks answered by \`on_failure\`, because the storage was unavailable (answered at once) / late.
- *beyond deadline*: that of the slowest check, without stalls of the test itself.
- *charged*: what the probes' counters held at the end.
- *admitted*: what they must hold at least.
- *unanswered*: how much more than that can be explained.
  For a crash, these three count since the crash; for a failover, *admitted* counts since the failover.
- *over*: the most that a limit admitted beyond burst + rate × time.
- *enforced after*: time since the end of the fault; the breaker probes a failed server every five seconds.

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
