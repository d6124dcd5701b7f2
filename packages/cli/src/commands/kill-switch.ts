import { type KillSwitchBody, killSwitchBounds } from "@sluice/protocol/admin";
import type { Command } from "commander";
import { parseDurationFlag } from "../arguments/parse-time.ts";
import { type ChangeFlags, demandReason, nothingDone, settleChange } from "../control/change-flags.ts";
import { changeCommand, controlCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { confirm } from "../terminal/confirm.ts";
import type { Paint } from "../terminal/paint.ts";
import { renderFields } from "../terminal/render-table.ts";
import { renderInstant, renderMoment, renderSpan } from "../terminal/render-time.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";

export interface KillSwitchOnOptions extends ControlOptions, ChangeFlags {
  readonly for: string;
}

/** `sluice kill-switch status` */
export async function killSwitchStatus(session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, paint, nowMs } = session;
  const state = await api.killSwitch.get();
  if (json) writeJson(session, state);
  else terminal.stdout.write(renderKillSwitch(state, nowMs(), paint));
  return 0;
}

/** `sluice kill-switch on`: decides every check alike, on every node, for a while. */
export async function killSwitchOn(
  mode: string,
  options: KillSwitchOnOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json, paint, nowMs } = session;
  if (mode !== "open" && mode !== "closed")
    throw new CommandError(
      `${JSON.stringify(mode)} is neither open nor closed; open allows every request, closed denies every request`,
    );
  const forMs = parseDurationFlag("--for", options.for, killSwitchBounds);
  const request = { why: demandReason(options), forMs };
  const tried = await api.killSwitch.on(mode, { ...request, dryRun: true });
  if (options.dryRun === true) {
    if (json) writeJson(session, tried);
    else terminal.stdout.write(`${renderKillSwitch(tried.kill_switch, nowMs(), paint)}${nothingDone}`);
    return 0;
  }
  const before = await api.killSwitch.get();
  const already =
    before.mode === "off" ? "" : `\nIt is ${before.mode} already, until ${renderInstant(before.until_ms ?? 0)}.`;
  const question = `${effects[mode]}, on every node of ${api.server}, for ${renderSpan(forMs)}.${already}`;
  if (!(await confirm({ question, word: mode, yes: options.yes === true }, terminal))) return 1;
  const done = await api.killSwitch.on(mode, request);
  if (!json) terminal.stdout.write(renderKillSwitch(done.kill_switch, nowMs(), paint));
  const exitCode = await settleChange(done, options, session);
  if (json) writeJson(session, done);
  return exitCode;
}

export interface KillSwitchOffOptions extends ControlOptions, ChangeFlags {}

/** `sluice kill-switch off`: policies decide again. 1 where they do already. */
export async function killSwitchOff(options: KillSwitchOffOptions, session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, paint, nowMs } = session;
  const before = await api.killSwitch.get();
  const question = `The kill switch is ${before.mode}. Let policies decide again?`;
  const harmless = options.yes === true || options.dryRun === true || before.mode === "off";
  if (!(await confirm({ question, yes: harmless }, terminal))) return 1;
  const done = await api.killSwitch.off({ why: options.why, dryRun: options.dryRun });
  if (!json) {
    if (before.mode === "off") terminal.stdout.write("The kill switch is off already; nothing was changed.\n");
    else terminal.stdout.write(renderKillSwitch(done.kill_switch, nowMs(), paint));
    if (options.dryRun === true && before.mode !== "off") terminal.stdout.write(nothingDone);
  }
  const exitCode = await settleChange(done, options, session);
  if (json) writeJson(session, done);
  return before.mode === "off" ? 1 : exitCode;
}

const effects = {
  open: "EVERY REQUEST WILL BE ALLOWED: no limit applies",
  closed: "EVERY REQUEST WILL BE DENIED: all clients are locked out",
} as const;

const states = {
  open: "KILL SWITCH OPEN: every request is allowed, no limit applies",
  closed: "KILL SWITCH CLOSED: every request is denied",
} as const;

export function renderKillSwitch(state: KillSwitchBody, nowMs: number, paint: Paint): string {
  if (state.mode === "off") return `${paint.good("The kill switch is off; policies decide.")}\n`;
  const { mode, since_ms: sinceMs = nowMs, until_ms: untilMs = nowMs, reason = "", author = "" } = state;
  const fields = renderFields([
    ["until", `${renderInstant(untilMs)} (${renderMoment(untilMs, nowMs)}), then policies decide again`],
    ["since", `${renderInstant(sinceMs)} (${renderMoment(sinceMs, nowMs)}), by ${author}`],
    ["reason", reason],
    ["to end", "sluice kill-switch off"],
  ]);
  return `${paint.alarm(states[mode])}\n${fields}`;
}

/** `sluice kill-switch …` */
export function addKillSwitchCommands(program: Command, run: RunOnControlPlane): void {
  const killSwitch = program
    .command("kill-switch")
    .description("Allow or deny every request on every node, for a limited time.");
  withExamples(
    changeCommand(killSwitch, "on <mode>", "open: allow every request. closed: deny every request.", {
      why: "reason",
    }).option("--for <duration>", "how long, at most a day; policies then decide again", "1h"),
    "In force on every node within a second. Asks for the mode to be typed, unless --yes.",
    'sluice kill-switch on open --for 30m --reason "limits are wrong since the release"',
    'sluice kill-switch on closed --for 10m --reason "attack" --yes --wait',
  ).action((mode: string, options: KillSwitchOnOptions) =>
    run(options, (session) => killSwitchOn(mode, options, session)),
  );

  withExamples(
    changeCommand(killSwitch, "off", "Let policies decide again."),
    "Exit code 1 if it is off already.",
    'sluice kill-switch off --why "fixed"',
  ).action((options: KillSwitchOffOptions) => run(options, (session) => killSwitchOff(options, session)));

  withExamples(
    controlCommand(killSwitch, "status", "Show whether it is on, until when, and why."),
    "",
    "sluice kill-switch status",
  ).action((options: ControlOptions) => run(options, killSwitchStatus));
}
