export type { CallerOptions, WaitEvent } from "../caller/callers.ts";
export { type CreateFetchOptions, createFetch } from "./create-fetch.ts";
export type { RequestOutline } from "./outgoing-request.ts";
