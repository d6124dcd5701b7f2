import { status } from "@grpc/grpc-js";
import { BadRequest, ErrorInfo, Status } from "@sluice/protocol/status";
import { type ErrorCode, SluiceError, StoreUnavailable } from "sluice";
import { errorCodes } from "sluice/internal";
import { describe, expect, it } from "vitest";
import { VersionConflict } from "../../service/version-conflict.ts";
import { DeadlineOver, isOurs, renderStatus } from "./errors.ts";

const foreseen: Readonly<Record<ErrorCode, keyof typeof status>> = {
  invalid_request: "INVALID_ARGUMENT",
  invalid_policies: "INVALID_ARGUMENT",
  policy_not_found: "NOT_FOUND",
  idempotency_conflict: "FAILED_PRECONDITION",
  not_local: "INTERNAL",
  not_leasable: "FAILED_PRECONDITION",
  not_holdable: "FAILED_PRECONDITION",
  body_too_large: "RESOURCE_EXHAUSTED",
  not_found: "UNIMPLEMENTED",
  resource_not_found: "NOT_FOUND",
  version_conflict: "ABORTED",
  already_exists: "ALREADY_EXISTS",
  rate_limited: "RESOURCE_EXHAUSTED",
  unauthenticated: "UNAUTHENTICATED",
  permission_denied: "PERMISSION_DENIED",
  not_ready: "UNAVAILABLE",
  overloaded: "UNAVAILABLE",
  store_unavailable: "UNAVAILABLE",
  policy_store_unavailable: "UNAVAILABLE",
  internal: "INTERNAL",
};

describe("an error as a status", () => {
  it("has the status of its code, which a trailer names", () => {
    for (const code of errorCodes) {
      const { code: told, metadata } = renderStatus(new SluiceError(code, "why"));
      expect([code, status[told]]).toEqual([code, foreseen[code]]);
      if (foreseen[code] !== "INTERNAL") expect(metadata.get("sluice-code")).toEqual([code]);
    }
  });

  it("tells the version that there is, where the caller saw another", () => {
    const { metadata } = renderStatus(new VersionConflict("policy p", 1, 3));
    const { details } = Status.decode(metadata.get("grpc-status-details-bin")[0] as Buffer);
    expect(ErrorInfo.decode(details[0]!.value).metadata).toEqual({ current_version: "3" });
  });

  it("names every field that is wrong, in words and in details that programs read", () => {
    const problems = [{ path: ["dimensions", "ip"], message: "must be an IP address" }];
    const { details, metadata } = renderStatus(new SluiceError("invalid_request", "dimensions.ip must be …", problems));
    expect(details).toBe("dimensions.ip must be …");
    const told = Status.decode(metadata.get("grpc-status-details-bin")[0] as Buffer);
    expect([told.code, told.message]).toEqual([status.INVALID_ARGUMENT, details]);
    expect(told.details.map(({ typeUrl }) => typeUrl)).toEqual([
      "type.googleapis.com/google.rpc.ErrorInfo",
      "type.googleapis.com/google.rpc.BadRequest",
    ]);
    expect(ErrorInfo.decode(told.details[0]!.value)).toMatchObject({ reason: "invalid_request", domain: "sluice" });
    expect(BadRequest.decode(told.details[1]!.value).fieldViolations).toEqual([
      { field: "dimensions.ip", description: "must be an IP address" },
    ]);
  });

  it("reports an outage without particulars, and unforeseen errors too", () => {
    const away = renderStatus(new StoreUnavailable("storage_timeout", "redis://user:hunter2@10.1.2.3"));
    expect([away.code, away.details]).toEqual([status.UNAVAILABLE, expect.stringContaining("did not answer in time")]);
    const odd = renderStatus(new TypeError("hunter2 is not a function"));
    expect([odd.code, odd.metadata.get("sluice-code")]).toEqual([status.INTERNAL, ["internal"]]);
    for (const { details } of [away, odd]) expect(details).not.toMatch(/hunter2|10\.1/);
    expect(isOurs(new TypeError("x"))).toBe(true);
    expect(isOurs(new StoreUnavailable("storage_timeout", "x"))).toBe(false);
  });

  it("can be written into headers, however long and odd the message is", () => {
    const { details, metadata } = renderStatus(
      new SluiceError("invalid_request", `${"😀".repeat(600)}\ud83d`, [
        { path: ["\udc00".repeat(400)], message: "\n\0" },
      ]),
    );
    expect(details.length).toBeLessThanOrEqual(1_001);
    expect(() => encodeURI(details)).not.toThrow();
    expect(() => metadata.toHttp2Headers()).not.toThrow();
  });

  it("fits into 8 KiB of trailers, above which clients drop the answer, in whatever script it is written", () => {
    for (const letter of ["x", "ü", "語", "😀", "\u0001", "%"]) {
      const problems = Array.from({ length: 30 }, (_, i) => ({
        path: ["dimensions", `${i}${letter.repeat(200)}`],
        message: letter.repeat(900),
      }));
      const { details, metadata } = renderStatus(new SluiceError("invalid_request", letter.repeat(5_000), problems));
      const headers = { ...metadata.toHttp2Headers(), "grpc-status": "3", "grpc-message": encodeURI(details) };
      const bytes = Object.entries(headers).reduce(
        (sum, [name, value]) => sum + 32 + name.length + `${value}`.length,
        0,
      );
      expect([letter, bytes]).toEqual([letter, expect.toSatisfy((size: number) => size < 7_500)]);
      const told = Status.decode(metadata.get("grpc-status-details-bin")[0] as Buffer);
      const { fieldViolations } = BadRequest.decode(told.details[1]!.value);
      expect(fieldViolations.length).toBeGreaterThan(0);
      expect(details.length).toBeGreaterThan(200);
    }
  });

  it("says that the deadline is over in gRPC's own way", () => {
    expect(renderStatus(new DeadlineOver("too late"))).toMatchObject({ code: status.DEADLINE_EXCEEDED });
  });
});
