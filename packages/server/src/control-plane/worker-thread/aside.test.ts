import { SluiceError } from "sluice";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type Aside, type AsideOptions, createAside } from "./aside.ts";

const opened: Aside[] = [];

afterEach(() => Promise.all(opened.splice(0).map((aside) => aside.close())));

function open(options: AsideOptions = {}): Aside {
  const aside = createAside(options);
  opened.push(aside);
  return aside;
}

async function refusalOf(work: Promise<unknown>): Promise<SluiceError> {
  const error = await work.then(
    () => new Error("it was not refused"),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(SluiceError);
  return error as SluiceError;
}

/** Takes a tenth of a second to parse, and hundreds of megabytes in the millions. */
const dashes = (count: number): string => "- - a\n".repeat(count);

describe("work beside this thread", () => {
  it("comes to what it would come to here, and leaves this thread free meanwhile", async () => {
    const aside = open();
    let turns = 0;
    const turn = setInterval(() => turns++, 0);
    expect(await aside.run("readYaml", { text: dashes(2) }, "a")).toEqual([["a"], ["a"]]);
    const before = turns;
    await aside.run("readYaml", { text: dashes(10_000) }, "a");
    clearInterval(turn);
    expect(turns - before).toBeGreaterThan(2);
  });

  it("tells what is wrong, by code and place", async () => {
    const error = await refusalOf(open().run("readYaml", { text: "a: 1\nb: [" }, "a"));
    expect(error.code).toBe("invalid_request");
    expect(error.problems[0]?.place).toMatchObject({ line: 2 });
  });

  it("is refused beyond a number of jobs, of one caller and of all, until some are done", async () => {
    const aside = open({ maxJobs: 3, maxJobsOfOne: 2 });
    const run = (who: string) => aside.run("readYaml", { text: "a: 1" }, who);
    const running = [run("a"), run("a"), run("b")];
    for (const [who, said] of [
      ["a", "2 large requests of a are"],
      ["c", "3 large requests are"],
    ] as const) {
      const error = await refusalOf(run(who));
      expect([error.code, error.message]).toEqual(["overloaded", expect.stringContaining(said)]);
    }
    await Promise.all(running);
    await run("a");
  });

  it("ends with its thread where it takes too long, and the next job has another", async () => {
    const aside = open({ withinMs: 2_000 });
    const error = await refusalOf(aside.run("readYaml", { text: dashes(600_000) }, "a"));
    expect([error.code, error.message]).toEqual(["invalid_request", expect.stringContaining("more than 2 s")]);
    // On a busy machine another thread may take as long to start.
    await vi.waitFor(async () => expect(await aside.run("readYaml", { text: "a: 1" }, "b")).toEqual({ a: 1 }), 15_000);
  });

  it("ends with its thread where it takes too much memory, and nothing else does", async () => {
    const aside = open({ maxMemoryMb: 64 });
    const error = await refusalOf(aside.run("readYaml", { text: dashes(600_000) }, "a"));
    expect([error.code, error.message]).toEqual(["invalid_request", expect.stringContaining("64 MB of memory")]);
    expect(await aside.run("readYaml", { text: "a: 1" }, "a")).toEqual({ a: 1 });
  });

  it("is refused once it is closed, and so is what waits then", async () => {
    const aside = open();
    const waiting = [1, 2].map(() => refusalOf(aside.run("readYaml", { text: "a: 1" }, "a")));
    await aside.close();
    for (const error of await Promise.all(waiting)) expect(error.code).toBe("overloaded");
    expect(await refusalOf(aside.run("readYaml", { text: "a: 1" }, "a"))).toMatchObject({ code: "overloaded" });
  });
});
