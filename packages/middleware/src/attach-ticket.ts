import type { Ticket } from "./ticket.ts";

const ticketKey = Symbol.for("sluice.ticket");

interface Carrier {
  [ticketKey]?: Ticket;
}

export function attachTicket(request: object, ticket: Ticket): void {
  (request as Carrier)[ticketKey] = ticket;
}

/**
 * The ticket of a request that a limit let in: its decision, and how to charge more or give it back. If several limits
 * were checked in turn, it is the last one's. Undefined if no limit was checked.
 */
export function findTicket(request: object): Ticket | undefined {
  return (request as Carrier)[ticketKey];
}
