import { hash } from "node:crypto";
import { parseTokens, type TokenEntry } from "@sluice/protocol/tokens";
import { SluiceError } from "sluice";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { type FollowedFiles, followFiles } from "../../settings/follow-files.ts";
import { readSettingFile } from "../../settings/read-setting-file.ts";
import type { Settings } from "../../settings/settings.ts";
import { type Access, type Caller, openAccess, tokenless } from "./access.ts";
import { type Permission, rolePermissions } from "./roles.ts";

/** A token of the policy store that is not revoked. */
export interface KnownToken extends TokenEntry {
  readonly id?: string | undefined;
}

/** Access that follows a file and the policy store. */
export interface RunningAccess extends Access {
  /** Replaces the tokens of the policy store. */
  useTokens(tokens: readonly KnownToken[]): void;
  /** Reads the file again now. */
  reload(): Promise<void>;
  close(): void;
}

export interface CreateAccessOptions {
  /** Called for every refused token. A caller without one may only not have sent it yet. */
  readonly onRefused?: (() => void) | undefined;
  /** How often to check the file for changes. */
  readonly pollMs?: number | undefined;
  readonly nowMs?: (() => number) | undefined;
}

/** Anything longer is not one of ours, and not worth hashing. */
const maxTokenLength = 512;
const logEveryMs = 60_000;

/**
 * Access by the file that settings name, and by tokens of the policy store. Without a file, a caller without a token is
 * anonymous. Throws if the file cannot be used.
 */
export async function createAccess(
  settings: Settings,
  log: Logger,
  options: CreateAccessOptions = {},
): Promise<RunningAccess> {
  const { onRefused, pollMs, nowMs = Date.now } = options;
  const tellRefusals = createRefusalLog(log);
  const file = await followTokens(settings, log, pollMs, (tokens) => {
    ofFile = indexCallers(tokens);
  });
  let ofFile = indexCallers(file?.first ?? []);
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
      // Looked up by its digest, a nearly right token takes as long as a wrong one.
      const digest = token.length > maxTokenLength ? "" : hash("sha256", token, "hex");
      const entry = ofFile.get(digest) ?? ofStore?.get(digest);
      if (entry === undefined) return refuse("this token is not known here");
      if (entry.expiresMs <= nowMs()) return refuse("this token has expired; ask for a new one");
      return entry.caller;
    },
    useTokens(tokens): void {
      ofStore = indexCallers(tokens);
    },
    async reload(): Promise<void> {
      await file?.reload();
    },
    close(): void {
      file?.close();
    },
  };
}

/** The tokens of the file that settings name, as it changes. Undefined if they name none. */
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

function indexCallers(tokens: readonly KnownToken[]): ReadonlyMap<string, KnownCaller> {
  return new Map(
    tokens.map(({ name, role, sha256, expiresMs, team, id }) => [
      sha256,
      {
        caller: { name, role, team, tokenId: id, expiresMs, may: new Set<Permission>(rolePermissions[role]) },
        expiresMs: expiresMs ?? Infinity,
      },
    ]),
  );
}

/** Logs once a minute how many were refused, and nothing that they sent. */
function createRefusalLog(log: Logger): () => void {
  let refused = 0;
  let loggedMs = -Infinity;
  return () => {
    refused += 1;
    const nowMs = performance.now();
    if (nowMs - loggedMs < logEveryMs) return;
    log.warn("tokens.requests_refused", { requests: refused });
    loggedMs = nowMs;
    refused = 0;
  };
}
