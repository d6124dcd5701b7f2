import type { Logger } from "../../observe/telemetry/logger.ts";
import type { Settings } from "../../settings/settings.ts";
import { ensureFirstToken, isUsableAdmin } from "../use-cases/control-tokens.ts";
import { prepareTokenFile } from "./first-token-file.ts";

export interface FirstToken {
  readonly token: string;
  /** The path of the file that holds it. */
  readonly file: string;
}

/** Creates an admin token and writes it to a file. Undefined if the store already has a usable one. */
export async function makeFirstToken(
  store: Parameters<typeof ensureFirstToken>[0],
  settings: Pick<Settings, "adminTokenFile" | "store">,
  log: Pick<Logger, "warn">,
): Promise<FirstToken | undefined> {
  const nowMs = Date.now();
  if ((await store.read((view) => view.tokens())).some((token) => isUsableAdmin(token, nowMs))) return undefined;
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
