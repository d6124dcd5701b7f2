import { pino } from "pino";
import type { Problem } from "sluice";
import { renderPolicyProblem } from "../policies/render-policy-problem.ts";
import type { LogFormat, LogLevel } from "../settings/settings.ts";
import { createHideSubjects } from "./hide-subjects.ts";
import { redactSecrets } from "./redact-secrets.ts";

type Fields = Readonly<Record<string, unknown>>;
type Write = (fields: Fields, message: string) => void;

/**
 * What the server asks of a logger: fields first, then a sentence, which is the same for everything of its kind.
 *
 * - `error`: somebody has to do something: policies refused, a counter server that refuses, a request that failed here
 * - `warn`: something is not as it should be, and goes on: counters away, timeouts, load shed, limits nearly reached
 * - `info`: what an operator does, and what becomes of it: start, stop, reloads, connections
 * - `debug`: single decisions, and what is too much otherwise
 * - `trace`: calls to counter servers, summed up
 */
export interface Logger {
  readonly trace?: Write;
  readonly debug: Write;
  readonly info: Write;
  readonly warn: Write;
  readonly error: Write;
}

export interface TextOutput {
  write(text: string): unknown;
}

export interface LoggerOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
  readonly stdout: TextOutput;
  readonly stderr: TextOutput;
  /** Whether whom requests are from is logged as hashes only. */
  readonly hashSubjects?: boolean;
  readonly nowMs?: () => number;
}

/** Most lines of one sentence in a minute, of those that something outside can cause over and over. */
const linesPerMinute = 60;
const maxSentences = 1_000;

/**
 * Writes logs. Secrets are blotted out of every line, by the names of fields and by what they look like. Warnings and errors
 * of one kind are bounded in number; the next one that is told says how many were left out.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { level, format, stdout, stderr, hashSubjects = false } = options;
  const output =
    format === "json"
      ? { write: (line: string) => stdout.write(redactSecrets(line)) }
      : { write: (line: string) => stderr.write(renderLogLine(redactSecrets(line))) };
  const logger = pino(
    {
      level,
      base: null,
      messageKey: "message",
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      ...(hashSubjects && { serializers: { dimensions: createHideSubjects() } }),
    },
    output,
  );
  const untold = createUntold(options.nowMs ?? ((): number => performance.now()));
  const bounded =
    (write: Write): Write =>
    (fields, message) => {
      const leftOut = untold(message);
      if (leftOut === undefined) return;
      write(leftOut === 0 ? fields : { ...fields, leftOut }, message);
    };
  return {
    trace: (fields, message) => logger.trace(fields, message),
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: bounded((fields, message) => logger.warn(fields, message)),
    error: bounded((fields, message) => logger.error(fields, message)),
  };
}

/** How many lines of this sentence were left out since the last; undefined where this one is to be left out too. */
function createUntold(nowMs: () => number): (message: string) => number | undefined {
  const sentences = new Map<string, { beganMs: number; lines: number; leftOut: number }>();
  return (message) => {
    let sentence = sentences.get(message);
    if (sentence === undefined) {
      if (sentences.size >= maxSentences) sentences.clear();
      sentence = { beganMs: nowMs(), lines: 0, leftOut: 0 };
      sentences.set(message, sentence);
    }
    if (nowMs() - sentence.beganMs >= 60_000) {
      sentence.beganMs = nowMs();
      sentence.lines = 0;
    }
    sentence.lines += 1;
    if (sentence.lines > linesPerMinute) {
      sentence.leftOut += 1;
      return undefined;
    }
    const { leftOut } = sentence;
    sentence.leftOut = 0;
    return leftOut;
  };
}

/** `12:30:05 warn  the policies were not reloaded file=policies.yaml`, and each problem on a line of its own. */
export function renderLogLine(json: string): string {
  const { time, level, message, problems, err, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${renderValue(value)}`);
  const lines = [`${String(time).slice(11, 19)} ${String(level).padEnd(5)} ${String(message)}${rest.join("")}`];
  for (const problem of Array.isArray(problems) ? (problems as Problem[]) : [])
    lines.push(`  ${renderPolicyProblem(problem)}`);
  if (typeof err === "object" && err !== null && "stack" in err) lines.push(`  ${String(err.stack)}`);
  return `${lines.join("\n").replace(unprintable, escapeCharacter)}\n`;
}

/** What a terminal would obey, and what ends lines, but for those that are ours. */
const unprintable = /[^\P{Cc}\n]/gu;

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function renderValue(value: unknown): string {
  return typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}
