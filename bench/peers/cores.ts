import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** The core that the server of a round has to itself, and the one that its load and its store share. */
export interface Cores {
  readonly server: number;
  readonly load: number;
}

/** They swap from round to round, so that what else runs on a core affects all servers alike. One core alone is shared. */
export function findCores(round: number): Cores {
  const [first = 0, second = first] = allowedCores();
  return round % 2 === 0 ? { server: first, load: second } : { server: second, load: first };
}

/** Keeps a process, all its threads, and what it starts from now on, on one core. */
export function pin(pid: number, core: number): void {
  execFileSync("taskset", ["--all-tasks", "--cpu-list", "--pid", `${core}`, `${pid}`], { stdio: "ignore" });
}

let allowed: readonly number[] | undefined;

/** The cores that this process could use when it started, because it pins itself later. */
function allowedCores(): readonly number[] {
  allowed ??= parseCores(/^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0");
  return allowed;
}

/** `0-2,5` */
export function parseCores(list: string): readonly number[] {
  return list.split(",").flatMap((range) => {
    const [from = 0, to = from] = range.split("-").map(Number);
    return Array.from({ length: to - from + 1 }, (_, i) => from + i);
  });
}
