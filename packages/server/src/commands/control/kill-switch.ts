import type { KillSwitchBody } from "@sluice/protocol/admin";
import { killSwitchBounds } from "../../control-plane/use-cases/control-kill-switch.ts";
import { CommandError, type ExitCode } from "../terminal.ts";
import { type ChangeFlags, demandReason, nothingDone, settleChange } from "./change-flags.ts";
import { confirm } from "./confirm.ts";
import type { ControlOptions, ControlSession } from "./control-session.ts";
import type { Paint } from "./paint.ts";
import { parseWhile } from "./parse-time.ts";
import { renderInstant, renderMoment, renderWhile } from "./render-moment.ts";
import { renderFields } from "./render-table.ts";
import { writeJson } from "./write-json.ts";

export interface KillSwitchOnOptions extends ControlOptions, ChangeFlags {
  readonly for: string;
}

/** `sluice kill-switch status` */
export async function killSwitchStatus(session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, paint, nowMs } = session;
  const state = await api.killSwitch();
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
  const forMs = parseWhile("--for", options.for, killSwitchBounds);
  const wish = { why: demandReason(options) };
  const tried = await api.killSwitchOn(mode, forMs, { ...wish, dryRun: true });
  if (options.dryRun === true) {
    if (json) writeJson(session, tried);
    else terminal.stdout.write(`${renderKillSwitch(tried.kill_switch, nowMs(), paint)}${nothingDone}`);
    return 0;
  }
  const before = await api.killSwitch();
  const already =
    before.mode === "off" ? "" : `\nIt is ${before.mode} already, until ${renderInstant(before.until_ms ?? 0)}.`;
  const question = `${effects[mode]}, on every node of ${api.where}, for ${renderWhile(forMs)}.${already}`;
  if (!(await confirm({ question, word: mode, yes: options.yes === true }, terminal))) return 1;
  const done = await api.killSwitchOn(mode, forMs, wish);
  if (!json) terminal.stdout.write(renderKillSwitch(done.kill_switch, nowMs(), paint));
  const exitCode = await settleChange(done, options, session);
  if (json) writeJson(session, done);
  return exitCode;
}

export interface KillSwitchOffOptions extends ControlOptions, ChangeFlags {}

/** `sluice kill-switch off`: policies decide again. 1 where they do already. */
export async function killSwitchOff(options: KillSwitchOffOptions, session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, paint, nowMs } = session;
  const before = await api.killSwitch();
  const question = `The kill switch is ${before.mode}. Let policies decide again?`;
  const harmless = options.yes === true || options.dryRun === true || before.mode === "off";
  if (!(await confirm({ question, yes: harmless }, terminal))) return 1;
  const done = await api.killSwitchOff({ why: options.why, dryRun: options.dryRun });
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
