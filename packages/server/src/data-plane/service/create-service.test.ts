import { openPolicyStore } from "@sluice/sql";
import { createLimiter } from "sluice";
import { expect, it } from "vitest";
import { sluiceItself } from "../../control-plane/audit/audit-entry.ts";
import { createControlPlane } from "../../control-plane/use-cases/create-control-plane.ts";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { createTestService } from "../../testing/test-service.ts";
import type { Caller } from "../access/access.ts";

const caller: Caller = { name: "ada", role: "operator", may: new Set(["operate"]) };
const policies = { policies: [{ id: "p", limits: [{ by: ["user"], windows: ["1/h"] }] }], default: "none" };

it("resets counters and records who did; without an audit, it is logged", async () => {
  const logged: LoggedLine[] = [];
  const log = createRecordingLog((line) => logged.push(line));
  const store = await openPolicyStore({ url: "sqlite::memory:" });
  const limiter = createLimiter({ policies });
  const control = createControlPlane({ store, limiter, log });
  const service = createTestService(limiter, { audit: control.audit, log });
  const request = { dimensions: { endpoint: "/x", user: "u1" } };
  const isFree = (): boolean => limiter.checkSync(request).allowed;

  expect([isFree(), isFree()]).toEqual([true, false]);
  await service.reset(request, { caller, from: "203.0.113.7" });
  expect(isFree()).toBe(true);
  const { items } = await control.audit.list(sluiceItself, { target: "user:u1" });
  expect(items).toMatchObject([{ action: "subject.reset", actor: "ada", from: "203.0.113.7", outcome: "done" }]);

  await store.close();
  await service.reset(request, { caller, from: "203.0.113.7" });
  expect(isFree(), "a reset does not wait for the audit in an emergency").toBe(true);
  expect(logged.filter(({ level }) => level === "error")).toEqual([
    {
      level: "error",
      event: "audit.write_failed",
      message: "a change was made, but the audit could not record it",
      // Under the name by which subjects are hashed if configured.
      fields: { action: "subject.reset", caller: "ada", dimensions: { user: "u1" }, reason: expect.any(String) },
    },
  ]);
});
