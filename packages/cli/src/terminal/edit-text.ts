import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommandError } from "./terminal.ts";

/** Lets a person edit a text in their editor, and returns it when they leave. The file is theirs alone, and deleted. */
export async function editText(text: string, name: string, editor: string | undefined): Promise<string> {
  if (editor === undefined)
    throw new CommandError("no editor is chosen; set VISUAL or EDITOR, or name a file with --file");
  const folder = await mkdtemp(join(tmpdir(), "sluice-edit-"));
  const file = join(folder, name);
  try {
    await writeFile(file, text, { mode: 0o600 });
    await runEditor(editor, file);
    return await readFile(file, "utf8");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** An editor may be a command with options: `code --wait`. */
function runEditor(editor: string, file: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/sh", ["-c", `${editor} "$1"`, "sh", file], { stdio: "inherit" });
    child.on("error", reject);
    child.on("exit", (code) => {
      if (code === 0) resolve();
      else reject(new CommandError(`${editor} ended with code ${code}, so nothing was done`));
    });
  });
}
