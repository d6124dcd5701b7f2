import { decision as shape } from "@sluice/protocol/http";
import { createLimiter } from "sluice";
import { expect, it } from "vitest";
import { decodeDecisionBody } from "./decode-decision-body.ts";

it("a decision on distinct values says so over HTTP, in all and for its limit", async () => {
  const limits = [{ by: ["tenant"], distinct: "user", windows: ["5000/h"] }];
  const limiter = createLimiter({ policies: { policies: [{ id: "seats", on_failure: "open", limits }] } });
  const decision = await limiter.check({ dimensions: { tenant: "acme", user: "ada" }, details: true });
  const decoded = decodeDecisionBody(JSON.parse(JSON.stringify(shape.render(decision))));
  const distinct = { dimension: "user", error: 0.05 };
  expect([decoded?.distinct, decoded?.limits?.[0]?.distinct]).toEqual([distinct, distinct]);
});
