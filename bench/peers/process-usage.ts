import { readFileSync } from "node:fs";

/** Linux counts CPU time of processes in hundredths of a second, whatever its own clock does. */
const tickUs = 10_000;

/** CPU time that a process has used since it started, of all its threads, in user and system mode. */
export function readCpuUs(pid: number): number {
  // The name, in parentheses, may contain anything, so fields count from behind it: 12 and 13 are utime and stime.
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * tickUs;
}

/** Memory that a process keeps resident. */
export function readRssBytes(pid: number): number {
  return Number(/^VmRSS:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]) * 1024;
}
