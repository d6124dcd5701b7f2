#!/usr/bin/env node
import { runProgram } from "./program.ts";

// `sluice explain … | head` closes our stdout; that is no failure of ours.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});

process.exitCode = await runProgram({
  args: process.argv.slice(2),
  env: process.env,
  terminal: { stdout: process.stdout, stderr: process.stderr },
  signals: process,
});
// Nothing should keep the process by now. Should something do so, this ends it.
setTimeout(() => process.exit(), 500).unref();
