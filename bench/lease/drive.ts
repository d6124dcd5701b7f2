/** A limiter under load. */
export interface Contender {
  readonly name: string;
  /** One check for the subject with this number. */
  ask(number: number): Promise<unknown>;
  judge(answer: unknown): Verdict;
  /** How many checks the store has decided so far: a check that does not change it was decided locally. Absent: all of them. */
  readonly asked?: (() => number) | undefined;
}

/** `undecided`: the counters were unavailable. */
export type Verdict = "allowed" | "denied" | "undecided";

export interface DriveOptions {
  readonly forMs: number;
  /** The subjects of checks, in order, repeated cyclically. Their number is a power of 2. */
  readonly numbers: Int32Array;
  readonly from: number;
  /** The largest number of undecided checks. */
  readonly inFlight: number;
  /** The rate's upper bound on fast machines, so that nothing is denied. */
  readonly mostPerSecond?: number | undefined;
}

/** The result of a run. */
export interface Driven {
  readonly decisions: number;
  readonly wallMs: number;
  /** CPU time of this process, all threads. */
  readonly cpuUs: number;
  /** For one check in 64, if decided locally: how long until its promise was settled. */
  readonly localUs: readonly number[];
}

const checksPerTurn = 256;
const checksPerPiece = 64;

/**
 * Makes one check after another, like a server whose requests arrive over many connections: up to 256 in every turn of the
 * event loop, while no more than `inFlight` are undecided; at that number it waits. Between two turns the event loop reads
 * from its sockets and writes to them.
 *
 * A turn consists of pieces of 64 checks. The first of a piece runs alone, and all of its microtasks have run before the
 * next one starts, so its time can be measured.
 */
export function drive(contender: Contender, options: DriveOptions): Promise<Driven> {
  return new Promise((resolve, reject) => {
    const { forMs, numbers, from, inFlight, mostPerSecond = Number.POSITIVE_INFINITY } = options;
    const { asked } = contender;
    const mask = numbers.length - 1;
    const localUs: number[] = [];
    let next = from;
    let waiting = 0;
    let state: "running" | "resting" | "over" = "running";

    const finish = (): void => {
      state = "over";
      const { user, system } = process.cpuUsage(cpuBefore);
      resolve({ decisions: next - from, wallMs: performance.now() - startedMs, cpuUs: user + system, localUs });
    };
    const fail = (error: unknown): void => {
      state = "over";
      reject(error);
    };
    const settle = (answer: unknown): void => {
      waiting -= 1;
      if (contender.judge(answer) !== "allowed")
        fail(new Error(`${contender.name} gave an unexpected answer: ${describe(answer)}`));
      if (state !== "resting") return;
      state = "running";
      setImmediate(turn);
    };
    const askOne = (): void => {
      if (waiting >= inFlight) return;
      waiting += 1;
      contender.ask(numbers[next++ & mask]!).then(settle, fail);
    };
    const askAndTime = (): void => {
      if (asked === undefined || waiting >= inFlight) {
        askOne();
        return;
      }
      waiting += 1;
      const number = numbers[next++ & mask]!;
      const before = asked();
      const startMs = performance.now();
      const decision = contender.ask(number);
      const isLocal = asked() === before;
      decision.then((answer) => {
        if (isLocal) localUs.push((performance.now() - startMs) * 1000);
        settle(answer);
      }, fail);
    };
    const askOthers = (): void => {
      for (let i = 1; i < checksPerPiece; i++) askOne();
    };
    const turn = (): void => {
      if (state === "over") return;
      const passedMs = performance.now() - startedMs;
      if (passedMs >= forMs && waiting === 0) finish();
      else if (waiting >= inFlight) state = "resting";
      else if (passedMs >= forMs) setImmediate(turn);
      else if (next - from > (passedMs * mostPerSecond) / 1000) setTimeout(turn, 1);
      else {
        // These run in the next turn, one after the other, each with its microtasks before the next.
        for (let i = 0; i < checksPerTurn; i += checksPerPiece) {
          setImmediate(askAndTime);
          setImmediate(askOthers);
        }
        setImmediate(turn);
      }
    };

    const cpuBefore = process.cpuUsage();
    const startedMs = performance.now();
    turn();
  });
}

function describe(answer: unknown): string {
  return JSON.stringify(answer) ?? String(answer);
}
