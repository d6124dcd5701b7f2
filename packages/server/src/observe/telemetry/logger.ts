import { pino } from "pino";
import { type Problem, printable, printableJson } from "sluice";
import type { LogFormat, LogLevel } from "../../settings/settings.ts";
import { createHideSubjects, type HideSubjects } from "./hide-subjects.ts";
import { redactFields } from "./redact-fields.ts";
import { redactText } from "./redact-text.ts";
import { renderPolicyProblem } from "./render-policy-problem.ts";

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

/** Most lines of one sentence in a while, of those that something outside can cause over and over. */
const warnings = { lines: 60, everyMs: 60_000 } as const;
const particulars = { lines: 1_000, everyMs: 1_000 } as const;
const maxSentences = 1_000;

/**
 * Writes logs. Secrets are blotted out of every line, by the names of fields and by what they look like, and every line is bounded
 * in length. Lines that something outside can cause are bounded in number as well, by their sentence; the next one that is written says
 * how many were left out. So whatever arrives, logging it costs bounded work.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { level, format, stdout, stderr, hashSubjects = false } = options;
  const output =
    format === "json"
      ? { write: (line: string) => stdout.write(printableJson(line)) }
      : { write: (line: string) => stderr.write(renderLogLine(line)) };
  const hideSubjects = hashSubjects ? createHideSubjects() : undefined;
  const logger = pino(
    {
      level,
      base: null,
      messageKey: "message",
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        log: (fields) => redactFields(hideSubjects === undefined ? fields : withDimensions(fields, hideSubjects)),
      },
      // Errors are plain data by then.
      serializers: { err: (value: unknown) => value },
    },
    output,
  );
  const nowMs = options.nowMs ?? ((): number => performance.now());
  const write = (at: "trace" | "debug" | "info" | "warn" | "error"): Write => {
    return (fields, message) => {
      if (logger.isLevelEnabled(at)) logger[at](fields, redactText(message));
    };
  };
  const bounded = (at: "trace" | "debug" | "warn" | "error", bound: Bound): Write => {
    const countLeftOut = createLeftOut(nowMs, bound);
    const writeNow = write(at);
    return (fields, message) => {
      if (!logger.isLevelEnabled(at)) return;
      const leftOut = countLeftOut(message);
      if (leftOut === undefined) return;
      const before = typeof fields.leftOut === "number" ? fields.leftOut : 0;
      writeNow(leftOut === 0 ? fields : { ...fields, leftOut: leftOut + before }, message);
    };
  };
  return {
    trace: bounded("trace", particulars),
    debug: bounded("debug", particulars),
    info: write("info"),
    warn: bounded("warn", warnings),
    error: bounded("error", warnings),
  };
}

interface Bound {
  readonly lines: number;
  readonly everyMs: number;
}

function withDimensions(fields: Fields, hide: HideSubjects): Fields {
  const { dimensions } = fields;
  if (typeof dimensions !== "object" || dimensions === null) return fields;
  return { ...fields, dimensions: hide(dimensions as Fields) };
}

/** How many lines of this sentence were left out since the last; undefined where this one is to be left out too. */
function createLeftOut(nowMs: () => number, { lines, everyMs }: Bound): (message: string) => number | undefined {
  const sentences = new Map<string, { beganMs: number; lines: number; leftOut: number }>();
  return (message) => {
    let sentence = sentences.get(message);
    if (sentence === undefined) {
      if (sentences.size >= maxSentences) sentences.clear();
      sentence = { beganMs: nowMs(), lines: 0, leftOut: 0 };
      sentences.set(message, sentence);
    }
    if (nowMs() - sentence.beganMs >= everyMs) {
      sentence.beganMs = nowMs();
      sentence.lines = 0;
    }
    sentence.lines += 1;
    if (sentence.lines > lines) {
      sentence.leftOut += 1;
      return undefined;
    }
    const { leftOut } = sentence;
    sentence.leftOut = 0;
    return leftOut;
  };
}

/**
 * `12:30:05 warn  the policies were not reloaded file=policies.yaml`, each problem on a separate line, and the stack of an error
 * indented: no text from outside begins a line.
 */
export function renderLogLine(json: string): string {
  const { time, level, message, problems, err, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const rest = Object.entries(fields).map(([name, value]) => ` ${name}=${renderValue(value)}`);
  const lines = [`${String(time).slice(11, 19)} ${String(level).padEnd(5)} ${String(message)}${rest.join("")}`];
  for (const problem of Array.isArray(problems) ? (problems as Problem[]) : [])
    lines.push(`  ${typeof problem === "string" ? problem : renderPolicyProblem(problem)}`);
  if (typeof err === "object" && err !== null && "stack" in err)
    lines.push(
      ...String(err.stack)
        .split("\n")
        .map((line) => `  ${line}`),
    );
  return `${lines.map(printable).join("\n")}\n`;
}

function renderValue(value: unknown): string {
  return typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}
