import type { KillSwitchChangeBody } from "@sluice/protocol/admin";
import type { ChangeOptions } from "./admin.ts";
import { ask } from "./ask.ts";

/** Gives every check the same answer for a while. The server demands a reason. */
export function turnOnKillSwitch(
  body: { readonly mode: "open" | "closed"; readonly for_ms: number },
  options: ChangeOptions,
): Promise<KillSwitchChangeBody> {
  return ask("PUT", "kill-switch", { body, ...options });
}
