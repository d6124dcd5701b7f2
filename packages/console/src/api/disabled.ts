import type { DisabledPoliciesBody, DisabledPolicyBody, DisablingChangeBody } from "@sluice/protocol/admin";
import type { ChangeOptions } from "./admin.ts";
import { ask, part } from "./ask.ts";

export interface DisableRequest {
  readonly mode: DisabledPolicyBody["mode"];
  readonly for_ms: number;
}

export const disabled = {
  list: (signal?: AbortSignal) => ask<DisabledPoliciesBody>("GET", "disabled", { signal }),
  set: (policy: string, body: DisableRequest, options: ChangeOptions) =>
    ask<DisablingChangeBody>("PUT", `policies/${part(policy)}/disable`, { body, ...options }),
  end: (policy: string, options: ChangeOptions) =>
    ask<DisablingChangeBody>("DELETE", `policies/${part(policy)}/disable`, options),
} as const;
