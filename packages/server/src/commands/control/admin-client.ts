import { setTimeout as sleep } from "node:timers/promises";
import type { AdminErrorBody } from "@sluice/protocol/admin";
import { printable } from "sluice";
import { bearerOf, parseServer, type ServerFlag } from "../ask-server.ts";
import { type HttpAnswer, sendRequest } from "../send-request.ts";
import { CommandError, type ExitCode } from "../terminal.ts";

/** Which control plane is asked, and as whom. */
export interface AdminOptions {
  readonly admin: string;
  /** What named it. Absent: `--admin`. */
  readonly flag?: ServerFlag | undefined;
  readonly token?: string | undefined;
  /** Where the token comes from, for telling what is wrong with it. */
  readonly tokenSource?: string | undefined;
  /** Certificates in PEM that vouch for it. */
  readonly ca?: string | undefined;
  /** What can be done without a token. */
  readonly tokenHint?: string | undefined;
  /** Hears of waiting that is worth telling people. */
  readonly tell?: ((text: string) => void) | undefined;
}

export interface AdminQuestion {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is. */
  readonly text?: { readonly type: string; readonly content: string } | undefined;
  /** The version that is to be changed; 0: that there is none. */
  readonly expected?: number | undefined;
}

/** Asks one control plane. Whatever is not an answer is a `CommandError` that says what to do. */
export interface AdminClient {
  /** For people. */
  readonly where: string;
  ask<T>(method: "GET" | "POST" | "PUT" | "DELETE", path: string, question?: AdminQuestion): Promise<T>;
  askText(path: string, accept: string): Promise<string>;
}

export const adminFlag: ServerFlag = { name: "--admin", example: "http://127.0.0.1:8090" };

/** A refusal, with what the control plane said of it. */
export class AdminRefusal extends CommandError {
  override readonly name: string = "AdminRefusal";
  readonly body: Partial<AdminErrorBody>;

  constructor(message: string, exitCode: ExitCode, body: Partial<AdminErrorBody>) {
    super(message, exitCode);
    this.body = body;
  }
}

const answerWithinMs = 30_000;
const mostTries = 6;
const longestWaitMs = 61_000;

export function createAdminClient(options: AdminOptions): AdminClient {
  const base = parseServer(options.admin, options.flag ?? adminFlag);
  const authorization = options.token === undefined ? undefined : bearerOf(options.token, options.tokenSource);

  async function send(method: string, path: string, accept: string, question: AdminQuestion = {}): Promise<HttpAnswer> {
    const url = new URL(path, base);
    for (const [name, value] of Object.entries(question.query ?? {}))
      if (value !== undefined) url.searchParams.set(name, String(value));
    const { body, text, expected } = question;
    const type = text?.type ?? (body === undefined ? undefined : "application/json");
    return sendRequest(url, {
      method,
      headers: {
        accept,
        ...(type !== undefined && { "content-type": type }),
        ...(authorization !== undefined && { authorization }),
        ...conditionOf(expected),
      },
      content: text?.content ?? (body === undefined ? undefined : JSON.stringify(body)),
      ca: options.ca,
      withinMs: answerWithinMs,
    }).catch((error: Error) => {
      throw new CommandError(noAnswer(base, error), 5);
    });
  }

  /** A request that was refused with 429 did nothing, so sending it again does nothing twice. */
  async function sendPatiently(...asked: Parameters<typeof send>): Promise<HttpAnswer> {
    for (let tries = 1; ; tries += 1) {
      const answer = await send(...asked);
      const waitMs = Number(answer.retryAfter ?? Number.NaN) * 1_000;
      if (answer.status !== 429 || tries === mostTries || !(waitMs <= longestWaitMs)) return answer;
      options.tell?.(`The control plane asks to wait ${waitMs / 1_000} s before more is asked of it.`);
      await sleep(waitMs);
    }
  }

  return {
    where: base.origin,
    async ask<T>(method: string, path: string, question?: AdminQuestion): Promise<T> {
      const { status, type, text } = await sendPatiently(method, path, "application/json", question);
      if (status === 204) return {} as T;
      if (isOk(status) && /^application\/json\b/.test(type)) return JSON.parse(text) as T;
      throw refusalOf(status, text, options, base);
    },
    async askText(path, accept) {
      const { status, type, text } = await sendPatiently("GET", path, accept);
      if (isOk(status) && type.startsWith(accept)) return text;
      throw refusalOf(status, text, options, base);
    },
  };
}

function isOk(status: number): boolean {
  return status >= 200 && status < 300;
}

function conditionOf(expected: number | undefined): Readonly<Record<string, string>> {
  if (expected === undefined) return {};
  return expected === 0 ? { "if-none-match": "*" } : { "if-match": `"${expected}"` };
}

function noAnswer(base: URL, error: Error): string {
  return (
    `no answer from ${base.origin}: ${error.message}. Is there a control plane? ` +
    "A server with a policy store has one (sluice serve --store sqlite:sluice.db); name it with --admin or SLUICE_ADMIN_URL."
  );
}

/** What exit code a refusal has. Statuses that are not here are a failure of the server's. */
const exitCodes: Readonly<Record<number, ExitCode>> = {
  400: 1,
  401: 3,
  403: 3,
  404: 1,
  409: 4,
  412: 4,
  413: 1,
  422: 1,
  429: 5,
  503: 5,
};

/** A request that makes no sense is another's mistake than policies with errors. */
const exitCodesByCode: Readonly<Record<string, ExitCode>> = { not_found: 5, invalid_request: 2 };

function refusalOf(status: number, text: string, options: AdminOptions, base: URL): AdminRefusal {
  const body = parseProblem(text);
  const exitCode = exitCodesByCode[body.code ?? ""] ?? exitCodes[status] ?? 2;
  if (body.code === undefined || body.detail === undefined)
    return new AdminRefusal(
      `${base.origin} answered ${status}, not as a control plane does: ${printable(text.slice(0, 200))}`,
      exitCode,
      {},
    );
  return new AdminRefusal(messageOf(body as AdminErrorBody, options, base), exitCode, body);
}

function messageOf({ code, detail, problems = [] }: AdminErrorBody, options: AdminOptions, base: URL): string {
  // Where every problem is listed, the rest of the detail says the same.
  const said = printable(problems.length === 0 ? detail : (detail.split("\n", 1)[0] ?? ""));
  const list = problems.map(
    ({ field, message }) => `\n  ${printable(field === "(root)" ? message : `${flagFor(field)}: ${message}`)}`,
  );
  switch (code) {
    case "unauthenticated":
      return options.token === undefined
        ? `${base.origin} needs a token. ${options.tokenHint ?? "Put one into SLUICE_TOKEN, or name a file that holds it with --token-file."}`
        : `the token in ${options.tokenSource ?? "SLUICE_TOKEN"} is not accepted: ${said}`;
    case "permission_denied":
      return `not allowed: ${said}${roleAdvice(said)}`;
    case "not_found":
      return `${base.origin} answers, but not as a control plane of this version does; is it the admin port (8090 by custom)?`;
    case "rate_limited":
      return `the control plane is asked too often: ${said}`;
    default:
      // A single problem is all that there is to say: its detail repeats it.
      if (problems.length === 1 && said.includes(printable(problems[0]?.message ?? ""))) return (list[0] ?? "").trim();
      return `${problems.length === 0 ? said : said.replace(/:?$/, ":")}${list.join("")}`;
  }
}

/** Who lacks a role needs a token that has it; what other refusals need, they say themselves. */
function roleAdvice(said: string): string {
  const [, role] = /^this needs role (\w+)/.exec(said) ?? [];
  if (role === undefined) return "";
  return `. Ask with a token of that role (SLUICE_TOKEN or --token-file); an admin makes one: sluice token make --name NAME --role ${role}${role === "editor" ? " --team TEAM" : ""}`;
}

/** What was typed for a field of the API; other fields have the names of arguments, or are of a policy file. */
const flags: readonly (readonly [RegExp, string])[] = [
  [/^for_ms$/, "--for"],
  [/^until_ms$/, "--for or --until"],
  [/^expires_ms$/, "--expires"],
  [/^rollout\.steps\b.*/, "--rollout"],
  [/^rollout\.by$/, "--by"],
  [/^rollout\.starts_ms$/, "--start"],
  [/^rollout\.observe_for_ms$/, "--observe"],
  [/^rollout\.shadow$/, "--shadow"],
];

export function flagFor(field: string): string {
  return flags.find(([pattern]) => pattern.test(field))?.[1] ?? field;
}

function parseProblem(text: string): Partial<AdminErrorBody> {
  try {
    return (JSON.parse(text) as Partial<AdminErrorBody> | null) ?? {};
  } catch {
    return {};
  }
}
