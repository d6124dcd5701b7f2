import { type FileHandle, open, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type Role, roles } from "@sluice/protocol/admin";
import { makeToken, parseTokens, tokenDigest, tokenName } from "@sluice/protocol/tokens";
import { SluiceError } from "sluice";
import { isMap, isSeq, parseDocument, stringify } from "yaml";
import { parseUntil } from "../arguments/parse-time.ts";
import { CommandError, type ExitCode, type Terminal } from "../terminal/terminal.ts";
import { renderJson } from "../terminal/write-json.ts";

export interface TokenMakeOptions {
  readonly name: string;
  readonly role: string;
  /** Whose policies an editor may change. */
  readonly team?: string | undefined;
  /** `90d`, `12h`, or a date. */
  readonly expires?: string;
  /** A file of tokens to add the entry to. */
  readonly file?: string;
  readonly json?: boolean;
}

/** As it stands in the file. */
interface Entry {
  readonly name: string;
  readonly role: Role;
  readonly team?: string;
  readonly sha256: string;
  readonly expires?: string;
}

/** `sluice token make`: prints a new token, which is kept nowhere, and what the server is to know of it. */
export async function tokenMake(
  options: TokenMakeOptions,
  terminal: Terminal,
  nowMs: number = Date.now(),
  waitMs: number = 5_000,
): Promise<ExitCode> {
  const { name, role, team } = parseHolder(options);
  const token = makeToken();
  const entry: Entry = {
    name,
    role,
    ...(team === undefined ? undefined : { team }),
    sha256: tokenDigest(token),
    ...(options.expires === undefined ? undefined : { expires: readExpiry(options.expires, nowMs) }),
  };
  if (options.json === true) {
    if (options.file !== undefined) await addToFile(options.file, entry, waitMs);
    terminal.stdout.write(`${renderJson({ token, entry }, 2)}\n`);
  } else if (options.file === undefined) {
    terminal.stderr.write(
      "The token, which is shown this once, and below it what goes into the server's file of tokens:\n\n",
    );
    terminal.stdout.write(`${token}\n`);
    terminal.stderr.write(`\n${stringify({ tokens: [entry] })}`);
  } else {
    await addToFile(options.file, entry, waitMs);
    terminal.stderr.write(
      `${entry.name} (${role}) stands in ${options.file}. The token, which is shown this once:\n\n`,
    );
    terminal.stdout.write(`${token}\n`);
  }
  return 0;
}

/** Whom a token is for. Throws if an editor has no team, or another role has one. */
export function parseHolder({ name, role: word, team }: Pick<TokenMakeOptions, "name" | "role" | "team">): {
  readonly name: string;
  readonly role: Role;
  readonly team: string | undefined;
} {
  if (!tokenName.test(name))
    throw new CommandError(`--name: ${JSON.stringify(name)} should be 1 to 64 letters, digits or . _ @ : / -`);
  const role = roles.find((one) => one === word);
  if (role === undefined)
    throw new CommandError(`--role: ${JSON.stringify(word)} should be one of ${roles.join(", ")}`);
  if (role === "editor" && team === undefined)
    throw new CommandError("--role editor needs --team: an editor changes the policies of one team");
  if (role !== "editor" && team !== undefined)
    throw new CommandError(`--team is for editors alone; role ${role} is for all policies`);
  if (team !== undefined && !tokenName.test(team))
    throw new CommandError(`--team: ${JSON.stringify(team)} should be 1 to 64 letters, digits or . _ @ : / -`);
  return { name, role, team };
}

const maxExpiryMs = 10 * 366 * 86_400_000;

function readExpiry(text: string, nowMs: number): string {
  const atMs = parseUntil("--expires", text, nowMs);
  if (atMs - nowMs > maxExpiryMs)
    throw new CommandError(`--expires is ${JSON.stringify(text)}; it should be within ten years`);
  return new Date(atMs).toISOString().replace(/\.\d+Z$/, "Z");
}

/**
 * Adds the entry and leaves everything else in the file as it is, comments too. A reader finds it whole at any moment; who
 * adds another entry at the same time waits.
 */
async function addToFile(given: string, entry: Entry, waitMs: number): Promise<void> {
  const file = await realpath(given).catch(() => given);
  const next = `${file}.next`;
  try {
    // The next version stands beside the file from the first moment on, and so tells others to wait.
    const handle = await createAlone(next, waitMs);
    try {
      await writeNext(handle, given, file, entry);
      await rename(next, file);
    } catch (error) {
      await rm(next, { force: true });
      throw error;
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof CommandError || error instanceof SluiceError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    const reason =
      code === "EEXIST" ? `${next} is there, which another command is writing. If none is, remove it` : (code ?? error);
    throw new CommandError(`${given} cannot be written: ${reason}`);
  }
}

const tryAgainMs = 20;

/** Makes a file that its owner alone can read. One of that name is waited for until it is gone. */
async function createAlone(path: string, waitMs: number): Promise<FileHandle> {
  const untilMs = performance.now() + waitMs;
  for (;;) {
    try {
      return await open(path, "wx", 0o600);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || performance.now() > untilMs) throw error;
    }
    await sleep(tryAgainMs);
  }
}

async function writeNext(handle: FileHandle, given: string, file: string, entry: Entry): Promise<void> {
  const content = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new CommandError(`${given} cannot be read: ${error.code}`);
  });
  const known = content === undefined || content.trim() === "" ? [] : parseTokens(content, given);
  if (known.some(({ name }) => name === entry.name))
    throw new CommandError(
      `${given} has a token of the name ${entry.name} already; choose another, or take that one out`,
    );
  const text = content === undefined || content.trim() === "" ? stringify({ tokens: [entry] }) : added(content, entry);
  await handle.writeFile(text);
  if (content !== undefined) {
    const { mode, uid, gid } = await stat(file);
    // Only root can give it back to another user. Mode comes last: giving it away may narrow it.
    await handle.chown(uid, gid).catch(() => undefined);
    await handle.chmod(mode & 0o777);
  }
  await handle.sync();
}

function added(content: string, entry: Entry): string {
  const json = parseJson(content);
  if (json !== undefined) return `${JSON.stringify({ tokens: [...json.tokens, entry] }, null, 2)}\n`;
  const document = parseDocument(content);
  const list = isMap(document.contents) ? document.get("tokens") : undefined;
  // An empty list is written `[]`, and what is added to it would be written in its brackets.
  if (isSeq(list) && list.items.length === 0) list.flow = false;
  document.addIn(["tokens"], document.createNode(entry));
  return document.toString({ lineWidth: 0 });
}

/** Undefined for what is YAML only. */
function parseJson(content: string): { readonly tokens: readonly unknown[] } | undefined {
  try {
    return JSON.parse(content) as { tokens: unknown[] };
  } catch {
    return undefined;
  }
}
