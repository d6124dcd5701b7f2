import {
  type KeptSubjectBody,
  maxOverrideMs,
  type SubjectChangeBody,
  type SubjectLimitBody,
} from "@sluice/protocol/admin";
import type { Command } from "commander";
import { parseWindow, SluiceError } from "sluice";
import { printable } from "sluice/internal";
import { parseSubject } from "../arguments/parse-subject.ts";
import { parseDurationFlag, parseUntil } from "../arguments/parse-time.ts";
import {
  type ChangeFlags,
  demandNoWarnings,
  demandReason,
  nothingDone,
  settleChange,
  writeWarnings,
} from "../control/change-flags.ts";
import { withSubjectAdvice } from "../control/conflict-advice.ts";
import { changeCommand, controlCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { renderEnd, renderLimitName, renderOwnLimit } from "../control/render-kept-subject.ts";
import { confirm } from "../terminal/confirm.ts";
import { renderTable } from "../terminal/render-table.ts";
import { renderMoment } from "../terminal/render-time.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";
import { sourceText, windowText } from "./subjects.ts";

export interface OverrideSetOptions extends ControlOptions, ChangeFlags {
  /** Name of the limit. Absent: every limit of the policy that is by this dimension. */
  readonly limit?: string;
  readonly for?: string;
  readonly until?: string;
  readonly forGood?: boolean;
  readonly strict?: boolean;
}

/** `sluice override set`: other windows for one subject, until they end. */
export async function overrideSet(
  word: string,
  policy: string,
  windows: readonly string[],
  options: OverrideSetOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json, nowMs } = session;
  const subject = parseSubject(word);
  for (const window of windows) checkWindow(window);
  const untilMs = readEnd(options, nowMs());
  const why = demandReason(options);
  const { version, limits } = await api.subjects.get(subject);
  const limit = { policy, limit: options.limit, windows, until_ms: untilMs };
  const put = (dryRun: boolean | undefined): Promise<SubjectChangeBody> => {
    const change = { why, expected: version, dryRun };
    return untilMs === undefined
      ? api.subjects.setLimit(subject, limit, change)
      : api.subjects.setOverride(subject, { ...limit, untilMs }, change);
  };
  await demandNoWarnings(options, () => put(true), session);
  const before = limits.find((one) => replacesLimit(limit, one));
  const was = before && renderOwnLimit(before, nowMs());
  const now = `${windows.join(", ")} in ${renderLimitName(limit)}, ${renderEnd(untilMs, nowMs())}`;
  const same = before?.until_ms === untilMs && before?.windows.join() === windows.join();
  const harmless = before === undefined || same || options.dryRun === true;
  const question = printable(`${word} has ${was}. Give it ${now} instead?`);
  if (!(await confirm({ question, yes: harmless || options.yes === true }, terminal))) return 1;
  const done = await put(options.dryRun).catch((error: unknown) => {
    throw withSubjectAdvice(error, word, nowMs());
  });
  writeWarnings(done, session);
  if (!json) {
    const before = was === undefined ? "" : ` (before, it had ${was})`;
    const above = untilMs === undefined ? limits.find((one) => isOverrideForSame(limit, one)) : undefined;
    const later =
      above === undefined
        ? renderReplaced(done, nowMs())
        : `  ${printable(`it holds when the override ends: ${renderOwnLimit(above, nowMs())}`)}\n`;
    terminal.stdout.write(`${printable(`${word} has ${now}${before}`)}.\n${later}`);
    if (options.dryRun === true) terminal.stdout.write(nothingDone);
  }
  const exitCode = await settleChange(done, options, session);
  if (json) writeJson(session, done);
  return exitCode;
}

/** Which windows no longer hold for the subject, of each limit that is replaced. */
function renderReplaced({ in_place_of: limits = [] }: SubjectChangeBody, nowMs: number): string {
  return limits
    .map((one) => {
      const windows = one.windows.map(windowText).join(", ");
      return `  ${printable(`${one.policy} / ${one.limit}: in place of ${windows}, from ${sourceText(one, nowMs)}`)}\n`;
    })
    .join("");
}

/** An override and a limit for good stand beside each other. */
function replacesLimit(one: Pick<SubjectLimitBody, "policy" | "limit" | "until_ms">, other: SubjectLimitBody): boolean {
  const sameKind = (one.until_ms === undefined) === (other.until_ms === undefined);
  return one.policy === other.policy && one.limit === other.limit && sameKind;
}

/** An override comes before a limit for good of the same policy and limit. */
function isOverrideForSame(one: Pick<SubjectLimitBody, "policy" | "limit">, other: SubjectLimitBody): boolean {
  return one.policy === other.policy && one.limit === other.limit && other.until_ms !== undefined;
}

/** Undefined: never. */
function readEnd({ for: while_, until, forGood }: OverrideSetOptions, nowMs: number): number | undefined {
  const given = [while_, until, forGood].filter((one) => one !== undefined);
  if (given.length > 1) throw new CommandError("--for, --until and --for-good exclude each other; give one of them");
  if (given.length === 0)
    throw new CommandError("say when it ends: --for 2h, --until 2030-01-31, or --for-good for one that does not");
  if (while_ !== undefined)
    return nowMs + parseDurationFlag("--for", while_, { leastMs: 1_000, mostMs: maxOverrideMs });
  if (until === undefined) return undefined;
  const untilMs = parseUntil("--until", until, nowMs);
  if (untilMs > nowMs + maxOverrideMs)
    throw new CommandError(
      `--until is ${JSON.stringify(until)}; an override ends within a year. For one that does not end, say --for-good`,
    );
  return untilMs;
}

function checkWindow(window: string): void {
  try {
    parseWindow(window);
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    const why = error.problems.map(({ message }) => message).join("; ") || error.message;
    throw new CommandError(`${JSON.stringify(window)} is not a window: it ${why}`);
  }
}

export interface OverrideListOptions extends ControlOptions {
  readonly by?: string;
}

/** `sluice override list`: limits that subjects have for themselves, of one of them or of all of a dimension. */
export async function overrideList(
  word: string | undefined,
  options: OverrideListOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json, nowMs, width } = session;
  if (word !== undefined && options.by !== undefined)
    throw new CommandError(`--by lists all subjects of a dimension; leave it out, or leave out ${word}`);
  if (word === undefined && options.by === undefined)
    throw new CommandError("name a subject such as user=u1, or all of a dimension with --by user");
  const subjects =
    word === undefined
      ? await api.subjects.list(options.by ?? "").toArray()
      : [await api.subjects.get(parseSubject(word))];
  const own = subjects.filter(({ limits }) => limits.length > 0);
  if (json)
    writeJson(session, {
      subjects: own.map(({ dimension, value, version, limits }) => ({ dimension, value, version, limits })),
    });
  else terminal.stdout.write(renderOverrides(own, nowMs(), width));
  return 0;
}

export function renderOverrides(
  subjects: readonly KeptSubjectBody[],
  nowMs: number,
  width: number | undefined,
): string {
  const rows = subjects.flatMap((subject) =>
    subject.limits.map((limit) => [
      `${subject.dimension}=${subject.value}`,
      renderLimitName(limit),
      limit.windows.join(", "),
      limit.until_ms === undefined ? "for good" : renderMoment(limit.until_ms, nowMs),
      limit.author,
      limit.reason,
    ]),
  );
  if (rows.length === 0) return "There are no overrides.\n";
  return renderTable(
    [
      { title: "subject", flexible: true },
      { title: "limit" },
      { title: "windows" },
      { title: "ends" },
      { title: "by" },
      { title: "reason", flexible: true },
    ],
    rows,
    width,
  );
}

export interface OverrideDeleteOptions extends ControlOptions, ChangeFlags {
  readonly limit?: string;
}

/** `sluice override delete`: the subject has the usual limits again. */
export async function overrideDelete(
  word: string,
  policy: string,
  options: OverrideDeleteOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json, nowMs } = session;
  const subject = parseSubject(word);
  const { limits, version } = await api.subjects.get(subject);
  const both = limits.filter((one) => one.policy === policy && one.limit === options.limit);
  // Where an override stands before a limit for good, it is the one in force.
  const found = both.find(({ until_ms: untilMs }) => untilMs !== undefined) ?? both[0];
  if (found === undefined) {
    const known = limits.map(renderLimitName).join(", ");
    throw new CommandError(
      `${word} has no override in ${renderLimitName({ policy, limit: options.limit })}` +
        (known === "" ? "" : `; it has some in ${known} (--limit names one)`),
      1,
    );
  }
  const question = `${word} has ${renderOwnLimit(found, nowMs())}. Delete that?`;
  const harmless = options.yes === true || options.dryRun === true;
  if (!(await confirm({ question: printable(question), yes: harmless }, terminal))) return 1;
  const request = { why: options.why, expected: version, dryRun: options.dryRun };
  const remove = found.until_ms === undefined ? "deleteLimit" : "deleteOverride";
  const done = await api.subjects[remove](subject, found, request).catch((error: unknown) => {
    throw withSubjectAdvice(error, word, nowMs());
  });
  if (!json) {
    const other = both.find((one) => one !== found);
    const again =
      other === undefined ? `the usual limits in ${renderLimitName(found)}` : renderOwnLimit(other, nowMs());
    terminal.stdout.write(
      `${printable(`${word} has ${again} again (before, it had ${renderOwnLimit(found, nowMs())})`)}.\n`,
    );
    if (options.dryRun === true) terminal.stdout.write(nothingDone);
  }
  const exitCode = await settleChange(done, options, session);
  if (json) writeJson(session, done);
  return exitCode;
}

/** `sluice override …` */
export function addOverrideCommands(program: Command, run: RunOnControlPlane): void {
  const override = program
    .command("override")
    .description("Give single subjects other limits, for a limited time or for good.");
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
