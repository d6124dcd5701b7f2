import { expect, it } from "vitest";
import { HeldBytes, type Holding } from "./held-bytes.ts";

function open(held: HeldBytes, closed: string[], name: string): Holding {
  return held.hold("http", () => closed.push(name));
}

it("closes the connections that have held something for longest, and no more of them than needed", () => {
  const told: string[] = [];
  const held = new HeldBytes(1_000, (protocol) => told.push(protocol));
  const closed: string[] = [];
  const [first, second, third] = ["first", "second", "third"].map((name) => open(held, closed, name));
  second!.bytes = 400;
  first!.bytes = 400;
  third!.bytes = 200;
  expect([closed, held.total]).toEqual([[], 1_000]);
  third!.bytes = 400;
  expect([closed, held.total, told]).toEqual([["second"], 800, ["http"]]);
});

it("takes a connection that was done in between for one that has only begun", () => {
  const held = new HeldBytes(1_000);
  const closed: string[] = [];
  const healthy = open(held, closed, "healthy");
  const stuck = open(held, closed, "stuck");
  healthy.bytes = 500;
  stuck.bytes = 500;
  healthy.bytes = 0;
  healthy.bytes = 600;
  expect([closed, held.total]).toEqual([["stuck"], 600]);
});

it("spares a client that holds little, however long, because closing it frees nothing", () => {
  const held = new HeldBytes(1_000);
  const closed: string[] = [];
  for (let i = 0; i < 10; i++) open(held, closed, `small ${i}`).bytes = 10;
  for (let i = 0; i < 20; i++) open(held, closed, `large ${i}`).bytes = 100;
  expect(closed).toEqual(Array.from({ length: 11 }, (_, i) => `large ${i}`));
  expect(held.total).toBe(1_000);
});
