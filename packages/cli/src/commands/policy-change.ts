import type { PolicyBody } from "@sluice/protocol/admin";
import type { Command } from "commander";
import { printable } from "sluice/internal";
import { parseRollout, type RolloutFlags } from "../arguments/parse-rollout.ts";
import { parseVersion } from "../arguments/parse-version.ts";
import { type ChangeFlags, nothingDone, readTimeout, settleChange, writeWarnings } from "../control/change-flags.ts";
import { withAdvice } from "../control/conflict-advice.ts";
import { changeCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { RefusedRequest } from "../control/refused-request.ts";
import { renderPlannedRollout } from "../control/render-rollout.ts";
import { forNodesOrRollout, withRolloutOptions } from "../control/rollout-options.ts";
import { waitForRollout } from "../control/wait-for-rollout.ts";
import { confirm } from "../terminal/confirm.ts";
import { splitDiff } from "../terminal/diff-lines.ts";
import type { ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";
import { renderDiff } from "./render-plan.ts";

export interface PolicyRevertOptions extends ControlOptions, ChangeFlags, RolloutFlags {
  readonly to: string;
}

/** `sluice policy revert`: makes a new version with what an earlier one said. */
export async function policyRevert(
  id: string,
  options: PolicyRevertOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json, paint, nowMs } = session;
  const version = parseVersion("--to", options.to);
  const rollout = parseRollout(options, nowMs());
  const current = await currentVersion(id, session);
  const request = { why: options.why, expected: current, rollout };
  const revert = (dryRun: boolean) =>
    api.policies.revert(id, version, { ...request, dryRun }).catch((error: unknown) => {
      throw withAdvice(error, id, current);
    });
  const tried = await revert(true);
  if (tried.policy.version === current) {
    if (json) writeJson(session, tried);
    else terminal.stdout.write(`${printable(renderUnchanged(id, version, tried.policy))}\n`);
    return 1;
  }
  if (!json && current > 0) {
    const diff = await api.policies.diff(id, { from: current, to: version });
    terminal.stdout.write(
      `${paint.strong(printable(id))}, from what version ${current} says to what ${version} said\n`,
    );
    terminal.stdout.write(renderDiff(splitDiff(diff.text), paint));
  }
  const planned = tried.policy.rollout;
  if (!json && planned !== undefined) terminal.stdout.write(renderPlannedRollout(planned, nowMs()));
  writeWarnings(tried, session);
  if (options.dryRun === true) {
    if (json) writeJson(session, tried);
    else terminal.stdout.write(nothingDone);
    return 0;
  }
  const question = `Revert policy ${id} to what version ${version} said?`;
  if (!(await confirm({ question, yes: options.yes === true }, terminal))) return 1;
  const done = await revert(false);
  const begun = done.policy.rollout;
  if (!json) {
    const what =
      begun === undefined
        ? `is at version ${done.policy.version}`
        : `gets version ${begun.to_version} by rollout ${begun.id}`;
    terminal.stdout.write(`${printable(id)} ${what}.\n`);
  }
  const exitCode =
    begun !== undefined && options.wait === true
      ? (await waitForRollout(begun.id, readTimeout(options), session)).exitCode
      : await settleChange(done, options, session);
  if (json) writeJson(session, done);
  return exitCode;
}

function renderUnchanged(id: string, version: number, { version: current, rollout }: PolicyBody): string {
  const same = current === version ? " already" : `, which says the same as version ${version}`;
  const underway =
    rollout === undefined
      ? ""
      : ` Its rollout to version ${rollout.to_version} goes on; to end that: sluice policy rollout ${id} --roll-back`;
  return `${id} is at version ${current}${same}: nothing was changed.${underway}`;
}

/** 0 where there is none: one that was deleted comes back by a revert. */
async function currentVersion(id: string, { api }: ControlSession): Promise<number> {
  try {
    return (await api.policies.get(id)).version;
  } catch (error) {
    if (error instanceof RefusedRequest && error.body.code === "resource_not_found") return 0;
    throw error;
  }
}

export interface PolicyDeleteOptions extends ControlOptions, ChangeFlags {}

/** `sluice policy delete`: its versions stay, and `revert` brings it back. */
export async function policyDelete(
  id: string,
  options: PolicyDeleteOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json } = session;
  const { version, rollout } = await api.policies.get(id);
  const remove = (dryRun: boolean) =>
    api.policies.delete(id, { why: options.why, expected: version, dryRun }).catch((error: unknown) => {
      throw withAdvice(error, id, version);
    });
  const tried = await remove(true);
  writeWarnings(tried, session);
  if (options.dryRun === true) {
    if (json) writeJson(session, tried);
    else terminal.stdout.write(`Policy ${printable(id)}, version ${version}, would be deleted. ${nothingDone}`);
    return 0;
  }
  const also = rollout === undefined ? "" : ` Its rollout ${rollout.id} ends with it.`;
  const question = `Delete policy ${id}, version ${version}?${also}`;
  if (!(await confirm({ question, yes: options.yes === true }, terminal))) return 1;
  const done = await remove(false);
  if (!json)
    terminal.stdout.write(
      `Policy ${printable(id)} is deleted. To bring it back: sluice policy revert ${printable(id)} --to ${version}\n`,
    );
  const exitCode = await settleChange(done, options, session);
  if (json) writeJson(session, { policy: id, deleted_version: version, ...done });
  return exitCode;
}

/** `sluice policy revert` */
export function addPolicyRevert(policy: Command, run: RunOnControlPlane): void {
  withExamples(
    withRolloutOptions(
      changeCommand(policy, "revert <id>", "Make a new version with what an earlier one said.", {
        waiting: forNodesOrRollout,
      }).requiredOption("--to <version>", "which one; required (sluice policy history lists them)"),
    ),
    "Also brings back a deleted policy. Exit code 1 if the policy says the same already.",
    'sluice policy revert login --to 3 --why "too strict"',
  ).action((id: string, options: PolicyRevertOptions) => run(options, (session) => policyRevert(id, options, session)));
}

/** `sluice policy delete` */
export function addPolicyDelete(policy: Command, run: RunOnControlPlane): void {
  withExamples(
    changeCommand(policy, "delete <id>", "Delete a policy; its versions stay, and revert brings it back."),
    "",
    'sluice policy delete login --why "moved to the gateway"',
  ).action((id: string, options: PolicyDeleteOptions) => run(options, (session) => policyDelete(id, options, session)));
}
