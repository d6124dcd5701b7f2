import type { Command } from "commander";
import { auditKinds } from "../../control-plane/audit/audit-kinds.ts";
import { CommandError } from "../terminal.ts";
import { type AuditOptions, showAudit } from "./audit.ts";
import { changeCommand, controlCommand, type RunOnControlPlane, withExamples } from "./control-command.ts";
import type { ControlOptions } from "./control-session.ts";
import {
  type KillSwitchOffOptions,
  type KillSwitchOnOptions,
  killSwitchOff,
  killSwitchOn,
  killSwitchStatus,
} from "./kill-switch.ts";
import { showNodes } from "./nodes.ts";
import {
  type OverrideDeleteOptions,
  type OverrideListOptions,
  type OverrideSetOptions,
  overrideDelete,
  overrideList,
  overrideSet,
} from "./overrides.ts";
import { resetSubject, type SubjectResetOptions, showSubject, type TierOptions, tierGet, tierSet } from "./subjects.ts";

/** Commands of those who run a service: subjects, the kill switch, the audit, nodes. */
export function addOperationCommands(program: Command, run: RunOnControlPlane): void {
  addOverrides(
    program.command("override").description("Give single subjects other limits, for a limited time or for good."),
    run,
  );
  addTiers(program.command("tier").description("Work with the tiers of subjects."), run);
  addKillSwitch(
    program.command("kill-switch").description("Allow or deny every request on every node, for a limited time."),
    run,
  );

  const subject = controlCommand(
    program,
    "subject [subject]",
    "Show which limits apply to a subject, and where each number comes from; or reset its counters.",
  );
  withExamples(subject, "", "sluice subject user=u1", "sluice subject reset user=u1").action(
    (word: string | undefined, options: ControlOptions) => {
      if (word === undefined) throw new CommandError("name a subject such as user=u1: sluice subject user=u1");
      return run(options, (session) => showSubject(word, session));
    },
  );

  withExamples(
    changeCommand(
      subject,
      "reset <subject> [dimension...]",
      "Reset every counter of a subject, on every node, and lift its blocks.",
      { asks: false },
    ).option("--policy <id>", "only the counters of this policy"),
    `Resets the counters of each limit that counts by the subject, whichever endpoints its policy is for, and lists them. A limit that
counts by other dimensions as well needs their values too. Exit code 1 where nothing was reset. Tier and overrides stay.`,
    "sluice subject reset ip=203.0.113.7",
    'sluice subject reset user=u1 tenant=acme --policy orders --why "ticket 4711"',
  ).action((word: string, more: string[], options: SubjectResetOptions) =>
    run(options, (session) => resetSubject(word, more, options, session)),
  );

  withExamples(
    controlCommand(program, "audit", "Show who changed what, or was refused, newest first.")
      .option("--kind <kind>", `only what was done to this: ${auditKinds.join(", ")}`)
      .option("--target <target>", "only what was done to this one: a policy's id, user=u1, …")
      .option("--actor <name>", "only what was done with the token of this name")
      .option("--action <action>", "only this: policy.put, kill_switch.on, …")
      .option("--outcome <outcome>", "only what was: done or refused")
      .option("--since <when>", "not before: how long ago, or a date")
      .option("--until <when>", "before: how long ago, or a date")
      .option("--limit <number>", "most records (default 50)")
      .option("--details", "also what was before and after"),
    "",
    "sluice audit --since 2h",
    "sluice audit --kind subject --target user=u1 --details",
    "sluice audit --outcome refused --actor ci --json",
  ).action((options: AuditOptions) => run(options, (session) => showAudit(options, session)));

  withExamples(
    controlCommand(program, "nodes", "List servers, and by which generation each decides."),
    "Exit code 1 where one that is alive does not decide by the newest generation.",
    "sluice nodes",
  ).action((options: ControlOptions) => run(options, showNodes));
}

function addOverrides(override: Command, run: RunOnControlPlane): void {
  withExamples(
    changeCommand(override, "set <subject> <policy> <window...>", "Give a subject other windows, until they end.", {
      why: "reason",
    })
      .option("--for <duration>", "how long, such as 2h, at most a year")
      .option("--until <moment>", "until when, such as 2030-01-31T12:00:00Z, within a year")
      .option("--for-good", "without an end")
      .option("--limit <name>", "only for this limit of the policy")
      .option("--strict", "refuse what would change nothing, in place of a warning"),
    `Give one of --for, --until and --for-good. Replaces what the subject had for the same policy and limit, and asks first if
that is something else. An override comes before a limit for good.`,
    'sluice override set user=u1 orders.read "100/s burst 200" --for 2h --reason "load test"',
  ).action((subject: string, policy: string, windows: string[], options: OverrideSetOptions) =>
    run(options, (session) => overrideSet(subject, policy, windows, options, session)),
  );

  withExamples(
    controlCommand(override, "list [subject]", "List overrides, and limits that subjects have for good.").option(
      "--by <dimension>",
      "of all subjects of this dimension, such as user",
    ),
    "",
    "sluice override list user=u1",
    "sluice override list --by tenant",
  ).action((subject: string | undefined, options: OverrideListOptions) =>
    run(options, (session) => overrideList(subject, options, session)),
  );

  withExamples(
    changeCommand(
      override,
      "delete <subject> <policy>",
      "Remove a subject's override; its policy or tier applies again.",
    ).option("--limit <name>", "what it has for this limit of the policy"),
    "",
    "sluice override delete user=u1 orders.read",
  ).action((subject: string, policy: string, options: OverrideDeleteOptions) =>
    run(options, (session) => overrideDelete(subject, policy, options, session)),
  );
}

function addTiers(tier: Command, run: RunOnControlPlane): void {
  withExamples(
    changeCommand(
      tier,
      "set <subject> <tier>",
      "Give a subject a tier, which policies may have other windows for.",
    ).option("--strict", "refuse a tier that changes nothing, in place of a warning"),
    "Where the subject has another one, it asks first.",
    'sluice tier set user=u1 premium --why "upgraded"',
  ).action((subject: string, name: string, options: TierOptions) =>
    run(options, (session) => tierSet(subject, name, options, session)),
  );

  withExamples(controlCommand(tier, "get <subject>", "Show a subject's tier."), "", "sluice tier get user=u1").action(
    (subject: string, options: ControlOptions) => run(options, (session) => tierGet(subject, session)),
  );

  withExamples(
    changeCommand(tier, "clear <subject>", "Remove a subject's tier."),
    "Exit code 1 if the subject has no tier.",
    "sluice tier clear user=u1",
  ).action((subject: string, options: TierOptions) =>
    run(options, (session) => tierSet(subject, undefined, options, session)),
  );
}

function addKillSwitch(killSwitch: Command, run: RunOnControlPlane): void {
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
