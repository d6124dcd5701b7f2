import { rateLimitOf } from "@sluice/middleware/next";
import { limited } from "../../limited.ts";

export const GET = limited(async (request) => {
  const ticket = rateLimitOf(request)!;
  await ticket.charge(5);
  return new Response(String(ticket.decision.remaining));
});
