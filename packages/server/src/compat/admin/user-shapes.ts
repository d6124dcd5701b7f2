import { maxOverrideMs } from "@sluice/protocol/admin";
import { parseMoment } from "sluice/internal";
import { described, integer, objectOf, refine, type Shape, text } from "sluice/shape";
import { why } from "../../control-plane/admin-api/query-parameters.ts";

/** A time as text: `2027-01-31T12:00:00Z`. */
const momentShape: Shape<number> = {
  ...refine(text({ max: 64 }), (written, reading) => {
    const atMs = parseMoment(written);
    if (atMs !== undefined) return atMs;
    return reading.problem(`must be a time such as 2027-01-31T12:00:00Z, but is ${JSON.stringify(written)}`);
  }),
  schema: { type: "string", format: "date-time" },
};

const tierName: Shape<string> = text({
  max: 128,
  pattern: /^[A-Za-z0-9][A-Za-z0-9 ._:/@-]*$/,
  form: "1 to 128 letters, digits, spaces or . _ : / @ -",
});

export interface UserTierBody {
  readonly tier: string;
  readonly why?: string;
}

export const userTierShape: Shape<UserTierBody> = objectOf(
  { tier: described(tierName, "free, premium, enterprise, or a custom tier.") },
  { why },
);

export interface UserOverrideBody {
  readonly rule_id: string;
  readonly limit: number;
  readonly window_seconds: number;
  readonly burst?: number;
  readonly expires_at?: number;
  readonly duration_seconds?: number;
  readonly why?: string;
}

const amount = integer({ min: 1, max: 1e12 });
const daySeconds = 86_400;

export const userOverrideShape: Shape<UserOverrideBody> = refine(
  objectOf(
    {
      rule_id: described(text({ max: 257 }), "The rule, or the policy, whose limit is replaced for this user."),
      limit: amount,
      window_seconds: integer({ min: 1, max: 3_653 * daySeconds }),
    },
    {
      burst: described(amount, "The burst, for bucket algorithms. Absent: the limit."),
      expires_at: described(momentShape, "When it ends."),
      duration_seconds: described(
        integer({ min: 1, max: maxOverrideMs / 1_000 }),
        "How long it lasts from now. An alternative to expires_at.",
      ),
      reason: described(why, "The reason, for the history."),
    },
  ),
  ({ reason, ...body }, reading): UserOverrideBody => {
    const { expires_at: atMs, duration_seconds: seconds } = body;
    if (atMs !== undefined && seconds !== undefined)
      reading.problem("cannot be combined with expires_at; send one of the two", "duration_seconds");
    return reason === undefined ? body : { ...body, why: reason };
  },
);
