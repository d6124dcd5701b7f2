import { HttpException } from "@nestjs/common";
import type { Decision } from "sluice";
import type { Refused } from "../gate.ts";

/**
 * A refusal. Its response is the problem body, or the app's own (`refuse`); its headers are on the response already.
 * GraphQL servers show `extensions`.
 */
export class RateLimitException extends HttpException {
  readonly refused: Refused;
  readonly extensions: { readonly code: string; readonly status: number; readonly problem: unknown };

  constructor(refused: Refused) {
    const body = decodeBody(refused);
    super(body, refused.status);
    this.message = messageFromBody(body);
    this.refused = refused;
    this.extensions = { code: codeFromDecision(refused.decision), status: refused.status, problem: body };
  }

  get decision(): Decision | undefined {
    return this.refused.decision;
  }
}

/** The body as it was before it became text. */
export function decodeBody({ body, headers }: Refused): string | object {
  if (!/[/+]json\b/.test(headers["content-type"] ?? "")) return body;
  try {
    const read: unknown = JSON.parse(body);
    return typeof read === "object" && read !== null ? read : body;
  } catch {
    return body;
  }
}

function messageFromBody(body: string | object): string {
  if (typeof body === "string") return body;
  return "detail" in body && typeof body.detail === "string" ? body.detail : "Too Many Requests";
}

function codeFromDecision(decision: Decision | undefined): string {
  if (decision === undefined) return "BAD_REQUEST";
  return decision.reason === "degraded" ? "SERVICE_UNAVAILABLE" : "TOO_MANY_REQUESTS";
}
