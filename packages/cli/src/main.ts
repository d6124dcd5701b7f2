#!/usr/bin/env node
import { isatty } from "node:tty";
import { type HangUp, mindEarlySignals, type Signals } from "./early-signals.ts";

const hangUp: HangUp = isatty(0) || isatty(1) ? "stop" : "reload";
// Loading the rest takes a few tenths of a second, in which a signal must be handled already.
const signals: Signals =
  process.argv[2] === "serve" ? mindEarlySignals(process, hangUp, () => process.exit(0)) : process;

/** Whether the command ends only when it is stopped. */
const isEndless = process.argv[2] === "serve" || (process.argv[2] === "usage" && process.argv[3] === "tail");

for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    // `sluice explain … | head` closes our stdout; that is no failure of ours. A command still finishes what it does: the
    // unread output may be the plan of what is being applied.
    if (error.code === "EPIPE" && isEndless) process.exit(0);
    if (error.code === "EPIPE") return;
    // The terminal is gone; SIGHUP says so too, and ends us in order.
    if (error.code !== "EIO") throw error;
  });
}

const { runProgram } = await import("./program.ts");
process.exitCode = await runProgram({
  args: process.argv.slice(2),
  env: process.env,
  terminal: {
    stdout: process.stdout,
    stderr: process.stderr,
    // Opened by those who read it.
    get stdin() {
      return process.stdin;
    },
  },
  signals,
  hangUp,
});
// Nothing should keep the process by now. Should something do so, this ends it.
setTimeout(() => process.exit(), 500).unref();
