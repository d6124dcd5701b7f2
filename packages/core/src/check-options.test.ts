import { describe, expect, it } from "vitest";
import { checkOptions, type OptionForms } from "./check-options.ts";
import { ManualClock } from "./clock.ts";
import { MemoryCounters } from "./counters/memory-counters.ts";
import { createLimiter } from "./create-limiter.ts";
import { type SluiceError, SluiceError as SluiceErrorClass } from "./errors.ts";
import { LeasedCounters } from "./leases/leased-counters.ts";
import { limit } from "./limit.ts";

/** As an app in plain JavaScript calls it, without a compiler. */
const unchecked = (call: (...args: never[]) => unknown, ...args: unknown[]): (() => unknown) => {
  return () => Reflect.apply(call, undefined, args);
};

function catchError(call: () => unknown): SluiceError {
  try {
    call();
  } catch (error) {
    if (error instanceof SluiceErrorClass) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("options in plain JavaScript", () => {
  it.each([
    [{ policis: {} }, /^policis is not an option of createLimiter; did you mean policies\?$/],
    [{ windowMs: 60_000, max: 5 }, /^windowMs is not an option .* limit\("100\/m"\)\.by\("user"\); max is not/],
    [{ limits: [{ by: "ip", windows: "1/s" }] }, /^limits is not an option .* limits belong to a policy/],
    [{ colour: "red" }, /^colour is not an option of createLimiter; its options are policies, counters, /],
    [{ policies: "policies.yaml" }, /^policies must be an object .* policyFile\(path\) .*, but is "policies\.yaml"$/],
    [{ policies: [{ id: "api" }] }, /^policies must be an object such as \{ policies: .*, but is a list$/],
    [{ policies: null }, /^policies must be an object/],
    [{ counters: "redis://127.0.0.1" }, /^counters must be a counter store, such as redis\(url\)/],
    [{ clock: Date }, /^clock must be an object with nowMs\(\) and epochMs\(\)/],
    [{ subjects: [] }, /^subjects must be a subject directory/],
    [{ previewCacheMs: "50" }, /^previewCacheMs must be a number from 0 to 50, but is "50"$/],
    [{ previewCacheMs: -1 }, /^previewCacheMs must be/],
    [{ previewCacheMs: 51 }, /^previewCacheMs must be a number from 0 to 50, but is 51$/],
    [{ onTrial: true }, /^onTrial must be a function/],
    [{ onPreviewHit: 1 }, /^onPreviewHit must be a function/],
    ["10/s", /^the options of createLimiter must be an object, but is "10\/s"$/],
    [null, /^the options of createLimiter must be an object/],
  ])("createLimiter refuses %j", (options, message) => {
    expect(unchecked(createLimiter, options)).toThrow(message);
    expect(catchError(unchecked(createLimiter, options)).code).toBe("invalid_policies");
  });

  it("treats undefined as absent", () => {
    expect(unchecked(createLimiter, { policies: undefined, nonsense: undefined })).not.toThrow();
  });

  it("names every problem, as data too, but not every key of something that is not options at all", () => {
    const { problems } = catchError(unchecked(createLimiter, { clok: 1, onTrial: 2 }));
    expect(problems.map(({ path }) => path)).toEqual([["clok"], ["onTrial"]]);
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`key${i}`, i]));
    expect(catchError(unchecked(createLimiter, many)).problems).toHaveLength(5);
  });

  it.each([
    [["10/x"], /windows: /],
    [["10/s", { algorithm: "gcrra" }], /algorithm: must be one of .* did you mean gcra\?/],
    [["10/s burst 5", { algorithm: "fixed_window" }], /windows\[0\]\.burst: does not belong to fixed_window/],
    [["10/s", { onFailure: "opne" }], /onFailure: must be one of .*did you mean open\?/],
    [["10/s", { blockFor: 5 }], /blockFor: /],
    [["10/s", { name: "no spaces!" }], /name: /],
    [["10/s", { burst: 5 }], /^burst is not an option of limit; it belongs to the window: limit\("10\/s burst 20"\)$/],
    [["10/s", { by: "user" }], /^by is not an option of limit; write limit\("10\/s"\)\.by\("user"\)$/],
    [["10/s", { nmae: "api" }], /^nmae is not an option of limit; did you mean name\?$/],
    [["10/s", { counters: {} }], /^counters must be a counter store/],
    [["10/s", "user"], /^the options of limit must be an object/],
    [[undefined], /windows: /],
    [[{ windowMs: 1000, max: 1 }], /windows\.windowMs: is not a known key/],
  ])("limit(...%j) is refused before by is called", (args, message) => {
    expect(unchecked(limit, ...args)).toThrow(message);
    expect(catchError(unchecked(limit, ...args)).code).toBe("invalid_policies");
  });

  it("refuses a limit that counts by nothing, and one by a list", () => {
    const perMinute = limit("10/m");
    expect(unchecked(perMinute.by)).toThrow(/^by must be given the names of dimensions, as in \.by\("user"\)/);
    expect(unchecked(perMinute.by, ["user"])).toThrow(/^by must be given the names .*, but was given a list$/);
  });

  it("refuses a subject that is absent, which would share one counter with all others", async () => {
    const perUser = limit("10/m").by("user");
    const wrong = [undefined, null, 42, {}, { usr: "ada" }, { user: undefined }];
    for (const subject of wrong) {
      expect(unchecked(perUser.checkSync, subject), String(subject)).toThrow(/^dimensions must /);
      await expect(perUser.check(subject as never)).rejects.toMatchObject({ code: "invalid_request" });
    }
    expect(perUser.checkSync({ user: "ada" }).remaining).toBe(9);
  });

  it("counts by the subject, whichever dimensions it is known by", () => {
    const perSubject = limit("10/m").by("subject");
    expect(perSubject.checkSync("ada").remaining).toBe(9);
    const signedIn = { user: "ada", ip: "192.0.2.1" };
    expect(unchecked(perSubject.checkSync, signedIn)()).toMatchObject({ remaining: 9 });
    expect(unchecked(perSubject.checkSync, signedIn)()).toMatchObject({ remaining: 8 });
    expect(unchecked(perSubject.checkSync, { ip: "192.0.2.1" })()).toMatchObject({ remaining: 9 });
  });

  it("refuses those of counters", () => {
    expect(() => new MemoryCounters({ maxCounter: 5 } as never)).toThrow(
      /^maxCounter is not .* did you mean maxCounters\?$/,
    );
    expect(() => new MemoryCounters({ maxBytes: "1MB" } as never)).toThrow(/^maxBytes must be a number/);
    const memory = new MemoryCounters({ clock: new ManualClock() });
    expect(() => new LeasedCounters(memory, { refreshMS: 5 } as never)).toThrow(/did you mean refreshMs\?$/);
    expect(() => new LeasedCounters(memory, { leasing: "yes" } as never)).toThrow(/^leasing must be true or false/);
  });

  it("keeps a secret out of its message", () => {
    const forms: OptionForms<{ password: string }> = {
      password: { holds: (value) => typeof value === "string", wanted: "a text", secret: true },
    };
    const call = { name: "connect", code: "invalid_request" } as const;
    expect(() => checkOptions({ password: 1234 as never }, forms, call)).toThrow(/^password must be a text$/);
  });
});
