/**
 * `@sluice/client/internal`: what Sluice's own packages share. It may change in any release; applications need nothing from here.
 */
export { type HttpAnswer, keepConnection, type SentRequest, sendRequest } from "./admin/send-request.ts";
