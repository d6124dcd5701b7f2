import { forbidden, notFound, permanentRedirect, redirect } from "next/navigation.js";
import { expect, it } from "vitest";
import { statusOfThrown } from "./status-of-thrown.ts";

function thrownBy(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return error;
  }
}

it.each([
  ["redirect()", () => redirect("/a;b;308;"), 307],
  ["permanentRedirect()", () => permanentRedirect("/a\nb"), 308],
  ["notFound()", notFound, 404],
  ["an error", () => new Error("NEXT_REDIRECT;replace;/;307;"), 500],
  ["an error with another digest", () => Object.assign(new Error("a"), { digest: "123" }), 500],
  ["a text", () => "NEXT_REDIRECT;replace;/;307;", 500],
  ["nothing", () => undefined, 500],
])("knows what Next answers after %s", (_name, act, status) => {
  expect(statusOfThrown(thrownBy(act))).toBe(status);
});

it("knows what Next answers after forbidden(), where that is switched on", () => {
  process.env.__NEXT_EXPERIMENTAL_AUTH_INTERRUPTS = "true";
  expect(statusOfThrown(thrownBy(forbidden))).toBe(403);
  delete process.env.__NEXT_EXPERIMENTAL_AUTH_INTERRUPTS;
});
