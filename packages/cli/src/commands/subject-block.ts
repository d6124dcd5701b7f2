import { maxOverrideMs, type SubjectBlockBody, type SubjectChangeBody } from "@sluice/protocol/admin";
import type { Command } from "commander";
import { printable } from "sluice/internal";
import { parseSubject } from "../arguments/parse-subject.ts";
import { parseDurationFlag } from "../arguments/parse-time.ts";
import { type ChangeFlags, demandReason, nothingDone, settleChange, writeWarnings } from "../control/change-flags.ts";
import { withSubjectAdvice } from "../control/conflict-advice.ts";
import { changeCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { renderBlock } from "../control/render-kept-subject.ts";
import { confirm } from "../terminal/confirm.ts";
import { renderSpan } from "../terminal/render-time.ts";
import type { ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";

export interface SubjectBlockOptions extends ControlOptions, ChangeFlags {
  readonly for: string;
  readonly policy?: readonly string[];
}

/** `sluice subject block`: keeps a subject out, on every node, for a while. */
export async function subjectBlock(
  word: string,
  options: SubjectBlockOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json, nowMs } = session;
  const subject = parseSubject(word);
  const forMs = parseDurationFlag("--for", options.for, { leastMs: 1_000, mostMs: maxOverrideMs });
  const why = demandReason(options);
  const { version, block: before } = await api.subjects.get(subject);
  const block = { policies: options.policy, forMs };
  const put = (dryRun: boolean): Promise<SubjectChangeBody> =>
    api.subjects.block(subject, block, { why, expected: version, dryRun }).catch((error: unknown) => {
      throw withSubjectAdvice(error, word, nowMs());
    });
  const tried = await put(true);
  writeWarnings(tried, session);
  const by = options.policy === undefined ? "denied every request" : `denied by ${options.policy.join(" and ")}`;
  if (options.dryRun === true) {
    if (json) writeJson(session, tried);
    else terminal.stdout.write(`${printable(word)} would be ${printable(by)}. ${nothingDone}`);
    return 0;
  }
  const already = before === undefined ? "" : `\nIt is blocked already, ${renderBlock(before, nowMs())}.`;
  const question = `Block ${word} for ${renderSpan(forMs)}? Then it is ${by}, on every node.${already}`;
  if (!(await confirm({ question, yes: options.yes === true }, terminal))) return 1;
  const done = await put(false);
  if (!json) terminal.stdout.write(renderBlocked(word, done.subject.block, nowMs()));
  const exitCode = await settleChange(done, options, session);
  if (json) writeJson(session, done);
  return exitCode;
}

function renderBlocked(word: string, block: SubjectBlockBody | undefined, nowMs: number): string {
  const until = block === undefined ? "" : `, ${renderBlock(block, nowMs)}`;
  return `${printable(`${word} is blocked${until}. To end that now: sluice subject unblock ${word}`)}\n`;
}

/** `sluice subject unblock`: 1 where the subject is not blocked. */
export async function subjectUnblock(
  word: string,
  options: ControlOptions & ChangeFlags,
  session: ControlSession,
): Promise<ExitCode> {
  const { api, terminal, json, nowMs } = session;
  const subject = parseSubject(word);
  const { version, block } = await api.subjects.get(subject);
  if (block === undefined) {
    if (json) writeJson(session, { blocked: false });
    else terminal.stdout.write(`${printable(word)} is not blocked; nothing was changed.\n`);
    return 1;
  }
  const change = { why: options.why, expected: version, dryRun: options.dryRun };
  const done = await api.subjects.unblock(subject, change).catch((error: unknown) => {
    throw withSubjectAdvice(error, word, nowMs());
  });
  if (!json) {
    terminal.stdout.write(`${printable(word)} ${options.dryRun === true ? "would be" : "is"} blocked no longer.\n`);
    if (options.dryRun === true) terminal.stdout.write(nothingDone);
  }
  const exitCode = await settleChange(done, options, session);
  if (json) writeJson(session, done);
  return exitCode;
}

/** `sluice subject block` and `unblock` */
export function addSubjectBlock(subject: Command, run: RunOnControlPlane): void {
  withExamples(
    changeCommand(subject, "block <subject>", "Keep a subject out for a time, whatever room it has.", {
      why: "reason",
    })
      .option("--for <duration>", "how long, at most a year", "1h")
      .option("--policy <id>", "only this policy denies it; may be repeated", (id: string, earlier: string[] = []) => [
        ...earlier,
        id,
      ]),
    "Denied on every node within a second, also if the policy store is unavailable afterwards. It ends automatically.",
    'sluice subject block api_key=k-4711 --for 2h --reason "scrapes the catalogue"',
    "sluice subject block tenant=acme --policy exports --for 30m --reason incident --yes --wait",
  ).action((word: string, options: SubjectBlockOptions) =>
    run(options, (session) => subjectBlock(word, options, session)),
  );

  withExamples(
    changeCommand(subject, "unblock <subject>", "End a block now.", { asks: false }),
    "Exit code 1 if the subject is not blocked.",
    "sluice subject unblock api_key=k-4711",
  ).action((word: string, options: ControlOptions & ChangeFlags) =>
    run(options, (session) => subjectUnblock(word, options, session)),
  );
}
