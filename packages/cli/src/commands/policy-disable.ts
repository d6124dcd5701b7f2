import { type DisabledPolicyBody, disabledModes, disablingBounds } from "@sluice/protocol/admin";
import { type Command, Option } from "commander";
import { printable } from "sluice/internal";
import { parseDurationFlag } from "../arguments/parse-time.ts";
import { type ChangeFlags, demandReason, nothingDone, settleChange, writeWarnings } from "../control/change-flags.ts";
import { changeCommand, controlCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { confirm } from "../terminal/confirm.ts";
import { renderTable } from "../terminal/render-table.ts";
import { renderInstant, renderMoment, renderSpan } from "../terminal/render-time.ts";
import type { ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";

export interface PolicyDisableOptions extends ControlOptions, ChangeFlags {
  readonly for: string;
  readonly mode: (typeof disabledModes)[number];
}

const effects = {
  allow: "it limits and counts nothing",
  shadow: "it decides and counts, and denies nothing",
} as const;

/** `sluice policy disable`: switches one policy off, on every node, for a while. */
export async function policyDisable(
  id: string,
  options: PolicyDisableOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json, nowMs } = session;
  const { mode } = options;
  const forMs = parseDurationFlag("--for", options.for, disablingBounds);
  const request = { why: demandReason(options), mode, forMs };
  const tried = await api.policies.disable(id, { ...request, dryRun: true });
  writeWarnings(tried, session);
  if (options.dryRun === true) {
    if (json) writeJson(session, tried);
    else terminal.stdout.write(`Policy ${printable(id)} would be disabled: ${effects[mode]}. ${nothingDone}`);
    return 0;
  }
  const question = `Disable policy ${id} on every node for ${renderSpan(forMs)}? Then ${effects[mode]}.`;
  if (!(await confirm({ question, yes: options.yes === true }, terminal))) return 1;
  const done = await api.policies.disable(id, request);
  const untilMs = done.disabled?.until_ms ?? nowMs();
  if (!json)
    terminal.stdout.write(
      `Policy ${printable(id)} is disabled until ${renderInstant(untilMs)} (${renderMoment(untilMs, nowMs())}): ${effects[mode]}. To end that now: sluice policy enable ${printable(id)}\n`,
    );
  const exitCode = await settleChange(done, options, session);
  if (json) writeJson(session, done);
  return exitCode;
}

/** `sluice policy enable`: 1 where the policy is not disabled. */
export async function policyEnable(
  id: string,
  options: ControlOptions & ChangeFlags,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json } = session;
  const wasDisabled = (await api.policies.disabled()).some(({ policy }) => policy === id);
  const done = await api.policies.enable(id, { why: options.why, dryRun: options.dryRun });
  if (!json) {
    terminal.stdout.write(
      wasDisabled
        ? `Policy ${printable(id)} ${options.dryRun === true ? "would limit" : "limits"} again.\n`
        : `Policy ${printable(id)} is not disabled; nothing was changed.\n`,
    );
    if (options.dryRun === true && wasDisabled) terminal.stdout.write(nothingDone);
  }
  const exitCode = await settleChange(done, options, session);
  if (json) writeJson(session, done);
  return wasDisabled ? exitCode : 1;
}

/** `sluice policy disabled` */
export async function policyDisabled(session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, nowMs, width } = session;
  const disabled = await api.policies.disabled();
  if (json) writeJson(session, { disabled });
  else terminal.stdout.write(renderDisabled(disabled, nowMs(), width));
  return 0;
}

export function renderDisabled(
  disabled: readonly DisabledPolicyBody[],
  nowMs: number,
  width: number | undefined,
): string {
  if (disabled.length === 0) return "No policy is disabled.\n";
  return renderTable(
    [{ title: "policy" }, { title: "mode" }, { title: "ends" }, { title: "by" }, { title: "reason", flexible: true }],
    disabled.map(({ policy, mode, until_ms: untilMs, author, reason }) => [
      policy,
      mode,
      renderMoment(untilMs, nowMs),
      author,
      reason,
    ]),
    width,
  );
}

/** `sluice policy disable`, `enable` and `disabled` */
export function addPolicyDisable(policy: Command, run: RunOnControlPlane): void {
  withExamples(
    changeCommand(policy, "disable <id>", "Disable one policy for a time: it limits nothing, on any node.", {
      why: "reason",
    })
      .option("--for <duration>", "how long, at most a week; the policy then limits again", "1h")
      .addOption(
        new Option("--mode <mode>", "allow: it neither decides nor counts. shadow: it also decides and counts")
          .choices(disabledModes)
          .default("allow"),
      ),
    `In force on every node within a second, and also if the policy store is unavailable afterwards. Works for policies of
files and for the default policy too. Its requests do not fall to the default policy meanwhile.`,
    'sluice policy disable search --for 1h --reason "denies paying customers since the release"',
    'sluice policy disable login --mode shadow --reason "is it this one?" --yes --wait',
  ).action((id: string, options: PolicyDisableOptions) =>
    run(options, (session) => policyDisable(id, options, session)),
  );

  withExamples(
    changeCommand(policy, "enable <id>", "Let a disabled policy limit again.", { asks: false }),
    "Exit code 1 if the policy is not disabled.",
    'sluice policy enable search --why "fixed"',
  ).action((id: string, options: ControlOptions & ChangeFlags) =>
    run(options, (session) => policyEnable(id, options, session)),
  );

  withExamples(
    controlCommand(policy, "disabled", "List policies that are disabled, until when and why."),
    "",
    "sluice policy disabled",
  ).action((options: ControlOptions) => run(options, policyDisabled));
}
