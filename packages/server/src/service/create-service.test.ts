import { openPolicyStore } from "@sluice/sql";
import { createLimiter } from "sluice";
import { expect, it } from "vitest";
import type { Caller } from "../access/access.ts";
import { sluiceItself } from "../control/audit-entry.ts";
import { createControlPlane } from "../control/create-control-plane.ts";
import { createRecordingLog } from "../testing/recording-log.ts";
import { createTestService } from "../testing/test-service.ts";

const caller: Caller = { name: "ada", role: "operator", may: new Set(["operate"]) };
const policies = { policies: [{ id: "p", limits: [{ by: ["user"], windows: ["1/h"] }] }], default: "none" };

it("resets counters and keeps who did; without a place to keep it, it is told in the log", async () => {
  const logged: string[] = [];
  const log = createRecordingLog(({ level, message }) => logged.push(`${level} ${message}`));
  const store = await openPolicyStore({ url: "sqlite::memory:" });
  const limiter = createLimiter({ policies });
  const control = createControlPlane({ store, limiter, log });
  const service = createTestService(limiter, { control, log });
  const request = { dimensions: { endpoint: "/x", user: "u1" } };
  const isFree = (): boolean => limiter.checkSync(request).allowed;

  expect([isFree(), isFree()]).toEqual([true, false]);
  await service.reset(request, { caller, from: "203.0.113.7" });
  expect(isFree()).toBe(true);
  const { items } = await control.audit.list(sluiceItself, { target: "user:u1" });
  expect(items).toMatchObject([{ action: "subject.reset", actor: "ada", from: "203.0.113.7", outcome: "done" }]);

  await store.close();
  await service.reset(request, { caller, from: "203.0.113.7" });
  expect(isFree(), "nobody waits for the audit in an emergency").toBe(true);
  expect(logged.filter((line) => line.startsWith("error"))).toEqual([
    "error something was done, and the audit could not keep it",
  ]);
});
