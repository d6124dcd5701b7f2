import { median } from "./interleave.ts";

/** Makes checks that are answered later, such as on counters on a server. */
export interface Asker {
  readonly name: string;
  /** Makes the checks that `work` yields, one after the other, until there are no more. */
  loop(work: Work): Promise<void>;
}

/** The numbers of checks to make, shared by all running loops. */
export interface Work {
  next: number;
  more: boolean;
  readonly last: number;
}

/** A server whose CPU time is measured. */
export interface MeteredServer {
  command(...args: readonly string[]): Promise<unknown>;
}

/** The result of one round. */
export interface ServerRound {
  readonly checks: number;
  readonly wallMs: number;
  /** CPU time of this process, all threads, and of all servers together. */
  readonly nodeUs: number;
  readonly serverUs: number;
}

export type ServerRounds = ReadonlyMap<string, readonly ServerRound[]>;

/** An asker from a function; an answer that is not `expected` ends the run. */
export function createAsker<Answer>(
  name: string,
  ask: (number: number) => Promise<Answer>,
  expected: (answer: Answer, number: number) => boolean,
): Asker {
  return {
    name,
    async loop(work) {
      while (work.more && work.next < work.last) {
        const number = work.next++;
        const answer = await ask(number);
        if (!expected(answer, number))
          throw new Error(`${name} gave check ${number} an unexpected answer: ${JSON.stringify(answer)}`);
      }
    },
  };
}

/** Makes the checks from one number to another, several at a time. */
export async function askThrough(asker: Asker, from: number, to: number, inFlight: number): Promise<void> {
  await runLoops(asker, { next: from, more: true, last: to }, inFlight);
}

/**
 * Measures askers in turns, many short rounds of equal length each, so that other load on the machine affects all of them
 * equally. Checks are numbered from `from` through all rounds. The first rounds warm up and are not counted.
 */
export async function interleaveOnServers(
  askers: readonly Asker[],
  servers: readonly MeteredServer[],
  options: { rounds: number; warmup: number; roundMs: number; inFlight: number; from: number },
): Promise<ServerRounds> {
  const { rounds, warmup, roundMs, inFlight, from } = options;
  const results = new Map<string, ServerRound[]>(askers.map(({ name }) => [name, []]));
  const nexts = askers.map(() => from);
  for (let round = 0; round < warmup + rounds; round++) {
    for (const [i, asker] of askers.entries()) {
      const work: Work = { next: nexts[i]!, more: true, last: Number.POSITIVE_INFINITY };
      const serverBeforeUs = await serversCpuUs(servers);
      const nodeBefore = process.cpuUsage();
      const startedMs = performance.now();
      const timer = setTimeout(() => {
        work.more = false;
      }, roundMs);
      try {
        await runLoops(asker, work, inFlight);
      } finally {
        clearTimeout(timer);
      }
      const wallMs = performance.now() - startedMs;
      const { user, system } = process.cpuUsage(nodeBefore);
      const serverUs = (await serversCpuUs(servers)) - serverBeforeUs;
      const checks = work.next - nexts[i]!;
      nexts[i] = work.next;
      if (round >= warmup) results.get(asker.name)!.push({ checks, wallMs, nodeUs: user + system, serverUs });
    }
  }
  return results;
}

async function runLoops(asker: Asker, work: Work, inFlight: number): Promise<void> {
  try {
    await Promise.all(Array.from({ length: inFlight }, () => asker.loop(work)));
  } finally {
    work.more = false;
  }
}

/** CPU time that servers have used since they started, system and user, as each of them reports it. */
export async function serversCpuUs(servers: readonly MeteredServer[]): Promise<number> {
  const infos = await Promise.all(servers.map((server) => server.command("INFO", "cpu")));
  let seconds = 0;
  for (const info of infos) {
    for (const [, used] of String(info).matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)) seconds += Number(used);
  }
  return seconds * 1e6;
}

export const perSecond = ({ checks, wallMs }: ServerRound): number => (checks / wallMs) * 1000;
export const nodeUsPerCheck = ({ checks, nodeUs }: ServerRound): number => nodeUs / checks;
export const serverUsPerCheck = ({ checks, serverUs }: ServerRound): number => serverUs / checks;

/** The median over rounds. */
export function findMedian(rounds: ServerRounds, name: string, quantity: (round: ServerRound) => number): number {
  return median(rounds.get(name)!.map(quantity));
}

/** The ratio to another's quantity: the median of the ratios of their rounds. */
export function medianRatio(
  rounds: ServerRounds,
  name: string,
  than: string,
  quantity: (round: ServerRound) => number,
): number {
  const theirs = rounds.get(than)!;
  return median(rounds.get(name)!.map((round, i) => quantity(round) / quantity(theirs[i]!)));
}
