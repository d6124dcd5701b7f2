import type { ChangeBody, RolloutBody, RolloutChangeBody, RolloutState } from "@sluice/protocol/admin";
import type { Command } from "commander";
import { printable } from "sluice/internal";
import { type ChangeFlags, nothingDone, readTimeout, settleChange } from "../control/change-flags.ts";
import { changeCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { RefusedRequest } from "../control/refused-request.ts";
import { hasEnded, renderRollout, renderRollouts } from "../control/render-rollout.ts";
import { waitForRollout } from "../control/wait-for-rollout.ts";
import { confirm } from "../terminal/confirm.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";

export interface PolicyRolloutOptions extends ControlOptions, ChangeFlags {
  readonly advance?: boolean;
  readonly pause?: boolean;
  readonly resume?: boolean;
  readonly finish?: boolean;
  readonly rollBack?: boolean;
  /** Also those that have ended. */
  readonly all?: boolean;
}

/** What can be done to a rollout, and what is asked before it is. Pausing and going on are harmless. */
const verbs = {
  advance: {
    question: (one: RolloutBody) => `Advance the rollout of ${one.policy} from ${one.percent} %?`,
  },
  pause: { question: undefined },
  resume: { question: undefined },
  finish: {
    question: (one: RolloutBody) => `Put version ${one.to_version} of ${one.policy} in force for all subjects, now?`,
  },
  rollBack: {
    question: (one: RolloutBody) => `Return all subjects to version ${one.from_version} of ${one.policy}?`,
  },
} as const;

type Verb = keyof typeof verbs;

const mostListed = 100;
const underway: readonly RolloutState[] = ["waiting", "observing", "running", "paused"];

const noneUnderway = "No rollout is underway. Those that have ended: sluice policy rollout --all\n";

/** `sluice policy rollout`: lists rollouts, shows one, steers it, or waits for its end. */
export async function policyRollout(
  id: string | undefined,
  options: PolicyRolloutOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json, nowMs, width } = session;
  const chosen = (Object.keys(verbs) as Verb[]).filter((verb) => options[verb] === true);
  if (chosen.length > 1)
    throw new CommandError("one thing at a time: --advance, --pause, --resume, --finish or --roll-back");
  const [verb] = chosen;
  if (id !== undefined && options.all === true) throw new CommandError("--all is for the list; leave out the name");
  if (verb === undefined) refuseIdleOptions(options, ["why", "dryRun", "yes"]);
  if (id === undefined) {
    if (verb !== undefined || options.wait === true) throw new CommandError("name the policy, or the rollout's id");
    const rollouts = await api.rollouts
      .list({ states: options.all === true ? undefined : underway })
      .toArray(mostListed);
    if (json) writeJson(session, { rollouts });
    else if (rollouts.length === 0 && options.all !== true) terminal.stdout.write(noneUnderway);
    else terminal.stdout.write(renderRollouts(rollouts, nowMs(), width));
    return 0;
  }
  const found = await findRollout(id, session);
  const show = (rollout: RolloutBody, change?: ChangeBody): void => {
    if (json) writeJson(session, { ...change, rollout });
    else terminal.stdout.write(renderRollout(rollout, nowMs(), width));
  };
  if (verb !== undefined) {
    const steered = await steer(found, verb, options, session);
    if (steered === undefined) return 1;
    const { rollout, ...change } = steered;
    if (options.wait !== true || options.dryRun === true || hasEnded(rollout)) {
      const exitCode = await settleChange(change, options, session);
      show(rollout, change);
      return exitCode;
    }
  }
  if (options.wait !== true) {
    show(found);
    return 0;
  }
  const { exitCode, rollout } = await waitForRollout(found.id, readTimeout(options), session);
  show(rollout ?? found);
  return exitCode;
}

/** Options that say how a rollout is steered mean nothing where it is only looked at. */
function refuseIdleOptions(options: PolicyRolloutOptions, names: readonly ("why" | "dryRun" | "yes")[]): void {
  const idle = names.find((name) => options[name] !== undefined);
  if (idle === undefined) return;
  throw new CommandError(
    `--${idle === "dryRun" ? "dry-run" : idle} goes with a change, and none is asked for; add --advance, --pause, --resume, --finish or --roll-back, or leave it out`,
  );
}

/** What cannot be done to a rollout as it stands is said without asking: nothing would change. */
function demandState({ policy, state }: RolloutBody, verb: Verb): void {
  const isPaused = state === "paused";
  const why = hasEnded({ state })
    ? "has ended"
    : verb === "pause" && isPaused
      ? "is paused already"
      : verb === "resume" && !isPaused
        ? "is not paused"
        : undefined;
  if (why === undefined) return;
  throw new CommandError(
    `the rollout of ${printable(policy)} ${why} (${state.replace("_", " ")}); nothing was changed`,
    1,
  );
}

async function steer(
  found: RolloutBody,
  verb: Verb,
  options: PolicyRolloutOptions,
  { api, terminal }: ControlSession,
): Promise<RolloutChangeBody | undefined> {
  demandState(found, verb);
  const { question } = verbs[verb];
  const request = { why: options.why, expectedStep: found.step };
  const tried = await api.rollouts[verb](found.id, { ...request, dryRun: true });
  if (options.dryRun === true) {
    terminal.stderr.write(nothingDone);
    return tried;
  }
  if (question !== undefined) {
    const agreed = await confirm({ question: question(found), yes: options.yes === true }, terminal);
    if (!agreed) return undefined;
  }
  return api.rollouts[verb](found.id, request);
}

/** By its own id, or the newest of a policy, one that is underway before others. */
async function findRollout(id: string, { api }: ControlSession): Promise<RolloutBody> {
  const [current] = await api.rollouts.list({ policy: id, states: underway }).toArray(1);
  const [newest] = current === undefined ? await api.rollouts.list({ policy: id }).toArray(1) : [current];
  if (newest !== undefined) return newest;
  try {
    return await api.rollouts.get(id);
  } catch (error) {
    if (error instanceof RefusedRequest && error.body.code === "resource_not_found")
      throw new CommandError(
        `there is no rollout ${printable(id)}, and none of a policy of that name; sluice policy rollout --all lists them`,
        1,
      );
    throw error;
  }
}

/** `sluice policy rollout` */
export function addPolicyRollout(policy: Command, run: RunOnControlPlane): void {
  withExamples(
    changeCommand(policy, "rollout [id]", "List rollouts, show one with its metrics, steer it, or wait for its end.", {
      waiting: {
        wait: "wait until it has ended and every node knows",
        timeout: "how long to wait at most, such as 1h; implies --wait (default: until it has ended)",
      },
    })
      .option("--all", "list those that have ended too")
      .option("--advance", "take the next step")
      .option("--pause", "stay at this step")
      .option("--resume", "continue a paused rollout")
      .option("--finish", "apply it to all subjects, now")
      .option("--roll-back", "return all subjects to the old version"),
    `ID is a policy's id, or a rollout's. Without one, lists the rollouts that are underway. --wait shows its progress; the exit code
is 1 if it was rolled back or cancelled, and 6 after --timeout. --why, --dry-run and --yes go with one of --advance, --pause,
--resume, --finish and --roll-back; the exit code is 1 if the rollout is in no state for that.`,
    "sluice policy rollout",
    "sluice policy rollout login --wait --timeout 1h",
    'sluice policy rollout login --roll-back --why "support is flooded" --yes',
  ).action((id: string | undefined, options: PolicyRolloutOptions) =>
    run(options, (session) => policyRollout(id, options, session)),
  );
}
