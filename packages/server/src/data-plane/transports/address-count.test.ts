import { expect, it } from "vitest";
import { AddressCount } from "./address-count.ts";

it("counts IPv4 by address, however it is written, and IPv6 by networks of 64 bits", () => {
  const count = new AddressCount(2);
  count.enter("10.0.0.1");
  const leave = count.enter("::ffff:10.0.0.1");
  count.enter("2001:db8:1:2::1");
  count.enter("2001:db8:1:2:3:4:5:6");
  const full = ["10.0.0.1", "10.0.0.2", "2001:db8:1:2::9", "2001:db8:1:3::1"].map((address) => count.isFull(address));
  expect(full).toEqual([true, false, true, false]);
  leave();
  expect(count.isFull("10.0.0.1")).toBe(false);
});

it("counts nothing that has no address", () => {
  const count = new AddressCount(1);
  count.enter(undefined);
  expect(count.isFull(undefined)).toBe(false);
});
