import { randomUUID } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { SettingError } from "../../settings/parse-settings.ts";
import type { Settings } from "../../settings/settings.ts";

/** A file for a token that is shown once. It is made before the token is, which would be lost where it cannot be written. */
export interface TokenFile {
  readonly path: string;
  /** Under its name, in place of what was there, for its owner alone. */
  keep(token: string): Promise<void>;
  /** There is no token. */
  discard(): Promise<void>;
}

/** Throws a `SettingError` where it cannot be written. */
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

/** Where the first token of a store is written to. */
export function firstTokenPath({ adminTokenFile, store }: Pick<Settings, "adminTokenFile" | "store">): string {
  return resolve(adminTokenFile ?? besideStore(store ?? ""));
}

function besideStore(url: string): string {
  const file = /^sqlite:(?:\/\/)?(.+)$/.exec(url)?.[1];
  return file === undefined || file === ":memory:" ? "sluice-admin-token" : `${file}-admin-token`;
}
