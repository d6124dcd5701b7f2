import { SluiceError } from "sluice";

/** A server that knows of no leases, as such servers say it. */
export const noLeases: SluiceError = new SluiceError("not_found", "this server knows of no leases");
