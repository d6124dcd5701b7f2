import { forbidden, notFound, permanentRedirect, redirect } from "next/navigation.js";
import { expect, it } from "vitest";
import { statusFromThrown } from "./status-from-thrown.ts";

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
])("knows the status of Next's answer after %s", (_name, act, status) => {
  expect(statusFromThrown(thrownBy(act))).toBe(status);
});

it("knows the status of Next's answer after forbidden(), if that is enabled", () => {
  process.env.__NEXT_EXPERIMENTAL_AUTH_INTERRUPTS = "true";
  expect(statusFromThrown(thrownBy(forbidden))).toBe(403);
  delete process.env.__NEXT_EXPERIMENTAL_AUTH_INTERRUPTS;
});
