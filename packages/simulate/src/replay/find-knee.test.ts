import { expect, it } from "vitest";
import { findKnee } from "./find-knee.ts";

const curve = (...ys: readonly number[]): { x: number; y: number }[] => ys.map((y, x) => ({ x, y }));

it("finds where a falling curve stops falling steeply", () => {
  expect(findKnee(curve(100, 50, 10, 8, 6, 4))).toBe(2);
  expect(findKnee(curve(100, 0, 0, 0))).toBe(1);
});

it("finds none where nothing falls, or everything falls evenly", () => {
  expect(findKnee([])).toBeUndefined();
  expect(findKnee(curve(5))).toBeUndefined();
  expect(findKnee(curve(0, 0, 0))).toBeUndefined();
  expect(findKnee(curve(3, 2, 1, 0))).toBeUndefined();
});
