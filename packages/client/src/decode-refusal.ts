import { type ErrorCode, type Problem, SluiceError } from "sluice";
import { errorCodes } from "sluice/internal";
import type { Reply } from "./exchange.ts";

/** An error as a server reports it, over either protocol. */
export interface ReportedError {
  readonly code: string;
  readonly message: string;
  readonly problems: readonly { readonly field: string; readonly message: string }[];
}

/** A failure on the server, and not a mistake in the question. */
const serverFailures: ReadonlySet<string> = new Set<ErrorCode>(["internal", "not_local", "store_unavailable"]);

/** What an error means for the question. Unknown codes are treated as a failure of the server. */
export function replyFromError({ code, message, problems }: ReportedError): Reply {
  if (code === "overloaded") return { kind: "elsewhere", reason: "storage_overloaded" };
  if (code === "not_ready") return { kind: "elsewhere", reason: "storage_unavailable" };
  if (!isErrorCode(code) || serverFailures.has(code)) return { kind: "failed", reason: "storage_unavailable" };
  return { kind: "refused", error: new SluiceError(code, message, problems.map(problemFrom)) };
}

function problemFrom({ field, message }: ReportedError["problems"][number]): Problem {
  return { path: parsePath(field), message };
}

function isErrorCode(code: string): code is ErrorCode {
  return (errorCodes as readonly string[]).includes(code);
}

/** `dimensions.ip`, `policies[3]` and `dimensions["a b"]`, as `renderPath` writes them. Anything else is one step. */
export function parsePath(field: string): readonly (string | number)[] {
  if (field === "(root)") return [];
  const steps: (string | number)[] = [];
  const step = /(?:^|\.)([A-Za-z_][\w-]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/gy;
  for (let found = step.exec(field); found !== null; found = step.exec(field)) {
    const [whole, name, index, quoted] = found;
    if (name !== undefined) steps.push(name);
    else if (index !== undefined) steps.push(Number(index));
    else if (quoted !== undefined) steps.push(String(unquote(quoted)));
    if (step.lastIndex === field.length) return steps;
    if (whole === "") break;
  }
  return [field];
}

function unquote(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
