import { pino } from "pino";
import type { Problem } from "sluice";
import { printable, printableJson, renderPolicyProblem } from "sluice/internal";
import type { LogFormat, LogLevel } from "../../settings/observe-settings.ts";
import { createHideSubjects, type HideSubjects } from "./hide-subjects.ts";
import { type LogEvent, logEvents } from "./log-events.ts";
import { redactFields } from "./redact-fields.ts";

type Fields = Readonly<Record<string, unknown>>;
type Write = (event: LogEvent, fields?: Fields) => void;

/**
 * The interface of a logger: the event, whose sentence is in `logEvents`, then the fields.
 *
 * - `error`: an operator has to act: policies refused, a counter server that refuses, a request that failed here
 * - `warn`: something is wrong, but the server keeps going: counters unavailable, timeouts, load shed, limits nearly
 *   reached
 * - `info`: what an operator does, and what comes of it: start, stop, reloads, connections
 * - `debug`: single decisions, and other frequent events
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
  /** Whether the values that identify callers are logged only as hashes. */
  readonly hashSubjects?: boolean;
  readonly nowMs?: () => number;
}

/** The most lines of one event per period, for events that outsiders can cause repeatedly. */
const warnings = { lines: 60, everyMs: 60_000 } as const;
const particulars = { lines: 1_000, everyMs: 1_000 } as const;

/**
 * Writes logs. Secrets are removed from every line, by field name and by their looks, and every line is bounded in
 * length. Lines that outsiders can cause are also bounded in number, by event; the next one written says how many were
 * left out. So whatever arrives, logging it costs bounded work.
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
    return (event, fields) => {
      if (logger.isLevelEnabled(at)) logger[at]({ event, ...withoutReserved(fields) }, logEvents[event]);
    };
  };
  const bounded = (at: "trace" | "debug" | "warn" | "error", bound: Bound): Write => {
    const countLeftOut = createLeftOut(nowMs, bound);
    const writeNow = write(at);
    return (event, fields = {}) => {
      if (!logger.isLevelEnabled(at)) return;
      const leftOut = countLeftOut(event);
      if (leftOut === undefined) return;
      const before = typeof fields.leftOut === "number" ? fields.leftOut : 0;
      writeNow(event, leftOut === 0 ? fields : { ...fields, leftOut: leftOut + before });
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

/** Callers may not set the line's own keys. */
function withoutReserved(fields: Fields = {}): Fields {
  if (!("event" in fields || "message" in fields)) return fields;
  const { event: _event, message: _message, ...rest } = fields;
  return rest;
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

/** How many lines of this event were left out since the last one; undefined if this one is to be left out too. */
function createLeftOut(nowMs: () => number, { lines, everyMs }: Bound): (event: LogEvent) => number | undefined {
  const periods = new Map<LogEvent, { beganMs: number; lines: number; leftOut: number }>();
  return (event) => {
    let period = periods.get(event);
    if (period === undefined) {
      period = { beganMs: nowMs(), lines: 0, leftOut: 0 };
      periods.set(event, period);
    }
    if (nowMs() - period.beganMs >= everyMs) {
      period.beganMs = nowMs();
      period.lines = 0;
    }
    period.lines += 1;
    if (period.lines > lines) {
      period.leftOut += 1;
      return undefined;
    }
    const { leftOut } = period;
    period.leftOut = 0;
    return leftOut;
  };
}

/**
 * `12:30:05 warn  policies have warnings file=policies.yaml event=policies.warnings`, each problem on a separate line, and the stack of an error
 * indented: no text from outside begins a line.
 */
export function renderLogLine(json: string): string {
  const { time, level, message, event, problems, err, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const rest = Object.entries({ ...fields, event }).map(([name, value]) => ` ${name}=${renderValue(value)}`);
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
