import type { RecordingBody } from "@sluice/protocol/admin";
import type { Command } from "commander";
import { parseDurationFlag } from "../arguments/parse-time.ts";
import { type ChangeFlags, nothingDone } from "../control/change-flags.ts";
import { controlCommand, type RunOnControlPlane, withExamples, withWhy } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import { confirm } from "../terminal/confirm.ts";
import { renderTable } from "../terminal/render-table.ts";
import { renderMoment } from "../terminal/render-time.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import { writeJson } from "../terminal/write-json.ts";

type RecordingOptions = ControlOptions & Pick<ChangeFlags, "why" | "yes" | "dryRun">;

export interface RecordingStartOptions extends RecordingOptions {
  readonly for: string;
  readonly share?: string;
  readonly shareBy?: string;
  readonly hash?: string;
}

/** `sluice recording list` */
export async function recordingList(session: ControlSession): Promise<ExitCode> {
  const { api, terminal, json, nowMs, width } = session;
  const list = await api.recordings.list();
  if (json) writeJson(session, list);
  else if (!list.enabled)
    terminal.stdout.write("This server keeps no recordings; start it with --recordings FOLDER (SLUICE_RECORDINGS).\n");
  else terminal.stdout.write(renderRecordings(list.items, nowMs(), width));
  return 0;
}

/** `sluice recording start` */
export async function recordingStart(options: RecordingStartOptions, session: ControlSession): Promise<ExitCode> {
  const { share, shareBy, hash, why, dryRun } = options;
  const request = {
    forMs: parseDurationFlag("--for", options.for),
    sharePercent: share === undefined ? undefined : readPercent(share),
    shareBy,
    hash: hash?.split(",").map((name) => name.trim()),
  };
  const done = await session.api.recordings.start(request, { why, dryRun });
  return report(session, done, dryRun === true ? nothingDone : `Recording ${done.recording.id} has begun.\n`);
}

/** `sluice recording stop` */
export async function recordingStop(id: string, options: RecordingOptions, session: ControlSession): Promise<ExitCode> {
  const { why, dryRun } = options;
  const done = await session.api.recordings.stop(id, { why, dryRun });
  return report(session, done, dryRun === true ? nothingDone : `It has ${done.recording.requests} requests.\n`);
}

/** `sluice recording delete`: what it has is gone. */
export async function recordingDelete(
  id: string,
  options: RecordingOptions,
  session: ControlSession,
): Promise<ExitCode> {
  const { why, dryRun, yes } = options;
  const { requests } = await session.api.recordings.get(id);
  const question = `Delete recording ${id}, with its ${requests} requests? This cannot be undone.`;
  if (!(await confirm({ question, yes: yes === true || dryRun === true }, session.terminal))) return 1;
  const done = await session.api.recordings.delete(id, { why, dryRun });
  return report(session, done, dryRun === true ? nothingDone : "It was deleted.\n");
}

function report(session: ControlSession, done: { readonly recording: RecordingBody }, sentence: string): ExitCode {
  const { terminal, json, nowMs, width } = session;
  if (json) writeJson(session, done);
  else terminal.stdout.write(`${renderRecordings([done.recording], nowMs(), width)}${sentence}`);
  return 0;
}

function readPercent(text: string): number {
  const percent = Number(text.replace(/ ?%$/, ""));
  if (percent > 0 && percent <= 100) return percent;
  throw new CommandError(
    `--share must be a percentage from 0.001% to 100%, such as 10%; ${JSON.stringify(text)} is none`,
  );
}

export function renderRecordings(items: readonly RecordingBody[], nowMs: number, width: number | undefined): string {
  if (items.length === 0) return "There are no recordings.\n";
  return renderTable(
    [
      { title: "id" },
      { title: "state" },
      { title: "started" },
      { title: "ends" },
      { title: "requests", align: "right" },
      { title: "bytes", align: "right" },
      { title: "sample" },
      { title: "by", flexible: true },
    ],
    items.map((one) => [
      one.id,
      one.state,
      renderMoment(one.started_ms, nowMs),
      renderMoment(one.ended_ms ?? one.ends_ms, nowMs),
      String(one.requests),
      String(one.bytes),
      one.share_percent < 100 ? `${one.share_percent}% by ${one.share_by}` : "all",
      one.started_by,
    ]),
    width,
  );
}

/** `sluice recording list`, `start`, `stop` and `delete` */
export function addRecordingCommands(program: Command, run: RunOnControlPlane): void {
  const recording = program
    .command("recording")
    .description("Record what a running server decides, for simulations in the console and over the API.");
  const dryRun = ["--dry-run", "show what would be done, and do nothing"] as const;

  withExamples(
    controlCommand(recording, "list", "List the recordings of the server that answers."),
    "",
    "sluice recording list",
  ).action((options: ControlOptions) => run(options, recordingList));

  withExamples(
    withWhy(
      controlCommand(recording, "start", "Start to record every decided request, or those of a share of the subjects."),
    )
      .option("--for <duration>", "how long at most", "1h")
      .option("--share <percent>", "record this share of the subjects, each with all of its requests (default all)")
      .option("--share-by <dimension>", "the dimension that names them, such as tenant")
      .option("--hash <dimensions>", "record hashes of these dimensions, with commas in between")
      .option(...dryRun),
    "The server keeps it in the folder of --recordings, within its bounds.",
    "sluice recording start --for 10m",
    "sluice recording start --share 10% --share-by tenant --hash user,ip",
  ).action((options: RecordingStartOptions) => run(options, (session) => recordingStart(options, session)));

  withExamples(
    withWhy(controlCommand(recording, "stop <id>", "End a recording before its time.")).option(...dryRun),
    "",
    "sluice recording stop 0mwo6d4gj0000e",
  ).action((id: string, options: RecordingOptions) => run(options, (session) => recordingStop(id, options, session)));

  withExamples(
    withWhy(controlCommand(recording, "delete <id>", "Delete a recording."))
      .option(...dryRun)
      .option("--yes", "do it without asking"),
    "",
    "sluice recording delete 0mwo6d4gj0000e --yes",
  ).action((id: string, options: RecordingOptions) => run(options, (session) => recordingDelete(id, options, session)));
}
