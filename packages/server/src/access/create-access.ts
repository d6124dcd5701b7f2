import { hash } from "node:crypto";
import { SluiceError } from "sluice";
import { followFiles } from "../settings/follow-files.ts";
import { readSettingFile } from "../settings/read-setting-file.ts";
import type { Settings } from "../settings/settings.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type Access, type Caller, openAccess } from "./access.ts";
import { parseTokens, type TokenEntry } from "./parse-tokens.ts";
import { type Permission, permissionsOf } from "./roles.ts";

/** Access that follows a file. */
export interface RunningAccess extends Access {
  /** Reads the file again now. */
  reload(): Promise<void>;
  close(): void;
}

export interface CreateAccessOptions {
  /** Hears of every token that is refused. Who sends none may only not have done so yet. */
  readonly onRefused?: (() => void) | undefined;
  /** How often to look for a changed file. */
  readonly pollMs?: number | undefined;
  readonly nowMs?: (() => number) | undefined;
}

/** What is longer is none of ours, and not worth hashing. */
const maxTokenLength = 512;
const logEveryMs = 60_000;

/** Who may do what, by the file that settings name; without one, `openAccess`. Throws where the file cannot be used. */
export async function createAccess(
  settings: Settings,
  log: Logger,
  options: CreateAccessOptions = {},
): Promise<RunningAccess> {
  const { tokens: path } = settings;
  if (path === undefined) return { ...openAccess, async reload(): Promise<void> {}, close(): void {} };
  const { onRefused, pollMs, nowMs = Date.now } = options;
  const tellRefusals = createRefusalLog(log);
  const file = await followFiles({
    paths: [path],
    pollMs,
    load: async () => parseTokens((await readSettingFile("tokens", settings)) ?? "", path),
    onChange(tokens): void {
      known = callersOf(tokens);
      log.info({ path, tokens: tokens.length }, "tokens were read again");
      warnIfEmpty(tokens);
    },
    onRefused: (error) =>
      log.error(
        { path, ...(error instanceof SluiceError ? { problems: error.problems } : { reason: String(error) }) },
        "changed tokens cannot be used; the last good ones stay",
      ),
  });
  let known = callersOf(file.first);
  warnIfEmpty(file.first);

  function warnIfEmpty(tokens: readonly TokenEntry[]): void {
    if (tokens.length === 0) log.warn({ path }, "there are no tokens, so that nobody may ask anything");
  }

  function refuse(message: string): never {
    onRefused?.();
    tellRefusals();
    throw new SluiceError("unauthenticated", message);
  }

  return {
    identify(token): Caller {
      if (token === undefined)
        throw new SluiceError("unauthenticated", "this needs a token; send Authorization: Bearer TOKEN");
      // Looked up by its digest, a token that is nearly right takes as long as one that is not.
      const entry = token.length > maxTokenLength ? undefined : known.get(hash("sha256", token, "hex"));
      if (entry === undefined) return refuse("this token is not known here");
      if (entry.expiresMs <= nowMs()) return refuse("this token has expired; ask for a new one");
      return entry.caller;
    },
    reload: () => file.reload(),
    close: () => file.close(),
  };
}

interface KnownCaller {
  readonly caller: Caller;
  readonly expiresMs: number;
}

function callersOf(tokens: readonly TokenEntry[]): ReadonlyMap<string, KnownCaller> {
  return new Map(
    tokens.map(({ name, role, sha256, expiresMs = Infinity }) => [
      sha256,
      { caller: { name, may: new Set<Permission>(permissionsOf[role]) }, expiresMs },
    ]),
  );
}

/** Tells once a minute how many were refused, and nothing of what they sent. */
function createRefusalLog(log: Logger): () => void {
  let refused = 0;
  let toldMs = -Infinity;
  return () => {
    refused += 1;
    const nowMs = performance.now();
    if (nowMs - toldMs < logEveryMs) return;
    log.warn({ requests: refused }, "requests are refused, because their tokens are not known or have expired");
    toldMs = nowMs;
    refused = 0;
  };
}
