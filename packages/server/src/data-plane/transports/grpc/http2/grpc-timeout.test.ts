import { describe, expect, it } from "vitest";
import { parseGrpcTimeout } from "./grpc-timeout.ts";

describe("grpc-timeout", () => {
  it("is read in every unit", () => {
    const read = ["2H", "3M", "4S", "500m", "20000u", "99999999n"].map(parseGrpcTimeout);
    expect(read).toEqual([7_200_000, 180_000, 4_000, 500, 20, expect.closeTo(99.999999)]);
  });

  it("is over at once if it is shorter than anything takes", () => {
    expect(["0S", "1n", "5u"].map(parseGrpcTimeout)).toEqual([0, 0, 0]);
  });

  it("is refused if it is malformed", () => {
    for (const text of ["", "S", "1", "1s", "1.5S", "-1S", "123456789S", " 1S", "1S ", "soon"])
      expect(parseGrpcTimeout(text), text).toBeUndefined();
  });
});
