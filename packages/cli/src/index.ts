export type { HangUp, Signals } from "./early-signals.ts";
export { runProgram, type World } from "./program.ts";
export type { ExitCode, Terminal, TerminalInput, TerminalOutput } from "./terminal/terminal.ts";
