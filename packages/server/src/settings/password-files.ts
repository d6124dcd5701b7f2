import { SettingError } from "./parse-settings.ts";
import { readSettingFile } from "./read-setting-file.ts";
import type { Settings } from "./settings.ts";

/** Settings that name a file with a password for outgoing connections. */
export type PasswordSetting = "redisPasswordFile" | "redisSentinelPasswordFile" | "storePasswordFile";

/** A password in a file, which is read again for every connection: it may be rotated while the server runs. */
export interface PasswordFile {
  /** The same function for the same settings, so that addresses can be compared. Rejects with a `SettingError`. */
  readonly read: () => Promise<string>;
  /** Every password that was read so far: none of them belongs into a log. */
  readonly secrets: ReadonlySet<string>;
}

const known = new WeakMap<Settings, Map<PasswordSetting, PasswordFile>>();

/** The file that a setting names; undefined if it names none. */
export function findPasswordFile(name: PasswordSetting, settings: Settings): PasswordFile | undefined {
  if (settings[name] === undefined) return undefined;
  const files = known.get(settings) ?? new Map<PasswordSetting, PasswordFile>();
  known.set(settings, files);
  const file = files.get(name) ?? createPasswordFile(name, settings);
  files.set(name, file);
  return file;
}

function createPasswordFile(name: PasswordSetting, settings: Settings): PasswordFile {
  const secrets = new Set<string>();
  return {
    secrets,
    async read(): Promise<string> {
      // Editors and `kubectl` leave a line end, and some a byte order mark, that are not part of it.
      const password = (await readSettingFile(name, settings))?.replace(/^\uFEFF/, "").trimEnd() ?? "";
      if (password === "") throw new SettingError([name], `${settings[name]} is empty; write the password into it`);
      secrets.add(password);
      return password;
    },
  };
}
