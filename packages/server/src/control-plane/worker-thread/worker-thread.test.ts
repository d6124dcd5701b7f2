import { SluiceError } from "sluice";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createWorkerThread, type WorkerThread, type WorkerThreadOptions } from "./worker-thread.ts";

const opened: WorkerThread[] = [];

afterEach(() => Promise.all(opened.splice(0).map((thread) => thread.close())));

function open(options: WorkerThreadOptions = {}): WorkerThread {
  const thread = createWorkerThread(options);
  opened.push(thread);
  return thread;
}

async function catchRefusal(work: Promise<unknown>): Promise<SluiceError> {
  const error = await work.then(
    () => new Error("it was not refused"),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(SluiceError);
  return error as SluiceError;
}

/** Takes a tenth of a second to parse, and hundreds of megabytes for millions. */
const dashes = (count: number): string => "- - a\n".repeat(count);

describe("work in another thread", () => {
  it("returns what it would return here, and leaves this thread free meanwhile", async () => {
    const thread = open();
    let turns = 0;
    const turn = setInterval(() => turns++, 0);
    expect(await thread.run("readYaml", { text: dashes(2) }, "a")).toEqual([["a"], ["a"]]);
    // A job on this thread would never leave it three turns. On a busy machine a job on another may not either, once.
    await expect
      .poll(async () => {
        const before = turns;
        await thread.run("readYaml", { text: dashes(10_000) }, "a");
        return turns - before;
      })
      .toBeGreaterThan(2);
    clearInterval(turn);
  });

  it("reports what is wrong, by code and place", async () => {
    const error = await catchRefusal(open().run("readYaml", { text: "a: 1\nb: [" }, "a"));
    expect(error.code).toBe("invalid_request");
    expect(error.problems[0]?.place).toMatchObject({ line: 2 });
  });

  it("is refused beyond a number of jobs, per caller and in total, until some are done", async () => {
    const thread = open({ maxJobs: 3, maxJobsOfOne: 2 });
    const run = (who: string) => thread.run("readYaml", { text: "a: 1" }, who);
    const running = [run("a"), run("a"), run("b")];
    for (const [who, said] of [
      ["a", "2 large requests of a are"],
      ["c", "3 large requests are"],
    ] as const) {
      const error = await catchRefusal(run(who));
      expect([error.code, error.message]).toEqual(["overloaded", expect.stringContaining(said)]);
    }
    await Promise.all(running);
    await run("a");
  });

  it("ends with its thread if it takes too long, and the next job gets another", async () => {
    const thread = open({ withinMs: 2_000 });
    const error = await catchRefusal(thread.run("readYaml", { text: dashes(600_000) }, "a"));
    expect([error.code, error.message]).toEqual(["invalid_request", expect.stringContaining("more than 2 s")]);
    // On a busy machine another thread may take as long to start.
    await vi.waitFor(async () => expect(await thread.run("readYaml", { text: "a: 1" }, "b")).toEqual({ a: 1 }), 15_000);
  });

  it("ends with its thread if it takes too much memory, and nothing else does", async () => {
    const thread = open({ maxMemoryMb: 64 });
    const error = await catchRefusal(thread.run("readYaml", { text: dashes(600_000) }, "a"));
    expect([error.code, error.message]).toEqual(["invalid_request", expect.stringContaining("64 MB of memory")]);
    expect(await thread.run("readYaml", { text: "a: 1" }, "a")).toEqual({ a: 1 });
  });

  it("is refused once it is closed, along with waiting jobs", async () => {
    const thread = open();
    const waiting = [1, 2].map(() => catchRefusal(thread.run("readYaml", { text: "a: 1" }, "a")));
    await thread.close();
    for (const error of await Promise.all(waiting)) expect(error.code).toBe("overloaded");
    expect(await catchRefusal(thread.run("readYaml", { text: "a: 1" }, "a"))).toMatchObject({ code: "overloaded" });
  });
});
