export {
  type CallOutline,
  type CallWaitEvent,
  type CreateInterceptorOptions,
  createInterceptor,
} from "./create-interceptor.ts";
