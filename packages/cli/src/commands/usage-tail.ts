import type { UsageEventBody, UsageEventsBody } from "@sluice/protocol/admin";
import type { Command } from "commander";
import { printable } from "sluice/internal";
import { controlCommand, type RunOnControlPlane, withExamples } from "../control/control-command.ts";
import type { ControlOptions, ControlSession } from "../control/control-session.ts";
import type { Signals } from "../early-signals.ts";
import type { Paint } from "../terminal/paint.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import { renderJson } from "../terminal/write-json.ts";

export interface UsageTailOptions extends ControlOptions {
  readonly policy?: string;
  readonly subject?: string;
}

/** How long the server waits for an event: short enough for proxies. */
const waitMs = 15_000;
/** Between two requests, so that a busy server answers with many events at once. */
const pauseMs = 250;
const retryMs = 1_000;
const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** `sluice usage tail`: usage events as they are made, until it is stopped. */
export async function tailUsage(
  options: UsageTailOptions,
  session: ControlSession,
  signals: Signals,
): Promise<ExitCode> {
  const ending = new AbortController();
  const stop = (): void => ending.abort();
  for (const signal of stopSignals) signals.on(signal, stop);
  try {
    await follow(options, session, ending.signal);
    return 0;
  } catch (error) {
    if (ending.signal.aborted) return 0;
    throw error;
  } finally {
    for (const signal of stopSignals) signals.off(signal, stop);
  }
}

async function follow(
  { policy, subject }: UsageTailOptions,
  session: ControlSession,
  signal: AbortSignal,
): Promise<void> {
  const { api, terminal, sleep } = session;
  const say = (text: string): unknown => terminal.stderr.write(`${printable(text)}\n`);
  const ended = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  const pause = (ms: number): Promise<unknown> => Promise.race([ended, sleep(ms)]);
  // An error of the first request ends the command: it is probably the command line.
  let page = await api.usage.events({ policy, subject, signal });
  say(`Watching the usage events of the node at ${api.server}. Ctrl-C ends. Summaries come every ten seconds.`);
  let isLost = false;
  while (!signal.aborted) {
    try {
      page = await api.usage.events({ policy, subject, after: page.next, waitMs, signal });
    } catch (error) {
      if (signal.aborted || !(error instanceof CommandError) || error.exitCode !== 5) throw error;
      if (!isLost) say(`${error.message}\nTrying again every second; events until then are not shown.`);
      isLost = true;
      await pause(retryMs);
      continue;
    }
    if (isLost) say("The server answers again.");
    isLost = false;
    writePage(page, session, say);
    await pause(pauseMs);
  }
}

function writePage(page: UsageEventsBody, session: ControlSession, say: (text: string) => unknown): void {
  const { terminal, json, paint } = session;
  if (page.restarted)
    say("The server has restarted, or another one answered: events may be missing, and it continues from now.");
  if (page.missed > 0)
    say(
      `Missed ${page.missed} events, of all policies: more came than the server keeps. A sink (--usage-events) gets them all.`,
    );
  const lines = page.events.map((event) => (json ? renderJson(event) : renderUsageEvent(event, paint)));
  if (lines.length > 0) terminal.stdout.write(`${lines.join("\n")}\n`);
}

/** `2026-11-18 16:00:00.000  allowed  orders  acme|u1  cost 1  within_limits` */
export function renderUsageEvent({ time, subject, data }: UsageEventBody, paint: Paint): string {
  const { allowed, policy, key, cost, requests, reason, denied_by: deniedBy, degraded } = data;
  const whom = key === "" ? (subject ?? "-") : key;
  const fields = [
    policy ?? "-",
    whom,
    `cost ${cost}`,
    ...(data.kind === "summary" ? [requests === 1 ? "1 request" : `${requests} requests`] : []),
    degraded === undefined || degraded === reason ? reason : `${reason}, ${degraded}`,
    ...(deniedBy === undefined ? [] : [`by ${deniedBy}`]),
  ].map(printable);
  const verdict = allowed ? paint.good("allowed") : paint.bad("denied ");
  return [time.replace("T", " ").replace("Z", ""), verdict, ...fields].join("  ");
}

/** `sluice usage tail` */
export function addUsageTail(usage: Command, run: RunOnControlPlane, signals: Signals): void {
  withExamples(
    controlCommand(usage, "tail", "Show usage events live, one a line; with --json, as JSON lines.")
      .option("--policy <id>", "only events of this policy")
      .option("--subject <value>", "only events of this customer, or with this key: acme, or acme|u1"),
    `Shows the events of the node that answers, not of the others: name the node with --admin. A policy with \`events: each\` has a line
for each decision, others have summaries of ten seconds. The server needs no --usage-events. Times are in UTC.`,
    "sluice usage tail",
    "sluice usage tail --policy orders --subject acme",
    "sluice usage tail --json > events.jsonl",
  ).action((options: UsageTailOptions) => run(options, (session) => tailUsage(options, session, signals)));
}
