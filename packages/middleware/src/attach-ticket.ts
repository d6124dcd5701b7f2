import type { Ticket } from "./ticket.ts";

const ticketOf = Symbol.for("sluice.ticket");

interface Carrier {
  [ticketOf]?: Ticket;
}

export function attachTicket(request: object, ticket: Ticket): void {
  (request as Carrier)[ticketOf] = ticket;
}

/**
 * The ticket of a request that a limit let in: its decision, and how to charge more or give it back. With several limits
 * behind one another it is that of the last. Undefined where none was asked.
 */
export function rateLimitOf(request: object): Ticket | undefined {
  return (request as Carrier)[ticketOf];
}
