import type { ComparedFiguresBody, RolloutBody, RolloutFiguresBody, RolloutStepBody } from "@sluice/protocol/admin";
import { printable } from "sluice/internal";
import { renderBar } from "../terminal/progress-line.ts";
import { renderFields, renderTable } from "../terminal/render-table.ts";
import { renderMoment, renderSpan } from "../terminal/render-time.ts";
import { renderWait, renderWaitBriefly } from "./render-wait.ts";

const ends: readonly RolloutBody["state"][] = ["done", "rolled_back", "cancelled"];

export function hasEnded({ state }: Pick<RolloutBody, "state">): boolean {
  return ends.includes(state);
}

export function renderRollouts(rollouts: readonly RolloutBody[], nowMs: number, width: number | undefined): string {
  if (rollouts.length === 0) return "There is no rollout.\n";
  return renderTable(
    [
      { title: "policy", flexible: true },
      { title: "versions" },
      { title: "state" },
      { title: "step" },
      { title: "subjects", align: "right" },
      { title: "next" },
      { title: "changed" },
      { title: "id" },
      { title: "why", flexible: true },
    ],
    rollouts.map((rollout) => [
      rollout.policy,
      renderVersions(rollout),
      renderState(rollout),
      `${rollout.step + 1} of ${rollout.steps.length}`,
      `${rollout.percent} %`,
      renderWaitBriefly(rollout, nowMs),
      renderMoment(rollout.changed_ms, nowMs),
      rollout.id,
      rollout.reason,
    ]),
    width,
  );
}

/** All there is to know of one, with its figures. */
export function renderRollout(rollout: RolloutBody, nowMs: number, width: number | undefined): string {
  const fields: [string, string][] = [
    ["rollout", rollout.id],
    ["policy", `${rollout.policy}, ${renderVersions(rollout)}, by ${rollout.by}`],
    ["state", rollout.reason === "" ? renderState(rollout) : `${renderState(rollout)}: ${rollout.reason}`],
    ["steps", renderSteps(rollout)],
    ["subjects", renderSubjects(rollout)],
    ["next", renderWait(rollout, nowMs)],
    ["created", `${renderMoment(rollout.created_ms, nowMs)} by ${rollout.author}`],
  ];
  if (rollout.expect_more_denials) fields.push(["denials", "more are expected, and do not roll it back"]);
  const { figures } = rollout;
  if (figures === undefined)
    return `${renderFields(fields)}\nNothing was compared${hasEnded(rollout) ? "" : " yet"}.\n`;
  // What rolled it back stands beside its state already.
  const sentence = figures.sentence === rollout.reason ? "" : `: ${figures.sentence}`;
  fields.push(["latest look", `${figures.verdict}${sentence}`]);
  fields.push(["looks", `${figures.looks} on this step, ${figures.strikes} in a row beyond what is usual`]);
  return `${renderFields(fields)}\n${renderFigures(rollout, figures, width)}`;
}

/** In a shadow the new version decides about no subject: it is only compared. */
function renderSubjects({ percent, shadow, from_version, to_version }: RolloutBody): string {
  if (!shadow) return `${percent} % under version ${to_version}`;
  const decides = from_version === 0 ? "no version decides" : `version ${from_version} decides`;
  return `${percent} % compared with version ${to_version}; ${decides}`;
}

function renderFigures(
  { steps }: RolloutBody,
  { total, rings }: RolloutFiguresBody,
  width: number | undefined,
): string {
  return renderTable(
    [
      { title: "joined at" },
      { title: "decided", align: "right" },
      { title: "denied", align: "right" },
      { title: "rate", align: "right" },
      { title: "usual", align: "right" },
      { title: "sigma", align: "right" },
      { title: "strike above", align: "right" },
      { title: "" },
    ],
    [
      ...rings.map((ring) => [
        `${steps[ring.step]?.percent ?? 100} %`,
        ...renderCompared(ring),
        ring.judged ? "" : renderUncompared(ring),
      ]),
      ["all judged", ...renderCompared(total), ""],
    ],
    width,
  );
}

function renderCompared({ decided, denied, rate, baseline, sigma, threshold }: ComparedFiguresBody): readonly string[] {
  return [String(decided), String(denied), share(rate), share(baseline), share(sigma), share(threshold)];
}

function renderUncompared({ baseline_decided, baseline_minutes }: ComparedFiguresBody): string {
  return `not compared: ${baseline_decided} requests in ${baseline_minutes} minutes under the old version`;
}

function share(rate: number): string {
  return `${(rate * 100).toFixed(2)} %`;
}

/** For a line that is written over: what is most worth knowing first, because it may be cut off. */
export function renderRolloutProgress(rollout: RolloutBody, reach: string, nowMs: number): string {
  const { step, steps, figures } = rollout;
  const next = renderWaitBriefly(rollout, nowMs);
  const denied =
    figures === undefined ? "" : `; denied ${share(figures.total.rate)} (usual ${share(figures.total.baseline)})`;
  return (
    `${renderBar(hasEnded(rollout) ? 1 : (step + 1) / (steps.length + 1), 10)} ${rollout.policy} ${renderState(rollout)}, ` +
    `${rollout.percent} %, step ${step + 1} of ${steps.length}${next === "-" ? "" : `, next ${next}`}; ${reach}${denied}`
  );
}

function renderVersions({ from_version, to_version }: RolloutBody): string {
  return from_version === 0 ? `new → ${to_version}` : `${from_version} → ${to_version}`;
}

function renderState({ state, shadow }: RolloutBody): string {
  return `${state.replace("_", " ")}${shadow ? " (shadow)" : ""}`;
}

/** `observe 10m, 1 % for 10m, [10 % by hand], 100 % for 10m`: the part in force in brackets. */
function renderSteps({ state, step, steps, observe_for_ms }: RolloutBody): string {
  const observed = observe_for_ms === 0 ? [] : [`observe ${renderSpan(observe_for_ms)}`];
  return [
    ...observed.map((text) => (state === "observing" ? `[${text}]` : text)),
    ...steps.map((one, index) => stepText(one, index === step)),
  ].join(", ");
}

/** What a rollout that is to begin will do, in one line. */
export function renderPlannedRollout(rollout: RolloutBody, nowMs: number): string {
  const { policy, starts_ms, created_ms, by, expect_more_denials, shadow } = rollout;
  const start = starts_ms > created_ms ? `, beginning ${renderMoment(starts_ms, nowMs)}` : "";
  const denials = expect_more_denials ? "; more denials are expected, and do not roll it back" : "";
  const versions = `${renderVersions(rollout)}${shadow ? " (shadow)" : ""}`;
  const plan = renderSteps({ ...rollout, state: "waiting", step: -1 });
  return `${printable(`Rollout of ${policy}, ${versions}, by ${by}${start}: ${plan}${denials}`)}\n`;
}

function stepText({ percent, hold_ms }: RolloutStepBody, inForce: boolean): string {
  const text = hold_ms === 0 ? `${percent} % by hand` : `${percent} % for ${renderSpan(hold_ms)}`;
  return inForce ? `[${text}]` : text;
}
