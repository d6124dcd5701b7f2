import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { type HangUp, mindEarlySignals } from "./early-signals.ts";

function minded(hangUp: HangUp): {
  world: EventEmitter;
  stops: () => number;
  signals: ReturnType<typeof mindEarlySignals>;
} {
  const world = new EventEmitter();
  let stopped = 0;
  const signals = mindEarlySignals(world, hangUp, () => stopped++);
  return { world, stops: () => stopped, signals };
}

describe("signals without a listener yet", () => {
  it("stop, except for SIGHUP if it means to reload", () => {
    const { world, stops } = minded("reload");
    expect(world.emit("SIGHUP")).toBe(true);
    expect(stops()).toBe(0);
    world.emit("SIGTERM");
    world.emit("SIGINT");
    expect(stops()).toBe(2);
  });

  it("stop on SIGHUP as well if the terminal is gone", () => {
    const { world, stops } = minded("stop");
    world.emit("SIGHUP");
    expect(stops()).toBe(1);
  });

  it("are handed over to the first listener", () => {
    const { world, stops, signals } = minded("reload");
    let heard = 0;
    const listener = (): number => heard++;
    signals.on("SIGTERM", listener);
    world.emit("SIGTERM");
    expect([heard, stops()]).toEqual([1, 0]);
    signals.off("SIGTERM", listener);
    expect(world.listenerCount("SIGTERM")).toBe(0);
  });
});
