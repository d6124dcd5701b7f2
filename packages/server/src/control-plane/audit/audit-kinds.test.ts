import { auditKinds } from "@sluice/protocol/admin";
import { expect, it } from "vitest";
import { grpcMethods, adminRoutes as routes } from "../../boot/api-tables.ts";

it("knows the kind of every action that can be in the audit", () => {
  const actions = [
    ...routes.map(({ action }) => action),
    ...grpcMethods(undefined).flatMap(({ audit }) => audit?.action ?? []),
  ];
  const kinds = new Set(actions.map((action) => action.split(".", 1)[0]));
  expect([...kinds].filter((kind) => !(auditKinds as readonly (string | undefined)[]).includes(kind))).toEqual([]);
});
