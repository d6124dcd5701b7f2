import { SluiceError } from "sluice";

/** The error for a server without leases, as such servers word it. */
export const noLeases: SluiceError = new SluiceError("not_found", "this server does not support leases");
