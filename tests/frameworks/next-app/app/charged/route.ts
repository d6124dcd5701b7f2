import { findTicket } from "@sluice/middleware/next";
import { limited } from "../../limited.ts";

export const GET = limited(async (request) => {
  const ticket = findTicket(request)!;
  await ticket.charge(5);
  return new Response(String(ticket.decision.remaining));
});
