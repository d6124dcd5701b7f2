import { CheckRequest as CheckMessage, type LeaseRequest, type LeaseResponse } from "@sluice/protocol";
import { SluiceError } from "sluice";
import { maxHoldMs } from "sluice/store";
import type { LeasedCheck } from "../../../service/lease.ts";
import { refuseDimensions, refuseDomain } from "../check-message.ts";
import { decisionMessage } from "../decision-message.ts";
import type { CallInfo, GrpcContext } from "../method.ts";

/** What a check may say beside whose counters it is about, and what says nothing. */
const emptyCheck = CheckMessage.create();
const aboutOneCheck = ["cost", "id", "idTtlMs", "preview", "details", "receipt"] as const;
const names: Partial<Readonly<Record<string, string>>> = { idTtlMs: "id_ttl_ms" };

export async function lease(request: LeaseRequest, context: GrpcContext, { caller }: CallInfo): Promise<LeaseResponse> {
  const { want, holdMs, settled } = request;
  const check = readLeasedCheck(request.check);
  if (holdMs > maxHoldMs) refuse("hold_ms", `must be at most ${maxHoldMs}, but is ${holdMs}`);
  const given = await context.lease(check, { want, holdMs: holdMs === 0 ? undefined : holdMs, settled }, caller);
  return { ...given, cost: given.decision.cost, decision: decisionMessage(given.decision) };
}

function readLeasedCheck(message: CheckMessage | undefined): LeasedCheck {
  if (message === undefined) refuse("check", "is missing; it says which counters are leased");
  const said = aboutOneCheck.find((name) => message[name] !== emptyCheck[name]);
  if (said !== undefined)
    refuse(`check.${names[said] ?? said}`, "is of single checks, and must not be set: a lease is for many");
  const { domain, dimensions, policies } = message;
  refuseDimensions(dimensions, ["check"]);
  refuseDomain(domain, ["check"]);
  return {
    domain: domain === "" ? undefined : domain,
    dimensions,
    policies: policies.length === 0 ? undefined : policies,
  };
}

function refuse(field: string, message: string): never {
  throw new SluiceError("invalid_request", `${field} ${message}`, [{ path: field.split("."), message }]);
}
