import { createLimiter } from "sluice";
import { describe, expect, it } from "vitest";
import type { UsageEvent } from "../../observe/usage-events/usage-event.ts";
import { UsageTail } from "../../observe/usage-events/usage-tail.ts";
import { createActor, openTestControl } from "../testing/open-test-control.ts";
import type { ControlContext } from "./control-context.ts";
import { createUsageTail } from "./control-usage-events.ts";

const limits = [{ by: ["tenant"], windows: ["5/m"] }];
const event = (policy: string | undefined): UsageEvent =>
  ({ id: policy ?? "none", data: { key: "", policy } }) as unknown as UsageEvent;

describe("watching usage events", () => {
  it("shows an editor the policies in force that its team owns, and to one without a team nothing", async () => {
    const policies = [
      { id: "own", owner: "web", limits },
      { id: "other", owner: "shop", limits },
      { id: "free", limits },
    ];
    const limiter = createLimiter({ policies: { policies, default: "none" } });
    let publish: (event: UsageEvent) => void = () => {};
    const usageTail = new UsageTail({
      watch(onEvent) {
        publish = onEvent;
        return () => {};
      },
    });
    const tail = createUsageTail({ limiter, usageTail } as unknown as ControlContext);
    const { next: after } = await tail(createActor("viewer"), { waitMs: 0 });
    for (const policy of ["own", "other", "free", undefined]) publish(event(policy));
    const shown = async (...who: Parameters<typeof createActor>) =>
      (await tail(createActor(...who), { after, waitMs: 0 })).events.map(({ id }) => id);
    expect(await shown("viewer")).toEqual(["own", "other", "free", "none"]);
    expect(await shown("editor", "web")).toEqual(["own"]);
    expect(await shown("editor")).toEqual([]);
    limiter.usePolicies({ policies: [{ id: "free", owner: "web", limits }], default: "none" });
    expect(await shown("editor", "web")).toEqual(["free"]);
    usageTail.close();
  });

  it("is refused to a role that may not read, and by one of several workers", async () => {
    const control = await openTestControl();
    try {
      await expect(control.usage.tail(createActor("check"), { waitMs: 0 })).rejects.toMatchObject({
        code: "permission_denied",
      });
      await expect(control.usage.tail(createActor("viewer"), { waitMs: 0 })).rejects.toMatchObject({
        code: "resource_not_found",
        message: expect.stringContaining("several workers"),
      });
    } finally {
      await control.close();
    }
  });
});
