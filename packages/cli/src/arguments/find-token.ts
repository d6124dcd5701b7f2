import { readFile } from "node:fs/promises";
import { CommandError } from "../terminal/terminal.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What every command takes that asks a server or a control plane. */
export interface AskingOptions {
  readonly tokenFile?: string;
  /** Path of a file in PEM. */
  readonly ca?: string;
  readonly json?: boolean;
}

/** What commands take that ask a server. */
export interface ServerFlags extends AskingOptions {
  readonly server?: string;
}

export interface FoundToken {
  readonly token: string | undefined;
  /** Where it comes from, for messages. */
  readonly source: string;
}

/** A token is never a word of the command line, which every user of the machine can read. */
export async function findToken({ tokenFile }: AskingOptions, env: Environment): Promise<FoundToken> {
  if (tokenFile === undefined) return { token: env.SLUICE_TOKEN || undefined, source: "SLUICE_TOKEN" };
  const token = (await readNamed("--token-file", tokenFile)).trim();
  if (token === "") throw new CommandError(`--token-file: ${tokenFile} is empty; it should hold a token`);
  return { token, source: tokenFile };
}

/** Certificates that vouch for a server: of `--ca`, else of `SLUICE_CA`. Undefined: those that Node trusts. */
export async function findCa({ ca }: AskingOptions, env: Environment, url: string): Promise<string | undefined> {
  const isHttp = /^http:/i.test(url);
  if (ca !== undefined && isHttp)
    throw new CommandError(`--ca is for https://, and ${url} is not; leave it out, or ask over https://`);
  const path = ca ?? (isHttp ? undefined : env.SLUICE_CA || undefined);
  if (path === undefined) return undefined;
  const name = ca === undefined ? "SLUICE_CA" : "--ca";
  const text = await readNamed(name, path);
  if (!text.includes("-----BEGIN CERTIFICATE-----"))
    throw new CommandError(`${name}: ${path} holds no certificate in PEM (-----BEGIN CERTIFICATE-----)`);
  return text;
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist: a part of its path is a file",
  EACCES: "cannot be read: permission denied",
  EPERM: "cannot be read: permission denied",
  EISDIR: "is a folder; name a file",
};

async function readNamed(name: string, path: string): Promise<string> {
  return readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(`${name}: ${path} ${reasons[error.code ?? ""] ?? `cannot be read: ${error.message}`}`);
  });
}
