import type { ImportMode } from "@sluice/client/admin";
import type { ImportPlanBody } from "@sluice/protocol/admin";
import { SluiceError } from "sluice";
import { printable } from "sluice/internal";
import { type PolicyFile, readPolicyFiles } from "sluice/policy-file";
import { CommandError, type Terminal, type TerminalInput } from "../terminal/terminal.ts";
import type { ControlSession } from "./control-session.ts";
import { RefusedRequest } from "./refused-request.ts";
import { renderProblemBody } from "./render-problem-body.ts";

/** Policy files, and what importing them would do. */
export interface PlannedFiles {
  readonly files: readonly PolicyFile[];
  readonly mode: ImportMode;
  readonly plan: ImportPlanBody;
}

/** Reads a policy file, a folder of them, or with `-` what is piped in, and asks the control plane what importing it would do. */
export async function askPlan(
  path: string,
  mode: ImportMode,
  { api, terminal }: Pick<ControlSession, "api" | "terminal">,
): Promise<PlannedFiles> {
  const files = await readFiles(path, terminal);
  try {
    return { files, mode, plan: await api.configuration.plan(files, { mode }) };
  } catch (error) {
    throw withPlaces(error);
  }
}

async function readFiles(path: string, { stdin }: Pick<Terminal, "stdin">): Promise<readonly PolicyFile[]> {
  if (path === "-") return [{ file: "(input)", text: await readAll(stdin) }];
  try {
    return await readPolicyFiles(path);
  } catch (error) {
    throw error instanceof SluiceError ? new CommandError(error.message) : error;
  }
}

async function readAll(stdin: TerminalInput | undefined): Promise<string> {
  if (stdin === undefined) throw new CommandError("there is no input to read policies from");
  const parts: Uint8Array[] = [];
  for await (const part of stdin) parts.push(typeof part === "string" ? Buffer.from(part) : part);
  return Buffer.concat(parts).toString("utf8");
}

/** What is wrong with policy files is listed with its places, a line each. */
function withPlaces(error: unknown): unknown {
  if (!(error instanceof RefusedRequest) || error.body.code !== "invalid_policies") return error;
  const { problems = [], detail = "" } = error.body;
  if (problems.length === 0) return error;
  const count =
    /^(\d+ problems?)\b/.exec(detail)?.[1] ?? (problems.length === 1 ? "1 problem" : `${problems.length} problems`);
  const lines = problems.map((one) => printable(renderProblemBody(one)));
  return new RefusedRequest([...lines, `${count}; nothing was changed`].join("\n"), error.exitCode, error.body);
}
