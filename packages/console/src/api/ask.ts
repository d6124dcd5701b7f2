import { ApiError, parseApiError } from "./api-error.ts";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Question {
  readonly query?: Query | undefined;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is. */
  readonly text?: { readonly type: string; readonly content: BodyInit } | undefined;
  /** The version that the page shows: the server refuses to replace another. 0: there was none. */
  readonly expected?: number | "any" | undefined;
  /** For the history and the audit. */
  readonly why?: string | undefined;
  /** Answers as if it were done, and does nothing. */
  readonly dryRun?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

const root = "/api/v1/";
const answerWithinMs = 30_000;

/** Other sites cannot send this header, so a forged request is refused even where a cookie would come along. */
export const consoleHeader: Readonly<Record<string, string>> = { "x-sluice-console": "1" };

/** Asks the admin API as the signed-in caller. Rejects with an `ApiError`, or with the signal's reason. */
export async function ask<T>(method: Method, path: string, question: Question = {}): Promise<T> {
  const { status, text, type, retryAfter } = await send(method, path, "application/json", question);
  if (status === 204) return undefined as T;
  if (isOk(status) && type.startsWith("application/json")) return JSON.parse(text) as T;
  throw parseApiError(status, text, retryAfter);
}

export async function askText(path: string, accept: string, question: Question = {}): Promise<string> {
  const { status, text, retryAfter } = await send("GET", path, accept, question);
  if (isOk(status)) return text;
  throw parseApiError(status, text, retryAfter);
}

/** One part of a path, whatever it contains. */
export function part(text: string): string {
  return encodeURIComponent(text);
}

export function apiUrl(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  const text = search.toString();
  return `${root}${path}${text === "" ? "" : `?${text}`}`;
}

async function send(method: Method, path: string, accept: string, question: Question) {
  const { query, body, text, expected, why, dryRun, signal } = question;
  const type = text?.type ?? (body === undefined ? undefined : "application/json");
  const timeout = AbortSignal.timeout(answerWithinMs);
  try {
    const response = await fetch(apiUrl(path, { ...query, dry_run: dryRun, why: why === "" ? undefined : why }), {
      method,
      credentials: "same-origin",
      redirect: "error",
      cache: "no-store",
      headers: {
        accept,
        ...(method !== "GET" && consoleHeader),
        ...(type !== undefined && { "content-type": type }),
        ...renderCondition(expected),
      },
      body: text?.content ?? (body === undefined ? null : JSON.stringify(body)),
      signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
    });
    return {
      status: response.status,
      type: response.headers.get("content-type") ?? "",
      retryAfter: response.headers.get("retry-after"),
      text: await response.text(),
    };
  } catch {
    signal?.throwIfAborted();
    const why = timeout.aborted ? `did not answer within ${answerWithinMs / 1_000} s` : "cannot be reached";
    throw new ApiError(0, "unreachable", `The server ${why}.`, {});
  }
}

function isOk(status: number): boolean {
  return status >= 200 && status < 300;
}

function renderCondition(expected: number | "any" | undefined): Readonly<Record<string, string>> {
  if (expected === undefined) return {};
  if (expected === "any") return { "if-match": "*" };
  return expected === 0 ? { "if-none-match": "*" } : { "if-match": `"${expected}"` };
}
