import { StoreUnavailable } from "./store-unavailable.ts";

let full: StoreUnavailable | undefined;

/** One error for all: when memory is full, every check of a new subject needs it, and creating it takes longer than deciding. */
export function noRoom(): StoreUnavailable {
  full ??= new StoreUnavailable("storage_full", undefined, { mayBeDone: false });
  return full;
}
