import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";

/** Runs a suite as a quick run, and returns the JSON object that it prints last. */
export async function runQuickly(
  suite: string,
  { args: more = [], env = {} }: { args?: readonly string[]; env?: Readonly<Record<string, string>> } = {},
): Promise<Record<string, unknown>> {
  const file = path.join(import.meta.dirname, "..", `${suite}.ts`);
  const args = ["-C", "source", "--expose-gc", file, "--quick", "--json", ...more];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: { ...process.env, ...env } });
  return JSON.parse(stdout.trimEnd().split("\n").at(-1)!);
}
