import { rolloutStates } from "@sluice/sql";
import type { JsonSchema } from "sluice";
import { roles } from "../../data-plane/access/roles.ts";
import { hotKeysSchema } from "../../data-plane/transports/http/hot-keys-body.ts";
import type { OpenApiOptions } from "../../data-plane/transports/http/render-open-api.ts";
import { integer, list, number, object, text, yesOrNo } from "../../data-plane/transports/http/schema-parts.ts";
import { schemas as httpSchemas, windowSchema } from "../../data-plane/transports/http/schemas.ts";
import type { RolloutViewWait } from "../control-plane.ts";

const epochMs: JsonSchema = { type: "integer", description: "Epoch milliseconds." };
const texts = list(text);
const document: JsonSchema = { type: "object", description: "As it stands in a policy file, under `policies`." };

const problem = object({ field: text, message: text, line: integer, column: integer }, "line", "column");

const change: Readonly<Record<string, JsonSchema>> = {
  dry_run: yesOrNo,
  generation: {
    type: "integer",
    description: "What nodes will decide by. Absent in a dry run, or where nothing changed.",
  },
  warnings: { ...list(problem), description: "What is legal, but may surprise." },
};

/** What a change came to, with what was changed. */
function changeOf(properties: Readonly<Record<string, JsonSchema>> = {}): JsonSchema {
  return object({ ...change, ...properties }, "generation");
}

function pageOf(items: JsonSchema): JsonSchema {
  return object(
    { items: list(items), next: { type: "string", description: "Goes into `after`. Absent: the end." } },
    "next",
  );
}

const compared: Readonly<Record<string, JsonSchema>> = {
  decided: integer,
  denied: integer,
  rate: number,
  baseline: number,
  baseline_minutes: number,
  baseline_decided: number,
  others: number,
  sigma: number,
  threshold: number,
};

const waitCodes: readonly RolloutViewWait["code"][] = [
  "start",
  "observation",
  "baseline",
  "hold",
  "looks",
  "fine_look",
  "traffic",
  "operator",
  "kill_switch",
  "due",
];

const rollout: JsonSchema = object(
  {
    id: text,
    policy: text,
    from_version: integer,
    to_version: integer,
    state: { enum: [...rolloutStates] },
    percent: { type: "number", description: "Of subjects, under the new version now." },
    shadow: yesOrNo,
    by: text,
    steps: list(object({ percent: number, hold_ms: integer })),
    step: { type: "integer", description: "Which step is in force; -1: none yet." },
    step_since_ms: epochMs,
    starts_ms: epochMs,
    observe_for_ms: integer,
    expect_more_denials: yesOrNo,
    strikes: integer,
    waits_for: {
      description: "Why it does not go on now. Absent where it has ended, and in lists of policies.",
      ...object(
        {
          code: { enum: [...waitCodes] },
          until_ms: {
            type: "integer",
            description: "Epoch milliseconds: when the wait is over, or is given up and the rollout goes on.",
          },
          minutes: { type: "integer", description: "With traffic of those who join first, under the old version." },
          minutes_needed: integer,
          decided: { type: "integer", description: "Of these minutes; for `traffic`, since the latest look." },
          decided_needed: integer,
          looks: { type: "integer", description: "Minutes on this step that could be compared." },
          looks_needed: integer,
          strikes: { type: "integer", description: "Looks in a row beyond what is usual." },
          strikes_to_roll_back: integer,
        },
        "until_ms",
        "minutes",
        "minutes_needed",
        "decided",
        "decided_needed",
        "looks",
        "looks_needed",
        "strikes",
        "strikes_to_roll_back",
      ),
    },
    figures: {
      description: "Of the latest look. Rates are shares, 0 to 1.",
      ...object(
        {
          minute: integer,
          minutes: integer,
          verdict: { enum: ["fine", "strike", "unclear", "none"] },
          because: {
            enum: ["others", "surplus", "no_baseline", "old_version_unused"],
            description: "Why the verdict is `unclear` or `none`.",
          },
          sentence: text,
          looks: integer,
          strikes: integer,
          total: object(compared),
          rings: list(object({ step: integer, judged: yesOrNo, ...compared })),
        },
        "because",
      ),
    },
    reason: text,
    author: text,
    created_ms: epochMs,
    changed_ms: epochMs,
  },
  "figures",
  "waits_for",
);

const policy: JsonSchema = object(
  {
    id: text,
    version: integer,
    document,
    owner: text,
    author: text,
    why: text,
    changed_ms: epochMs,
    rollout,
    overridden_by: { const: "file", description: "A policy file has the same id, and files win." },
  },
  "owner",
  "rollout",
  "overridden_by",
);

const version: JsonSchema = object(
  {
    policy: text,
    version: integer,
    document,
    deleted: yesOrNo,
    author: text,
    why: text,
    at_ms: epochMs,
    revert_of: integer,
    current: yesOrNo,
    rollout: {
      description: "By which it went out, or was to. Absent where it was for everybody at once.",
      ...object({ id: text, state: { enum: [...rolloutStates] }, shadow: yesOrNo }),
    },
  },
  "document",
  "revert_of",
  "rollout",
);

const ownFields: Readonly<Record<string, JsonSchema>> = {
  tier: text,
  limits: list(
    object(
      { policy: text, limit: text, windows: texts, until_ms: epochMs, reason: text, author: text, at_ms: epochMs },
      "limit",
      "until_ms",
    ),
  ),
};

const subjectFields: Readonly<Record<string, JsonSchema>> = {
  dimension: text,
  value: text,
  version: integer,
  ...ownFields,
};

/** What a change of a subject came to, with what it took the place of. */
function subjectChangeOf(properties: Readonly<Record<string, JsonSchema>> = {}): JsonSchema {
  const replaced = {
    ...object(ownFields, "tier"),
    description: "What was there and is not any more. Absent: nothing was.",
  };
  const inPlaceOf = {
    ...list(effectiveLimit),
    description:
      "Of a new limit or override: the limits whose windows it replaces, as they were. Absent: nothing changed.",
  };
  return object(
    { ...change, replaced, in_place_of: inPlaceOf, ...properties },
    "generation",
    "replaced",
    "in_place_of",
  );
}

const countedSubjects: JsonSchema = {
  description: "How many, and which: the first 100.",
  ...object({ count: integer, first: list(object({ dimension: text, value: text })) }),
};

const effectiveLimit: JsonSchema = object(
  {
    policy: text,
    version: integer,
    limit: text,
    by: texts,
    algorithm: text,
    windows: list(windowSchema),
    source: {
      anyOf: [
        object({ kind: { enum: ["policy", "custom"] } }),
        object({ kind: { const: "tier" }, tier: text }),
        object({ kind: { const: "override" }, until_ms: epochMs }),
      ],
    },
    mode: { enum: ["enforce", "shadow"] },
    usage: list(
      object({ window: windowSchema, used: number, remaining: number, reset_after_ms: number }, "reset_after_ms"),
    ),
  },
  "usage",
);

const subject: JsonSchema = object({ ...subjectFields, effective: list(effectiveLimit) }, "tier");

const killSwitch: JsonSchema = object(
  { mode: { enum: ["off", "open", "closed"] }, since_ms: epochMs, until_ms: epochMs, reason: text, author: text },
  "since_ms",
  "until_ms",
  "reason",
  "author",
);

const tokenFields: Readonly<Record<string, JsonSchema>> = {
  id: text,
  name: text,
  role: { enum: [...roles] },
  team: text,
  created_ms: epochMs,
  created_by: text,
  expires_ms: epochMs,
  revoked_ms: epochMs,
  last_used_ms: epochMs,
};
const tokenOptional = ["team", "expires_ms", "revoked_ms", "last_used_ms"];
const token: JsonSchema = object(tokenFields, ...tokenOptional);

const audit: JsonSchema = object(
  {
    id: text,
    at_ms: epochMs,
    actor: text,
    role: text,
    from: text,
    action: text,
    kind: text,
    target: text,
    outcome: { enum: ["done", "refused"] },
    why: text,
    before: {},
    after: {},
    generation: integer,
  },
  "before",
  "after",
  "generation",
);

/** What the control plane answers with, by name. */
export const adminSchemas: Readonly<Record<string, JsonSchema>> = {
  Error: httpSchemas.Error,
  Live: httpSchemas.Live,
  Ready: httpSchemas.Ready,
  Change: changeOf(),
  Policy: policy,
  PolicyPage: pageOf(policy),
  PolicyChange: changeOf({ policy }),
  Version: version,
  VersionPage: pageOf(version),
  Diff: object({
    policy: text,
    from: integer,
    to: integer,
    changes: list(
      object(
        { path: text, change: { enum: ["added", "removed", "changed"] }, before: {}, after: {} },
        "before",
        "after",
      ),
    ),
    text: { type: "string", description: "Both as YAML, line by line: - only before, + only after." },
  }),
  Validation: object({ valid: yesOrNo, problems: list(problem), warnings: list(problem) }),
  Rollout: rollout,
  RolloutPage: pageOf(rollout),
  RolloutChange: changeOf({ rollout }),
  Subject: subject,
  SubjectPage: pageOf(object(subjectFields, "tier")),
  SubjectChange: subjectChangeOf({ subject }),
  SubjectGone: subjectChangeOf(),
  Usage: object({ dimension: text, value: text, limits: list(effectiveLimit) }),
  ResetDone: changeOf({ limits: texts, skipped: list(object({ limit: text, by: texts })) }),
  KillSwitch: killSwitch,
  KillSwitchChange: changeOf({ kill_switch: killSwitch }),
  AuditPage: pageOf(audit),
  Tokens: object({ items: list(token) }),
  TokenChange: changeOf({ token }),
  NewToken: changeOf({
    token: object(
      { ...tokenFields, token: { type: "string", description: "Shown this once. Absent in a dry run." } },
      "token",
      ...tokenOptional,
    ),
  }),
  Nodes: object({
    generation: integer,
    nodes: list(
      object({
        id: text,
        name: text,
        version: text,
        started_ms: epochMs,
        seen_ms: epochMs,
        alive: yesOrNo,
        generation: integer,
        applied_ms: epochMs,
        current: yesOrNo,
        details: { type: "object" },
      }),
    ),
  }),
  HotKeys: hotKeysSchema,
  ImportDone: changeOf({
    import: object({
      created: texts,
      changed: texts,
      deleted: texts,
      unchanged: integer,
      subjects: object({ created: countedSubjects, changed: countedSubjects, deleted: countedSubjects }),
      generation_before: {
        type: "integer",
        description: "The generation that it met. After a dry run, what goes into `If-Match`.",
      },
    }),
  }),
};

/** How the control plane is described. */
export const nativeAdminApi: OpenApiOptions = {
  title: "Sluice control plane",
  description: "Policies, subjects, rollouts and the kill switch. Every request but those for health needs a token.",
  schemas: adminSchemas,
  usualPort: 8090,
  alwaysNeedToken: () => true,
  bodyErrors: {
    400: "Bad input, every field named; in YAML with its line and column",
    413: "The body is too large",
    415: "The body is of another type",
  },
};
