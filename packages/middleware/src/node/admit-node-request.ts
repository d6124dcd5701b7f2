import type { ServerResponse } from "node:http";
import { attachTicket } from "../attach-ticket.ts";
import type { Gate, Verdict } from "../gate.ts";
import { watchResponse } from "./watch-response.ts";

/** Applies a verdict to a Node response: sets headers if the request passes, sends the whole answer if not. */
export function admitNodeRequest<Request extends object>(
  gate: Gate<Request>,
  request: Request,
  response: ServerResponse,
  verdict: Verdict,
): boolean {
  if (verdict.kind === "skipped") return true;
  if (!response.headersSent) setHeaders(response, verdict.headers);
  if (verdict.kind === "refused") {
    if (response.headersSent) return false;
    response.statusCode = verdict.status;
    response.end(response.req?.method === "HEAD" ? undefined : verdict.body);
    return false;
  }
  const { ticket } = verdict;
  if (ticket === undefined) return true;
  attachTicket(request, ticket);
  if (gate.settles) watchResponse(response, (sent) => void gate.settle(request, ticket, sent));
  return true;
}

function setHeaders(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  for (const name in headers) response.setHeader(name, headers[name]!);
}
