export type { CallerOptions, WaitEvent } from "../caller/callers.ts";
export { type CreateInterceptorOptions, createInterceptor, type DispatchOutline } from "./create-interceptor.ts";
