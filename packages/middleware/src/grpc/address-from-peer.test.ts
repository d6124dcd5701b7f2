import { expect, it } from "vitest";
import { addressFromPeer } from "./address-from-peer.ts";

it.each([
  ["203.0.113.7:50051", "203.0.113.7"],
  ["::1:8080", "::1"],
  ["2001:db8::1:65535", "2001:db8::1"],
  ["::ffff:203.0.113.7:1", "::ffff:203.0.113.7"],
  ["unknown", undefined],
])("finds the address of %s", (peer, address) => {
  expect(addressFromPeer(peer)).toBe(address);
});
