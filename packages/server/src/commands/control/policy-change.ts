import type { PolicyBody } from "@sluice/protocol/admin";
import { printable } from "sluice";
import type { ExitCode } from "../terminal.ts";
import { AdminRefusal } from "./admin-client.ts";
import { type ChangeFlags, nothingDone, settleChange, tellWarnings, timeoutOf } from "./change-flags.ts";
import { confirm } from "./confirm.ts";
import { withAdvice } from "./conflict-advice.ts";
import type { ControlOptions, ControlSession } from "./control-session.ts";
import { parseVersion } from "./parse-version.ts";
import { renderDiff } from "./render-plan.ts";
import { renderPlannedRollout } from "./render-rollout.ts";
import { parseRolloutWish, type RolloutFlags } from "./rollout-wish.ts";
import { waitForRollout } from "./wait-for-rollout.ts";
import { writeJson } from "./write-json.ts";

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
  const rollout = parseRolloutWish(options, nowMs());
  const current = await currentVersion(id, session);
  const wish = { why: options.why, expected: current, rollout };
  const revert = (dryRun: boolean) =>
    api.revert(id, version, { ...wish, dryRun }).catch((error: unknown) => {
      throw withAdvice(error, id, current);
    });
  const tried = await revert(true);
  if (tried.policy.version === current) {
    if (json) writeJson(session, tried);
    else terminal.stdout.write(`${printable(tellUnchanged(id, version, tried.policy))}\n`);
    return 1;
  }
  if (!json && current > 0) {
    const diff = await api.diff(id, current, version);
    terminal.stdout.write(
      `${paint.strong(printable(id))}, from what version ${current} says to what ${version} said\n`,
    );
    terminal.stdout.write(renderDiff(diff.text.split("\n").slice(0, -1), paint));
  }
  const planned = tried.policy.rollout;
  if (!json && planned !== undefined) terminal.stdout.write(renderPlannedRollout(planned, nowMs()));
  tellWarnings(tried, session);
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
      ? (await waitForRollout(begun.id, timeoutOf(options), session)).exitCode
      : await settleChange(done, options, session);
  if (json) writeJson(session, done);
  return exitCode;
}

function tellUnchanged(id: string, version: number, { version: current, rollout }: PolicyBody): string {
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
    return (await api.policy(id)).version;
  } catch (error) {
    if (error instanceof AdminRefusal && error.body.code === "resource_not_found") return 0;
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
  const { version, rollout } = await api.policy(id);
  const remove = (dryRun: boolean) =>
    api.deletePolicy(id, { why: options.why, expected: version, dryRun }).catch((error: unknown) => {
      throw withAdvice(error, id, version);
    });
  const tried = await remove(true);
  tellWarnings(tried, session);
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
