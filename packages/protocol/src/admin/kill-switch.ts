import { type BodyOf, choice, epochMs, text } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { changeShape } from "./change.ts";

/** How long it may be on. */
export const killSwitchBounds: { readonly leastMs: number; readonly mostMs: number } = {
  leastMs: 1_000,
  mostMs: 24 * 3_600_000,
};

/** Whether every check is allowed (`open`) or denied (`closed`) without asking policies, and until when. */
export const killSwitch = objectOf({
  mode: choice(["off", "open", "closed"]),
  since_ms: optional(epochMs),
  until_ms: optional(epochMs),
  reason: optional(text),
  author: optional(text),
});
export type KillSwitchBody = BodyOf<typeof killSwitch>;

export const killSwitchChange = changeShape({ kill_switch: killSwitch });
export type KillSwitchChangeBody = BodyOf<typeof killSwitchChange>;
