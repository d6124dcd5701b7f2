import { moment } from "@sluice/protocol/admin";
import { choice, described, integer, objectOf, type Shape, text } from "sluice";
import { tokenName } from "../../../data-plane/access/parse-tokens.ts";
import { type Role, roles } from "../../../data-plane/access/roles.ts";
import { hotKeysQuery } from "../../../data-plane/transports/http/hot-keys-query.ts";
import { wholeNumber } from "../../../data-plane/transports/http/read-query.ts";
import { auditKinds } from "../../audit/audit-kinds.ts";
import {
  createToken,
  deleteKillSwitch,
  deleteToken,
  exportAll,
  getKillSwitch,
  importAll,
  listAudit,
  listHotKeys,
  listNodes,
  listTokens,
  putKillSwitch,
} from "../handlers/operations.ts";
import { changeFields } from "../policy-shapes.ts";
import { maxVersion, pageQuery } from "../query-words.ts";
import { type AdminRoute, adminRoute } from "../route.ts";

const killSwitchShape: Shape<{ readonly mode: "open" | "closed"; readonly for_ms?: number; readonly why?: string }> =
  objectOf(
    { mode: described(choice(["open", "closed"]), "open: everything is allowed. closed: everything is denied.") },
    {
      for_ms: described(
        integer({ min: 1_000, max: 86_400_000 }),
        "How long; then policies decide again by themselves.",
        {
          default: 3_600_000,
        },
      ),
      why: described(changeFields.why, "The reason. Required, here or in the query."),
    },
  );

const tokenShape: Shape<{
  readonly name: string;
  readonly role: Role;
  readonly team?: string;
  readonly expires_ms?: number;
  readonly why?: string;
}> = objectOf(
  {
    name: described(
      text({ max: 64, pattern: tokenName, form: "letters, digits or . _ @ : / -" }),
      "Who has it, for the audit and the log.",
    ),
    role: choice(roles),
  },
  {
    team: described(text({ max: 256 }), "Whose policies an editor may change."),
    expires_ms: described(moment, "Refused from then on. Left out: 90 days from now."),
    why: changeFields.why,
  },
);

const anything: Shape<unknown> = {
  name: "a policy file",
  schema: { type: "object", description: "A policy file, whole." },
  read: (value) => value,
};

/** As much as a policy file may have. */
const maxImportBytes = 4 * 1024 * 1024;

const word = text({ max: 256 });
const when = wholeNumber({ min: 0, max: maxVersion });

export const operationRoutes: readonly AdminRoute[] = [
  adminRoute({
    method: "GET",
    path: "/api/v1/kill-switch",
    summary: "Whether all checks are allowed or denied, and until when",
    action: "kill_switch.get",
    needs: "read",
    answers: { 200: { description: "The kill switch", content: ["KillSwitch"] } },
    handle: getKillSwitch,
  }),
  adminRoute({
    method: "PUT",
    path: "/api/v1/kill-switch",
    summary: "Allow or deny everything, everywhere, for a while",
    action: "kill_switch.on",
    needs: "operate",
    body: killSwitchShape,
    answers: { 200: { description: "The kill switch, on (unchanged in a dry run)", content: ["KillSwitchChange"] } },
    handle: putKillSwitch,
  }),
  adminRoute({
    method: "DELETE",
    path: "/api/v1/kill-switch",
    summary: "Let policies decide again",
    action: "kill_switch.off",
    needs: "operate",
    answers: { 200: { description: "The kill switch, off (unchanged in a dry run)", content: ["KillSwitchChange"] } },
    handle: deleteKillSwitch,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/audit",
    summary: "Who changed what, or was refused, newest first",
    action: "audit.list",
    needs: "read",
    query: {
      kind: described(choice(auditKinds), "Only what was done to this"),
      target: described(text({ max: 4_096 }), "Only what was done to this one: a policy's id, user:u1, …"),
      actor: described(word, "Only what was done by the token of this name"),
      action: described(word, "Only this: policy.put, kill_switch.on, …"),
      outcome: described(choice(["done", "refused"]), "Only what was done, or only what was refused"),
      since_ms: described(when, "Not before then"),
      until_ms: described(when, "Before then"),
      ...pageQuery,
    },
    answers: {
      200: {
        description: "One page",
        content: ["AuditPage"],
        headers: { Link: "The next page, if there is one" },
      },
    },
    handle: listAudit,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/tokens",
    summary: "List tokens; the tokens themselves are not stored",
    action: "token.list",
    needs: "administer",
    answers: { 200: { description: "All tokens", content: ["Tokens"] } },
    handle: listTokens,
  }),
  adminRoute({
    method: "POST",
    path: "/api/v1/tokens",
    summary: "Make a token; it is shown in this answer, and never again",
    action: "token.make",
    needs: "administer",
    body: tokenShape,
    answers: {
      201: {
        description: "The new token (none in a dry run)",
        content: ["NewToken"],
        headers: { Location: "The path of the token" },
      },
    },
    handle: createToken,
  }),
  adminRoute({
    method: "DELETE",
    path: "/api/v1/tokens/{id}",
    summary: "Revoke a token",
    action: "token.revoke",
    needs: "administer",
    answers: { 200: { description: "The revoked token (unchanged in a dry run)", content: ["TokenChange"] } },
    handle: deleteToken,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/nodes",
    summary: "Which servers there are, and by which generation each decides",
    action: "node.list",
    needs: "read",
    answers: { 200: { description: "All nodes", content: ["Nodes"] } },
    handle: listNodes,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/hot-keys",
    summary: "Which counters are asked for most, or denied most, by all nodes together",
    action: "hot_key.list",
    needs: "read",
    query: { ...hotKeysQuery, node: described(word, "Only what this node reports, by its id or its name") },
    answers: { 200: { description: "Hottest first", content: ["HotKeys"] } },
    handle: listHotKeys,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/export",
    summary: "The whole configuration as a policy file, for Git",
    action: "configuration.export",
    needs: "read",
    answers: { 200: { description: "A policy file", content: "application/yaml" } },
    handle: exportAll,
  }),
  adminRoute({
    method: "POST",
    path: "/api/v1/import",
    summary: "Import a policy file, whole or not at all",
    action: "configuration.import",
    needs: "administer",
    expects: "or_any",
    body: anything,
    bodyUnread: true,
    bodyTypes: ["yaml", "json"],
    maxBodyBytes: maxImportBytes,
    query: {
      mode: described(choice(["merge", "replace"]), "What the file does not name: merge keeps it, replace deletes it", {
        default: "merge",
      }),
    },
    answers: { 200: { description: "What was imported (nothing in a dry run)", content: ["ImportDone"] } },
    handle: importAll,
  }),
];
