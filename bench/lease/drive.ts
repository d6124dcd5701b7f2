/** Something that decides, and is driven. */
export interface Contender {
  readonly name: string;
  /** One check for the subject of this number. */
  ask(number: number): Promise<unknown>;
  verdictOf(answer: unknown): Verdict;
  /** How many checks the store was asked to decide so far: one that leaves this as it was is decided here. Absent: all of them. */
  readonly asked?: (() => number) | undefined;
}

/** `undecided`: the counters could not be asked. */
export type Verdict = "allowed" | "denied" | "undecided";

export interface DriveOptions {
  readonly forMs: number;
  /** Who asks, in order, again from the beginning after the end. As many as a power of 2. */
  readonly numbers: Int32Array;
  readonly from: number;
  /** Checks that wait for their decision at most. */
  readonly inFlight: number;
  /** No more than this, where the machine is that fast: nothing is to be denied. */
  readonly mostPerSecond?: number | undefined;
}

/** What driving came to. */
export interface Driven {
  readonly decisions: number;
  readonly wallMs: number;
  /** Processor time of this process, all threads. */
  readonly cpuUs: number;
  /** Of one check in 64, where it was decided here: how long until its promise was settled. */
  readonly localUs: readonly number[];
}

const checksPerTurn = 256;
const checksPerPiece = 64;

/**
 * Asks for one check after another, as a server does whose requests come over many connections: in every turn of the event loop up to
 * 256 of them, while no more than `inFlight` wait for their decision; where so many wait, it waits too. Between two turns the
 * event loop reads from its sockets and writes to them.
 *
 * A turn is made of pieces of 64 checks. The first of a piece is asked alone, and everything that it set off has run before the
 * next: the time around it is its own.
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
      if (contender.verdictOf(answer) !== "allowed")
        fail(new Error(`${contender.name} answered as it should not: ${tell(answer)}`));
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
        // What is asked for here runs in the next turn, one after the other, and what each sets off before the next.
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

function tell(answer: unknown): string {
  return JSON.stringify(answer) ?? String(answer);
}
