import type { RequestSpan } from "../../../observe/telemetry/tracing.ts";
import { demand } from "../../access/access.ts";
import { isOurs } from "../../service/describe-error.ts";
import type { Service } from "../../service/service.ts";
import type { Command, CommandContext } from "./command.ts";
import type { CommandReader } from "./command-reader.ts";
import { encodeError, prefixByCode } from "./errors.ts";
import { failure } from "./replies.ts";

/** Runs the last command read. Promises are for what cannot be answered at once; they never reject. */
export interface Dispatch {
  run(reader: CommandReader, context: CommandContext): string | Promise<string>;
  /** Adds to the metrics what was answered synchronously since the last call, read at this time. */
  tellMetrics(sinceMs: number): void;
  /** Commands since the start. */
  readonly total: number;
}

/** The name of unknown commands in metrics. */
const unknownName = "unknown";

const strangers = failure(prefixByCode.unauthenticated, "Authentication required. Say AUTH and a token first.");
const notHttp = failure("ERR", "this port speaks the protocol of Redis, not HTTP");
const minus = 0x2d;

export function createDispatch(commands: readonly Command[], { metrics, log, tracing }: Service): Dispatch {
  /** Places in the table, by `nameHash`. */
  const byHash = new Map<number, number>();
  for (const [place, { name }] of commands.entries()) {
    const hash = hashName(name);
    if (byHash.has(hash)) throw new Error(`${name} needs another hash`);
    byHash.set(hash, place);
  }
  const unknown = commands.length;
  const answered = new Uint32Array(commands.length + 1);
  const failed = new Uint32Array(commands.length + 1);
  let total = 0;
  let unsent = false;

  function count(place: number, reply: string): string {
    if (isError(reply)) failed[place]! += 1;
    else answered[place]! += 1;
    unsent = true;
    return reply;
  }

  function tell(place: number, isFailed: boolean, sinceMs: number, nowMs: number): void {
    const name = commands[place]?.name ?? unknownName;
    metrics.countRespCommand(name, isFailed ? "error" : "answered", (nowMs - sinceMs) / 1_000);
  }

  function refuse(place: number, error: unknown): string {
    if (isOurs(error)) log.error("resp.command_failed", { err: error, command: commands[place]?.name });
    return encodeError(error);
  }

  function attempt(
    { needs, run }: Command,
    place: number,
    reader: CommandReader,
    context: CommandContext,
  ): string | Promise<string> {
    try {
      if (needs !== "nothing") demand(context.session.caller!, needs);
      return run(reader, context);
    } catch (error) {
      return refuse(place, error);
    }
  }

  function runKnown(
    command: Command,
    place: number,
    reader: CommandReader,
    context: CommandContext,
  ): string | Promise<string> {
    const { arity, needs } = command;
    if (context.session.caller === undefined && command.beforeAuth !== true) return strangers;
    if (arity < 0 ? reader.count < -arity : reader.count !== arity)
      return failure("ERR", `wrong number of arguments for '${command.name}' command`);
    const span = needs === "nothing" ? undefined : tracing?.start("resp", command.name);
    const reply = attempt(command, place, reader, span === undefined ? context : tracedBy(span, context));
    if (typeof reply === "string") {
      span?.end({ status: isError(reply) ? "error" : "answered" });
      return reply;
    }
    const sinceMs = performance.now();
    const answer = (text: string): string => {
      tell(place, isError(text), sinceMs, performance.now());
      span?.end({ status: isError(text) ? "error" : "answered" });
      return text;
    };
    return reply.then(answer, (error: unknown) => answer(refuse(place, error)));
  }

  return {
    run(reader, context): string | Promise<string> {
      total += 1;
      const found = byHash.get(reader.nameHash());
      const command = found === undefined ? undefined : commands[found]!;
      if (command === undefined || !reader.isNamed(command.name)) return count(unknown, answerUnknown(reader, context));
      const reply = runKnown(command, found!, reader, context);
      return typeof reply === "string" ? count(found!, reply) : reply;
    },
    tellMetrics(sinceMs): void {
      if (!unsent) return;
      unsent = false;
      const nowMs = performance.now();
      for (let place = 0; place <= unknown; place++) {
        for (; answered[place]! > 0; answered[place]! -= 1) tell(place, false, sinceMs, nowMs);
        for (; failed[place]! > 0; failed[place]! -= 1) tell(place, true, sinceMs, nowMs);
      }
    },
    get total(): number {
      return total;
    },
  };
}

function tracedBy(span: RequestSpan, context: CommandContext): CommandContext {
  const { service } = context;
  return { ...context, service: { ...service, decide: span.around(service.decide) } };
}

/** Browsers can be made to send forms to any port: what looks like one ends the connection before its body is read. */
function answerUnknown(reader: CommandReader, { session }: CommandContext): string {
  if (reader.isInline && (reader.isNamed("post") || reader.isNamed("host:"))) {
    session.isOver = true;
    return notHttp;
  }
  if (session.caller === undefined) return strangers;
  return failure("ERR", `unknown command '${reader.text(0).slice(0, 128)}'`);
}

function isError(reply: string): boolean {
  return reply.charCodeAt(0) === minus;
}

/** The same as `CommandReader.nameHash`. */
function hashName(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (Math.imul(hash, 31) + (name.charCodeAt(i) | 0x20)) | 0;
  return hash;
}
