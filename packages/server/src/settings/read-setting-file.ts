import { readFile, stat } from "node:fs/promises";
import { SettingError } from "./parse-settings.ts";
import type { Settings } from "./settings.ts";

/** Settings that name a file. */
export type FileSetting =
  | "redisCa"
  | "redisCert"
  | "redisKey"
  | "redisCells"
  | "redisPasswordFile"
  | "redisSentinelPasswordFile"
  | "storePasswordFile"
  | "kafkaCa"
  | "kafkaCert"
  | "kafkaKey"
  | "kafkaPasswordFile"
  | "tlsCert"
  | "tlsKey"
  | "tlsClientCa"
  | "tokens"
  | "seed"
  | "adminTokenFrom"
  | "usageEventsTokenFile";

const maxBytes = 4 * 1024 * 1024;

/** The text of the file that a setting names; undefined if it names none. Throws a `SettingError` with the reason. */
export async function readSettingFile(name: FileSetting, settings: Settings): Promise<string | undefined> {
  const path = settings[name];
  if (path === undefined) return undefined;
  try {
    const found = await stat(path);
    if (found.isDirectory()) throw new SettingError([name], `${path} ${reasons.EISDIR}`);
    // A pipe under the name of a file would block us until a process writes to it.
    if (!found.isFile()) throw new SettingError([name], `${path} is not a file`);
    if (found.size > maxBytes)
      throw new SettingError([name], `${path} is ${found.size} bytes long; at most ${maxBytes} are read`);
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof SettingError) throw error;
    const { code = "" } = error as NodeJS.ErrnoException;
    throw new SettingError([name], `${path} ${reasons[code] ?? `cannot be read: ${code || error}`}`);
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist: a part of its path is a file",
  EACCES: "cannot be read: permission denied",
  EPERM: "cannot be read: permission denied",
  EISDIR: "is a folder; name a file",
};
