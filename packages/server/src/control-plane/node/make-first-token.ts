import { tokenDigest } from "@sluice/protocol/tokens";
import type { TokenRecord } from "@sluice/sql";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { SettingError } from "../../settings/parse-settings.ts";
import { readSettingFile } from "../../settings/read-setting-file.ts";
import type { Settings } from "../../settings/settings.ts";
import { ensureFirstToken, isUsableAdmin } from "../use-cases/control-tokens.ts";
import { prepareTokenFile } from "./first-token-file.ts";

export interface FirstToken {
  readonly token: string;
  /** The path of the file that holds it. */
  readonly file: string;
}

type Store = Parameters<typeof ensureFirstToken>[0];

/**
 * Gives a store without a usable admin token one: that of `adminTokenFrom`, or a new one, which it writes to a file and
 * returns. Undefined if there is nothing to show.
 */
export async function makeFirstToken(
  store: Store,
  settings: Settings,
  log: Pick<Logger, "info" | "warn" | "error">,
): Promise<FirstToken | undefined> {
  const nowMs = Date.now();
  const tokens = await store.read((view) => view.tokens());
  if (tokens.some((token) => isUsableAdmin(token, nowMs))) return undefined;
  if (settings.adminTokenFrom !== undefined) {
    await takeFirstToken(store, tokens, settings, log);
    return undefined;
  }
  const file = await prepareTokenFile(settings);
  const made = await ensureFirstToken(store).catch(async (error: unknown) => {
    await file.discard();
    throw error;
  });
  if (made === undefined) {
    await file.discard();
    return undefined;
  }
  await file.keep(made.token);
  log.warn("store.first_token_made", { name: made.name, file: file.path });
  return { token: made.token, file: file.path };
}

/**
 * A token that was revoked or has expired stays so, even if it is in the file again: another start must not bring it
 * back. The server serves all the same, because deciding needs no admin.
 */
async function takeFirstToken(
  store: Store,
  tokens: readonly TokenRecord[],
  settings: Settings,
  log: Pick<Logger, "info" | "error">,
): Promise<void> {
  const file = settings.adminTokenFrom;
  const token = readToken(file, (await readSettingFile("adminTokenFrom", settings)) ?? "");
  const digest = tokenDigest(token);
  if (tokens.some(({ sha256 }) => sha256 === digest)) {
    log.error("store.first_token_refused", { file });
    return;
  }
  const taken = await ensureFirstToken(store, { token });
  if (taken !== undefined) log.info("store.first_token_taken", { name: taken.name, file });
}

/** Shorter ones can be guessed; longer ones are refused by every transport. */
const tokenForm = /^[!-~]{32,512}$/;

/** Never repeats its input. */
function readToken(file: string | undefined, content: string): string {
  const token = content.trim();
  if (tokenForm.test(token)) return token;
  throw new SettingError(
    ["adminTokenFrom"],
    `${file} must hold a token of 32 to 512 visible ASCII characters in one line, and nothing else; ` +
      "sluice token make prints one, and so does openssl rand -base64 32",
  );
}
