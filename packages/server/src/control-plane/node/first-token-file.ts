import { randomUUID } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { firstTokenPath } from "@sluice/protocol/tokens";
import { SettingError } from "../../settings/parse-settings.ts";
import type { Settings } from "../../settings/settings.ts";

/**
 * A file for a token that is shown once. It is created before the token, which would be lost if it could not be
 * written.
 */
export interface TokenFile {
  readonly path: string;
  /** Writes it under its final name, replacing an earlier file, for its owner alone. */
  keep(token: string): Promise<void>;
  /** There is no token to write. */
  discard(): Promise<void>;
}

/** Throws a `SettingError` if it cannot be written. */
export async function prepareTokenFile(settings: Pick<Settings, "adminTokenFile" | "store">): Promise<TokenFile> {
  const path = firstTokenPath(settings);
  const draft = join(dirname(path), `.${basename(path)}.draft-${randomUUID()}`);
  const handle = await open(draft, "wx", 0o600).catch((error: unknown) => {
    throw new SettingError(
      ["adminTokenFile"],
      `the first admin token is to be written to ${path}, and cannot be: ${error instanceof Error ? error.message : error}`,
    );
  });
  return {
    path,
    async keep(token): Promise<void> {
      await handle.writeFile(`${token}\n`);
      await handle.sync();
      await handle.close();
      await rename(draft, path);
    },
    async discard(): Promise<void> {
      await handle.close();
      await rm(draft, { force: true });
    },
  };
}
