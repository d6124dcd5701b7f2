import { pino } from "pino";
import type { Problem } from "sluice";
import { renderPolicyProblem } from "../render-policy-problem.ts";
import type { LogFormat, LogLevel } from "../settings.ts";

type Write = (fields: Readonly<Record<string, unknown>>, message: string) => void;

/** What the server asks of a logger: fields first, then a sentence. */
export interface Logger {
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
}

/** Fields that may hold a secret are blotted out, one level deep, whoever logs them. */
const secretFields = ["authorization", "cookie", "password", "token", "secret", "api_key", "apiKey"];

export function createLogger({ level, format, stdout, stderr }: LoggerOptions): Logger {
  const output = format === "json" ? stdout : { write: (line: string) => stderr.write(renderLogLine(line)) };
  const logger = pino(
    {
      level,
      base: null,
      messageKey: "message",
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secretFields.flatMap((name) => [name, `*.${name}`]), censor: "[redacted]" },
    },
    output,
  );
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
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
  return `${lines.join("\n")}\n`;
}

function renderValue(value: unknown): string {
  return typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}
