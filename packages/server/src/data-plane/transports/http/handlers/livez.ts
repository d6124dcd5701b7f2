import { live } from "@sluice/protocol/http";
import type { HttpResponse } from "../exchange.ts";

/** GET /livez: the process answers. */
export function livez(): HttpResponse {
  return { status: 200, body: live.render({ status: "live" }) };
}
