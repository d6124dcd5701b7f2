import {
  type CancelRequest,
  type CancelResponse,
  type CommitRequest,
  type CommitResponse,
  type ExtendRequest,
  type ExtendResponse,
  HoldState,
  type HoldStatus,
  type ReserveRequest,
  type ReserveResponse,
} from "@sluice/protocol";
import { SluiceError } from "sluice";
import type { HoldAnswer } from "sluice/store";
import { refuseDimensions, refuseDomain } from "../check-message.ts";
import { decisionMessage } from "../decision-message.ts";
import type { CallInfo, GrpcContext } from "../method.ts";

const maxIdLength = 16_384;

const states: Readonly<Record<HoldAnswer["state"], HoldState>> = {
  unknown: HoldState.UNKNOWN,
  held: HoldState.HELD,
  expired: HoldState.EXPIRED,
  settled: HoldState.SETTLED,
};

export async function reserve(
  request: ReserveRequest,
  context: GrpcContext,
  { deadlineMs }: CallInfo,
): Promise<ReserveResponse> {
  const { domain, dimensions, policies, amount, estimate, ttlMs, id, details } = request;
  refuseDimensions(dimensions);
  refuseDomain(domain);
  const hold = await context.holds.reserve({
    domain: domain === "" ? undefined : domain,
    dimensions,
    policies: policies.length === 0 ? undefined : policies,
    amount,
    estimate,
    ttlMs: ttlMs === 0 ? undefined : ttlMs,
    id: id === "" ? undefined : id,
    details,
    deadlineMs,
  });
  return {
    holdId: hold.id ?? "",
    amount: hold.amount,
    expiresAtMs: hold.expiresAtMs ?? 0,
    decision: decisionMessage(hold.decision),
  };
}

export async function commit(request: CommitRequest, { holds }: GrpcContext): Promise<CommitResponse> {
  const { actual, more } = request;
  return { hold: holdStatus(await holds.commit(readId(request), actual, !more)) };
}

export async function extend(request: ExtendRequest, { holds }: GrpcContext): Promise<ExtendResponse> {
  return { hold: holdStatus(await holds.extend(readId(request), request.ttlMs)) };
}

export async function cancel(request: CancelRequest, { holds }: GrpcContext): Promise<CancelResponse> {
  return { hold: holdStatus(await holds.cancel(readId(request))) };
}

function readId({ holdId }: { readonly holdId: string }): string {
  if (holdId !== "" && holdId.length <= maxIdLength) return holdId;
  const message = "must be what ReserveResponse.hold_id held";
  throw new SluiceError("invalid_request", `hold_id ${message}`, [{ path: ["hold_id"], message }]);
}

function holdStatus({ state, ...answer }: HoldAnswer): HoldStatus {
  return { ...answer, state: states[state] };
}
