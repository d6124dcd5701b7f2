import { describe, expect, it } from "vitest";
import { Deadlines, Flight, type Line, mayRepeat, type Peer, type PendingQuestion, retryAtMs } from "./deadlines.ts";

class Asked implements PendingQuestion {
  readonly startMs: number;
  readonly patienceMs: number;
  expiresMs: number;
  retryMs: number;
  excusedMs = 0;
  repeats = 0;
  settled = false;

  constructor(startMs: number, patienceMs: number, repeatable: boolean) {
    this.startMs = startMs;
    this.patienceMs = patienceMs;
    this.expiresMs = startMs + patienceMs;
    this.retryMs = retryAtMs(repeatable, startMs, patienceMs);
  }
}

/** A line that sends everything at the end of a turn, in time that passes when a test says so. */
function setUp() {
  let nowMs = 0;
  let timer: { readonly atMs: number; readonly wake: () => void } | undefined;
  let soon: (() => void)[] = [];
  let waiting: Asked[] = [];
  const log: string[] = [];
  const peer = { isHeard: false, fail: () => void log.push("blamed") };
  const line: Line<Asked, Flight<Asked, Peer>> = {
    waiting: {
      [Symbol.iterator]: () => waiting[Symbol.iterator](),
    },
    endTurn: () => send(),
    expire: (late) => {
      for (const pending of late) pending.settled = true;
      if (late.size > 0) log.push(`gave up ${late.size}`);
      waiting = waiting.filter(({ settled }) => !settled);
    },
    mayRetry: () => true,
    retry: (pendings) => {
      log.push(`asked ${pendings.length} again`);
      waiting.push(...pendings);
      send();
    },
    release: (_, starved) => void log.push(starved ? "released, starved" : "released"),
    wake: () => void log.push("woken"),
    abandon: () => void log.push("abandoned"),
  };
  const deadlines = new Deadlines(
    {
      nowMs: () => nowMs,
      schedule: (waitMs, wake) => {
        expect(timer).toBeUndefined();
        timer = { atMs: nowMs + waitMs, wake };
        return () => {
          timer = undefined;
        };
      },
      soon: (act) => void soon.push(act),
    },
    line,
  );

  function send(): void {
    const pendings = waiting.splice(0);
    const patienceMs = Math.min(...pendings.map((one) => one.patienceMs));
    deadlines.addFlight(new Flight(peer, 0, pendings, patienceMs, nowMs));
    log.push(`sent ${pendings.length}`);
  }

  function endTurn(): void {
    const acts = soon;
    soon = [];
    for (const act of acts) act();
  }

  return {
    deadlines,
    log,
    peer,
    ask(patienceMs: number, repeatable = false): Asked {
      const asked = new Asked(deadlines.arrivalMs, patienceMs, repeatable);
      waiting.push(asked);
      deadlines.endTurnSoon(asked.startMs);
      deadlines.watch(Math.min(asked.expiresMs, asked.retryMs), asked.startMs);
      return asked;
    },
    endTurn,
    /** Time passes; this process runs only at its end if `atOnce`. */
    pass(ms: number, atOnce = false): void {
      const untilMs = nowMs + ms;
      nowMs = atOnce ? untilMs : nowMs;
      for (let due = timer; due !== undefined && due.atMs <= untilMs; due = timer) {
        nowMs = Math.max(nowMs, due.atMs);
        timer = undefined;
        due.wake();
        if (!atOnce) endTurn();
      }
      nowMs = untilMs;
    },
    get timerMs(): number | undefined {
      return timer?.atMs;
    },
  };
}

describe("questions of one line", () => {
  it("arrive at one moment and are sent together if they come in one turn of the event loop", () => {
    const { ask, endTurn, pass, log } = setUp();
    const one = ask(25);
    pass(2);
    const other = ask(25);
    expect(other.startMs).toBe(one.startMs);
    endTurn();
    expect(log).toEqual(["sent 2"]);
  });

  it("are watched over by one timer, set for the first deadline", () => {
    const line = setUp();
    line.ask(100);
    line.ask(25);
    line.ask(50);
    expect(line.timerMs).toBe(25);
  });

  it("are given up at their deadline, and the server that left them unanswered is blamed", () => {
    const { ask, endTurn, pass, log, deadlines } = setUp();
    ask(25);
    endTurn();
    pass(24);
    expect(log).toEqual(["sent 1"]);
    pass(1);
    expect(log).toEqual(["sent 1", "gave up 1", "released", "blamed", "woken", "abandoned"]);
    expect(deadlines.flights).toEqual([]);
  });

  it("are not given up before answers that have arrived are read", () => {
    const { ask, endTurn, pass, log, deadlines } = setUp();
    const asked = ask(25);
    endTurn();
    pass(25, true);
    const [flight] = deadlines.flights;
    asked.settled = true;
    deadlines.removeFlight(flight!);
    endTurn();
    expect(log).toEqual(["sent 1"]);
  });

  it("outlive a flight that is overdue if their callers have more patience", () => {
    const { ask, endTurn, pass, log, deadlines } = setUp();
    ask(25);
    const patient = ask(100);
    endTurn();
    pass(25);
    expect(log).toEqual(["sent 2", "gave up 1", "released", "blamed", "woken"]);
    expect(deadlines.flights).toHaveLength(1);
    expect(patient.settled).toBe(false);
    pass(75);
    expect(log.slice(5)).toEqual(["gave up 1", "abandoned"]);
  });

  it("are asked again once, after the first attempt's share of the time, if they are repeatable", () => {
    const { ask, endTurn, pass, log } = setUp();
    ask(100, true);
    endTurn();
    pass(59);
    expect(log).toEqual(["sent 1"]);
    pass(40);
    expect(log).toEqual(["sent 1", "asked 1 again", "sent 1"]);
  });

  it("are excused for as long as this process did not run, and a server that answers is not blamed", () => {
    const { ask, endTurn, pass, log, peer } = setUp();
    peer.isHeard = true;
    const asked = ask(25);
    endTurn();
    pass(200, true);
    endTurn();
    expect(asked.settled).toBe(false);
    expect(asked.expiresMs).toBeGreaterThanOrEqual(212);
    pass(25);
    expect(log).toEqual(["sent 1", "gave up 1", "released, starved", "woken", "abandoned"]);
  });

  it("may be repeated until their time is up, twenty times at most", () => {
    const asked = new Asked(0, 25, true);
    expect(mayRepeat(asked, 25)).toBe(false);
    for (let i = 2; i <= 20; i++) expect(mayRepeat(asked, 24)).toBe(true);
    expect(mayRepeat(asked, 24)).toBe(false);
  });
});

describe("a line that is closed", () => {
  it("is not called, and leaves no timer behind", () => {
    const line = setUp();
    line.ask(25);
    line.deadlines.close();
    line.endTurn();
    expect(line.timerMs).toBeUndefined();
    expect(line.log).toEqual([]);
  });
});
