import { hash } from "node:crypto";
import { SluiceError } from "sluice";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { type FollowedFiles, followFiles } from "../../settings/follow-files.ts";
import { readSettingFile } from "../../settings/read-setting-file.ts";
import type { Settings } from "../../settings/settings.ts";
import { type Access, type Caller, openAccess, tokenless } from "./access.ts";
import { parseTokens, type TokenEntry } from "./parse-tokens.ts";
import { type Permission, permissionsOf } from "./roles.ts";

/** A token of the policy store that is not revoked. */
export interface KnownToken extends TokenEntry {
  readonly id?: string | undefined;
}

/** Access that follows a file and the policy store. */
export interface RunningAccess extends Access {
  /** Takes up the tokens of the policy store, in place of those before. */
  useTokens(tokens: readonly KnownToken[]): void;
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

/**
 * Who may do what: by the file that settings name, and by tokens of the policy store. Without a file whoever sends no token
 * is anonymous. Throws where the file cannot be used.
 */
export async function createAccess(
  settings: Settings,
  log: Logger,
  options: CreateAccessOptions = {},
): Promise<RunningAccess> {
  const { onRefused, pollMs, nowMs = Date.now } = options;
  const tellRefusals = createRefusalLog(log);
  const file = await followTokens(settings, log, pollMs, (tokens) => {
    ofFile = callersOf(tokens);
  });
  let ofFile = callersOf(file?.first ?? []);
  let ofStore: ReadonlyMap<string, KnownCaller> | undefined;

  function refuse(message: string): never {
    onRefused?.();
    tellRefusals();
    throw new SluiceError("unauthenticated", message);
  }

  return {
    identify(token): Caller {
      if (token === undefined) {
        if (file === undefined) return ofStore === undefined ? openAccess.identify(undefined) : tokenless;
        throw new SluiceError("unauthenticated", "this needs a token; send Authorization: Bearer TOKEN");
      }
      if (file === undefined && ofStore === undefined) return openAccess.identify(token);
      // Looked up by its digest, a token that is nearly right takes as long as one that is not.
      const digest = token.length > maxTokenLength ? "" : hash("sha256", token, "hex");
      const entry = ofFile.get(digest) ?? ofStore?.get(digest);
      if (entry === undefined) return refuse("this token is not known here");
      if (entry.expiresMs <= nowMs()) return refuse("this token has expired; ask for a new one");
      return entry.caller;
    },
    useTokens(tokens): void {
      ofStore = callersOf(tokens);
    },
    async reload(): Promise<void> {
      await file?.reload();
    },
    close(): void {
      file?.close();
    },
  };
}

/** The tokens of the file that settings name, as it changes. Undefined where they name none. */
async function followTokens(
  settings: Settings,
  log: Logger,
  pollMs: number | undefined,
  use: (tokens: readonly TokenEntry[]) => void,
): Promise<FollowedFiles<readonly TokenEntry[]> | undefined> {
  const { tokens: path } = settings;
  if (path === undefined) return undefined;
  const warnIfEmpty = (tokens: readonly TokenEntry[]): void => {
    if (tokens.length === 0) log.warn("tokens.none", { path });
  };
  const file = await followFiles({
    paths: [path],
    pollMs,
    load: async () => parseTokens((await readSettingFile("tokens", settings)) ?? "", path),
    onChange(tokens): void {
      use(tokens);
      log.info("tokens.reloaded", { path, tokens: tokens.length });
      warnIfEmpty(tokens);
    },
    onRefused: (error) =>
      log.error("tokens.reload_failed", {
        path,
        ...(error instanceof SluiceError ? { problems: error.problems } : { reason: String(error) }),
      }),
  });
  warnIfEmpty(file.first);
  return file;
}

interface KnownCaller {
  readonly caller: Caller;
  readonly expiresMs: number;
}

function callersOf(tokens: readonly KnownToken[]): ReadonlyMap<string, KnownCaller> {
  return new Map(
    tokens.map(({ name, role, sha256, expiresMs = Infinity, team, id }) => [
      sha256,
      { caller: { name, role, team, tokenId: id, may: new Set<Permission>(permissionsOf[role]) }, expiresMs },
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
    log.warn("tokens.requests_refused", { requests: refused });
    toldMs = nowMs;
    refused = 0;
  };
}
